/** What an x402 facilitator asks of a chain, on a real node; the sponsor pays for what it writes. */
import { concat, encodeFunctionData } from 'viem'
import { type Address, type ContractCall, type EvmSigner, type Hex, refusedCall } from '../chain.ts'
import type { NodeClient } from './client.ts'
import { awaitReceipt } from './receipts.ts'
import { refusalOf } from './refusal.ts'
import { BRIEFLY_MS, type Relayer, type SponsoredCall } from './relayer.ts'
import { isSignedByKey, typedDataHashOf } from './typed-data.ts'

/** The signer of one session. */
export function createEvmSigner(client: NodeClient, relayer: Relayer): EvmSigner {
  /** A refusal in words: what viem makes of one is a page, and names no error that the caller's interface lacks. */
  function refuse(error: unknown): never {
    const refusal = refusalOf(error)
    throw refusal === undefined ? error : refusedCall(refusal, { cause: error })
  }

  /** Estimated first, so that what would revert is refused before it costs gas. */
  async function estimated(to: Address, data: Hex): Promise<SponsoredCall> {
    const estimate = await client.estimateGas({ account: relayer.address, to, data }).catch(refuse)
    return { to, data, gas: (estimate * 13n) / 10n }
  }

  return {
    address: relayer.address,
    readContract: (call) => client.readContract(call).catch(refuse),
    async verifyTypedData(input) {
      // Most signers are plain keys, checked without asking the node; a contract's own answer counts otherwise (EIP-1271).
      if (await isSignedByKey(input)) return true
      const { address, signature } = input
      return client.verifyHash({ address, hash: typedDataHashOf(input), signature })
    },
    async writeContract(call) {
      const sponsored = await estimated(call.address, calldataOf(call))
      // Anybody may carry an authorization to the token; what a permit allows, only the address that it names.
      const isAnybodys = call.functionName === 'transferWithAuthorization'
      const { hash } = await (isAnybodys
        ? relayer.send(sponsored, BRIEFLY_MS)
        : relayer.sendAsSponsor(sponsored, BRIEFLY_MS))
      return hash
    },
    async sendTransaction({ to, data }) {
      const { hash } = await relayer.sendAsSponsor(await estimated(to, data), BRIEFLY_MS)
      return hash
    },
    async waitForTransactionReceipt({ hash, timeout = 30_000 }) {
      return awaitReceipt(client, hash, timeout)
    },
    getCode: ({ address }) => client.getCode({ address }),
  }
}

/** The call's data, with the suffix some facilitators add to mark their transactions. */
export function calldataOf({ abi, functionName, args = [], dataSuffix = '0x' }: ContractCall): Hex {
  return concat([encodeFunctionData({ abi, functionName, args }), dataSuffix])
}
