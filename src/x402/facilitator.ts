/** Who checks payments and puts them on the chain: this process over its own chain, or a facilitator elsewhere. */
import { x402Facilitator } from '@x402/core/facilitator'
import { type FacilitatorClient, HTTPFacilitatorClient } from '@x402/core/server'
import type { PaymentPayload, PaymentRequirements, SettleResponse } from '@x402/core/types'
import { toFacilitatorEvmSigner } from '@x402/evm'
import { ExactEvmScheme } from '@x402/evm/exact/facilitator'
import { ExactEvmSchemeV1 } from '@x402/evm/exact/v1/facilitator'
import { concat } from 'viem'
import type { ContractCall, EvmSigner, Hex } from '../providers/chain.ts'
import type { Attempt, Attempts } from './attempt.ts'
import type { Terms } from './terms.ts'
import { isConnectionTrouble, isRefusedConnection, withTimeLimit } from './trouble.ts'

const VERIFY_MS = 5_000
/** How long a settlement is waited for; later than that it is pending. */
const SETTLE_MS = 3_000
/** How long its receipt is: the rest is for sending. */
const RECEIPT_MS = 2_500

type Checker = Pick<FacilitatorClient, 'verify' | 'settle'>

/** A facilitator that writes down in the attempt what happened. One for both generations. */
export function createFacilitator(parts: {
  readonly signer: EvmSigner
  readonly terms: Terms
  /** Null: in this process. */
  readonly url: string | null
  readonly attempts: Attempts
  /** The mark of the transaction that pays, by the payment's id. */
  readonly markOf: (id: string) => Hex
}): FacilitatorClient {
  const { signer, terms, url, attempts, markOf } = parts
  const { network } = terms
  const inner =
    url === null
      ? inProcess(watchedSigner(signer, attempts, markOf), terms)
      : new HTTPFacilitatorClient({ url, timeoutMs: VERIFY_MS })
  return {
    verify: async (payload, requirements) => {
      const attempt = attempts.current()
      try {
        attempt.verification = await withTimeLimit(VERIFY_MS, inner.verify(payload, requirements))
        return attempt.verification
      } catch (error) {
        attempt.isUnreachable = true
        throw error
      }
    },
    settle: (payload, requirements) => {
      const attempt = attempts.current()
      // The v2 middleware asks a second time where a settlement is pending; waiting twice would double the client's wait.
      attempt.settling ??= settleOnce(inner, attempt, payload, requirements)
      return attempt.settling
    },
    // Said here rather than asked for, so that the gateway starts and challenges while a remote facilitator is down.
    getSupported: async () => ({
      kinds: [
        { x402Version: 2, scheme: 'exact', network: network.v2 },
        // The types know CAIP-2 networks only; in a kind of version 1 the network has its v1 name.
        { x402Version: 1, scheme: 'exact', network: network.v1 as `${string}:${string}` },
      ],
      extensions: [],
      signers: {},
    }),
  }
}

async function settleOnce(
  inner: Checker,
  attempt: Attempt,
  payload: PaymentPayload,
  requirements: PaymentRequirements,
): Promise<SettleResponse> {
  try {
    attempt.settlement = await withTimeLimit(SETTLE_MS, inner.settle(payload, requirements))
    return attempt.settlement
  } catch (error) {
    if (isRefusedConnection(error)) attempt.isUnreachable = true
    else attempt.isUnknown = true
    throw error
  }
}

function inProcess(signer: EvmSigner, { network }: Terms): Checker {
  const watched = toFacilitatorEvmSigner(signer, { confirmationTimeoutMs: RECEIPT_MS })
  const facilitator = new x402Facilitator()
    .register(network.v2, new ExactEvmScheme(watched))
    // The types know CAIP-2 networks only; what is registered for version 1 is looked up by its v1 name.
    .registerV1(network.v1 as `${string}:${string}`, new ExactEvmSchemeV1(watched))
  return {
    verify: (payload, requirements) => facilitator.verify(payload, requirements),
    settle: (payload, requirements) => facilitator.settle(payload, requirements),
  }
}

/**
 * The schemes make "the payment is invalid" of a lost connection, the one of v1 even after broadcasting; so a loss is written
 * down where it happens. Each payment's transaction bears its mark, by which it is known again.
 */
function watchedSigner(signer: EvmSigner, attempts: Attempts, markOf: (id: string) => Hex): EvmSigner {
  const reading =
    <Input, Output>(read: (input: Input) => Promise<Output>) =>
    async (input: Input) => {
      try {
        return await read(input)
      } catch (error) {
        if (isConnectionTrouble(error)) attempts.current().isUnreachable = true
        throw error
      }
    }
  const writing =
    <Input>(write: (input: Input) => Promise<Hex>) =>
    async (input: Input) => {
      const attempt = attempts.current()
      try {
        const transaction = await write(input)
        attempt.transaction = transaction
        attempt.onTransaction(transaction)
        return transaction
      } catch (error) {
        if (isRefusedConnection(error)) attempt.isUnreachable = true
        else if (isConnectionTrouble(error)) attempt.isUnknown = true
        throw error
      }
    }
  return {
    address: signer.address,
    readContract: reading((call) => signer.readContract(call)),
    verifyTypedData: reading((input) => signer.verifyTypedData(input)),
    getCode: reading((input) => signer.getCode(input)),
    writeContract: writing((call: ContractCall) => {
      const dataSuffix = concat([call.dataSuffix ?? '0x', markOf(attempts.current().id)])
      return signer.writeContract({ ...call, dataSuffix })
    }),
    sendTransaction: writing((transaction) => signer.sendTransaction(transaction)),
    waitForTransactionReceipt: async (input) => {
      try {
        return await signer.waitForTransactionReceipt(input)
      } catch (error) {
        attempts.current().isUnknown = true
        throw error
      }
    },
  }
}
