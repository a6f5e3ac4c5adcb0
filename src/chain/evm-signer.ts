/** Chain access for x402 facilitators on a real node; the sponsor pays for writes. */
import {
  BaseError,
  concat,
  decodeFunctionResult,
  encodeFunctionData,
  hexToBigInt,
  parseAbi,
  slice,
} from 'viem'
import {
  type Address,
  type ContractCall,
  type EvmSigner,
  type Hex,
  isRefusedCall,
  refusedCall,
} from '../providers/chain/port.ts'
import { hashTypedInput, isSignedByKey } from './accounts/typed-data.ts'
import { awaitReceipt } from './relay/receipts.ts'
import { findRefusal, isConnectionError } from './relay/refusal.ts'
import { type Relayer, SHORT_RECEIPT_WAIT_MS, type SponsoredCall } from './relay/relayer.ts'
import type { NodeClient } from './rpc/client.ts'

/**
 * Maximum gas of a third party's payment, in simulation and on the chain. A payer that is a contract verifies its own
 * signature (EIP-1271) with arbitrary gas: a token transfer by authorization takes 60,000 to 120,000, a contract
 * wallet's signature check 100,000 to 200,000 more.
 */
const MAX_SPONSORED_GAS = 400_000n

const signatureAbi = parseAbi([
  'function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)',
])
/** Return value of {@link signatureAbi} for a valid signature. @see https://eips.ethereum.org/EIPS/eip-1271 */
const VALID_SIGNATURE = 0x1626ba7en

/**
 * @param when the block whose time calls are judged by. A development node mines none while it is idle, so that an authorization signed
 *   now would be too early in its latest block; public nodes need not know a pending one.
 */
export function createEvmSigner(client: NodeClient, relayer: Relayer, when: 'latest' | 'pending'): EvmSigner {
  /**
   * Throws a rejection with the contract's reason, because viem's message is a page long and lacks errors outside the
   * caller's ABI.
   */
  function refuse(error: unknown): never {
    const refusal = findRefusal(error)
    if (refusal !== undefined) throw refusedCall(refusal, { cause: error })
    // Nothing was broadcast: an error about gas refers to the gas limit.
    if (error instanceof BaseError && !isConnectionError(error) && /gas/i.test(error.details))
      throw refusedCall(`it uses more than ${MAX_SPONSORED_GAS} gas`, { cause: error })
    throw error
  }

  /** Simulates a call within the gas limit. */
  async function simulateCall(to: Address, data: Hex): Promise<Hex> {
    const call = { account: relayer.address, to, data, gas: MAX_SPONSORED_GAS, blockTag: when }
    const { data: result = '0x' } = await client.call(call).catch(refuse)
    return result
  }

  /** Estimates gas first, so that a call that would revert is rejected before it costs gas. */
  async function estimateCall(to: Address, data: Hex): Promise<SponsoredCall> {
    const call = { account: relayer.address, to, data, gas: MAX_SPONSORED_GAS, blockTag: when }
    const estimate = await client.estimateGas(call).catch(refuse)
    if (estimate > MAX_SPONSORED_GAS) throw refusedCall(`it uses more than ${MAX_SPONSORED_GAS} gas`)
    const withMargin = (estimate * 13n) / 10n
    return { to, data, gas: withMargin < MAX_SPONSORED_GAS ? withMargin : MAX_SPONSORED_GAS }
  }

  return {
    address: relayer.address,
    async readContract(call) {
      const { address, abi, functionName } = call
      const data = await simulateCall(address, encodeCalldata(call))
      return decodeFunctionResult({ abi, functionName, args: call.args, data })
    },
    async verifyTypedData(input) {
      // Most signers are plain keys, which are verified locally; contracts are called (EIP-1271).
      if (await isSignedByKey(input)) return true
      const { address, signature } = input
      const args = [hashTypedInput(input), signature] as const
      const data = encodeFunctionData({ abi: signatureAbi, functionName: 'isValidSignature', args })
      try {
        const answer = await simulateCall(address, data)
        return answer.length === 66 && hexToBigInt(slice(answer, 0, 4)) === VALID_SIGNATURE
      } catch (error) {
        if (isRefusedCall(error)) return false
        throw error
      }
    },
    async writeContract(call) {
      const sponsored = await estimateCall(call.address, encodeCalldata(call))
      // Anyone may submit an authorization or a permit to the token; only the address named in a permit may use it.
      const isOpenToAll = call.functionName === 'transferWithAuthorization' || call.functionName === 'permit'
      const { hash } = await (isOpenToAll
        ? relayer.send(sponsored, SHORT_RECEIPT_WAIT_MS)
        : relayer.sendAsSponsor(sponsored, SHORT_RECEIPT_WAIT_MS))
      return hash
    },
    async sendTransaction({ to, data, beforeBroadcast }) {
      const call = { ...(await estimateCall(to, data)), beforeBroadcast }
      const { hash } = await relayer.sendAsSponsor(call, SHORT_RECEIPT_WAIT_MS)
      return hash
    },
    async waitForTransactionReceipt({ hash, timeout = 30_000 }) {
      return awaitReceipt(client, hash, timeout)
    },
    getCode: ({ address }) => client.getCode({ address }),
  }
}

/** Encodes a call, with the suffix some facilitators add to mark their transactions. */
export function encodeCalldata({ abi, functionName, args = [], dataSuffix = '0x' }: ContractCall): Hex {
  return concat([encodeFunctionData({ abi, functionName, args }), dataSuffix])
}
