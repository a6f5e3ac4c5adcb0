/** Verifies and settles payments, in this process over its own chain or through a remote facilitator. */
import { x402Facilitator } from '@x402/core/facilitator'
import { type FacilitatorClient, HTTPFacilitatorClient } from '@x402/core/server'
import type { PaymentPayload, PaymentRequirements, SettleResponse } from '@x402/core/types'
import { toFacilitatorEvmSigner } from '@x402/evm'
import { ExactEvmScheme } from '@x402/evm/exact/facilitator'
import { ExactEvmSchemeV1 } from '@x402/evm/exact/v1/facilitator'
import { UptoEvmScheme } from '@x402/evm/upto/facilitator'
import { concat } from 'viem'
import type { LocalAccount } from 'viem/accounts'
import type { Clock } from '../../../core/base/clock.ts'
import {
  type ContractCall,
  type EvmSigner,
  type Hex,
  isUnknownBroadcast,
} from '../../../providers/chain/port.ts'
import type { Attempt, Attempts } from './attempt.ts'
import { createFacilitatorScheme } from './channels.ts'
import { isConnectionError, isRefusedConnection, withTimeLimit } from './connection-errors.ts'
import { createFacilitatorHeaders, type FacilitatorKey } from './facilitator-token.ts'
import type { Terms } from './terms.ts'

const VERIFY_MS = 5_000
/** A settlement that takes longer is reported as pending. */
const SETTLE_MS = 3_000
/** Time limit for the receipt; the rest of SETTLE_MS is for sending. */
const RECEIPT_MS = 2_500

/** Stands for the code of a contract that is known to exist. */
const SOME_CODE: Hex = '0x00'

type Checker = Pick<FacilitatorClient, 'verify' | 'settle'>

/** Creates a facilitator for both generations that records the outcome in the current attempt. */
export function createFacilitator(parts: {
  readonly signer: EvmSigner
  readonly terms: Terms
  /** Null settles in this process. */
  readonly url: string | null
  /** Credentials at the remote facilitator; null: it needs none. */
  readonly key: FacilitatorKey | null
  readonly clock: Clock
  readonly attempts: Attempts
  /** Signs for the seller's channels. */
  readonly authorizer: LocalAccount
  /** Returns the transaction mark for a payment id. */
  readonly deriveMark: (id: string) => Hex
}): FacilitatorClient {
  const { signer, terms, url, key, clock, attempts, authorizer, deriveMark } = parts
  const { network, uptoFacilitator, channelAuthorizer } = terms
  const inner =
    url === null
      ? inProcess(watchedSigner(signer, terms, { attempts, deriveMark }), { terms, authorizer })
      : new HTTPFacilitatorClient({
          url,
          timeoutMs: VERIFY_MS,
          ...(key === null ? {} : { createAuthHeaders: createFacilitatorHeaders(key, url, clock) }),
        })
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
      // The v2 middleware calls settle again while a settlement is pending; a second wait would double the client's
      // wait.
      attempt.settling ??= settleOnce(inner, attempt, payload, requirements)
      return attempt.settling
    },
    // Static, so that the gateway starts and serves challenges while a remote facilitator is down.
    getSupported: async () => ({
      kinds: [
        { x402Version: 2, scheme: 'exact', network: network.v2 },
        ...(uptoFacilitator === null
          ? []
          : [
              {
                x402Version: 2,
                scheme: 'upto',
                network: network.v2,
                extra: { facilitatorAddress: uptoFacilitator },
              },
            ]),
        ...(channelAuthorizer === null
          ? []
          : [{ x402Version: 2, scheme: 'batch-settlement', network: network.v2 }]),
        // The types allow CAIP-2 networks only; kinds of version 1 use the v1 name.
        ...(network.v1 === null
          ? []
          : [{ x402Version: 1, scheme: 'exact', network: network.v1 as `${string}:${string}` }]),
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

function inProcess(
  signer: EvmSigner,
  { terms, authorizer }: { readonly terms: Terms; readonly authorizer: LocalAccount },
): Checker {
  const { network, uptoFacilitator, channelAuthorizer } = terms
  const watched = toFacilitatorEvmSigner(signer, { confirmationTimeoutMs: RECEIPT_MS })
  const facilitator = new x402Facilitator().register(network.v2, new ExactEvmScheme(watched))
  if (uptoFacilitator !== null) facilitator.register(network.v2, new UptoEvmScheme(watched))
  if (channelAuthorizer !== null)
    facilitator.register(network.v2, createFacilitatorScheme(signer, { receiptMs: RECEIPT_MS, authorizer }))
  if (network.v1 !== null)
    // The types allow CAIP-2 networks only; version 1 look-ups use the v1 name.
    facilitator.registerV1(network.v1 as `${string}:${string}`, new ExactEvmSchemeV1(watched))
  return {
    verify: (payload, requirements) => facilitator.verify(payload, requirements),
    settle: (payload, requirements) => facilitator.settle(payload, requirements),
  }
}

/**
 * Records connection errors where they occur, because the schemes report them as invalid payments, v1 even after
 * broadcasting. Adds the payment's mark to each transaction, which identifies it later.
 */
function watchedSigner(
  signer: EvmSigner,
  { asset }: Terms,
  { attempts, deriveMark }: { attempts: Attempts; deriveMark: (id: string) => Hex },
): EvmSigner {
  const wrapRead =
    <Input, Output>(read: (input: Input) => Promise<Output>) =>
    async (input: Input) => {
      try {
        return await read(input)
      } catch (error) {
        if (isConnectionError(error)) attempts.current().isUnreachable = true
        throw error
      }
    }
  const wrapWrite =
    <Input>(write: (input: Input) => Promise<Hex>) =>
    async (input: Input) => {
      const attempt = attempts.current()
      try {
        const transaction = await write(input)
        attempt.transaction = transaction
        attempt.onTransaction(transaction)
        return transaction
      } catch (error) {
        // First: its cause may be a refused connection of the second request, or no connection error at all.
        if (isUnknownBroadcast(error)) attempt.isUnknown = true
        else if (isRefusedConnection(error)) attempt.isUnreachable = true
        else if (isConnectionError(error)) attempt.isUnknown = true
        throw error
      }
    }
  return {
    address: signer.address,
    readContract: wrapRead((call) => signer.readContract(call)),
    verifyTypedData: wrapRead((input) => signer.verifyTypedData(input)),
    // The token's contract was checked at the start. The scheme does not always await its own check of it, so that a failure
    // would end the process.
    getCode: wrapRead(async (input) =>
      input.address.toLowerCase() === asset.toLowerCase() ? SOME_CODE : signer.getCode(input),
    ),
    writeContract: wrapWrite((call: ContractCall) => {
      const dataSuffix = concat([call.dataSuffix ?? '0x', deriveMark(attempts.current().id)])
      return signer.writeContract({ ...call, dataSuffix })
    }),
    sendTransaction: wrapWrite((transaction) => signer.sendTransaction(transaction)),
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
