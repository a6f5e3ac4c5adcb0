/**
 * Circle’s attestation service, Iris.
 * @see https://developers.circle.com/api-reference/cctp/all/get-messages-v2
 * @see https://developers.circle.com/api-reference/cctp/all/get-burn-usdc-fees
 * @see https://developers.circle.com/api-reference/cctp/all/reattest-message
 */
import { z } from 'zod'
import type { Hex } from '../chain/port.ts'
import { callProvider } from '../http-client.ts'
import type { Attester } from './port.ts'

const TIMEOUT_MS = 5_000
/** A basis point has so many millionths. */
const BPS = 100n
/** Most that a fee may be, in basis points; more is no answer. */
const MAX_BPS = 1_000

const hex = z.templateLiteral(['0x', z.string().regex(/^[0-9a-fA-F]*$/)])

/** Members that are not needed are not looked at. While pending, `message` is `0x` and `attestation` is `PENDING` or null. */
const messages = z.object({
  messages: z.array(
    z.object({
      message: hex.nullish(),
      attestation: z.string().nullish(),
      status: z.enum(['complete', 'pending_confirmations']),
      cctpVersion: z.int().optional(),
    }),
  ),
})

/** Fees in basis points, which may have a fraction. */
const fees = z.array(
  z.object({ finalityThreshold: z.int(), minimumFee: z.number().nonnegative().max(MAX_BPS) }),
)

/** @param url without a slash at its end. */
export function createIris({ url }: { readonly url: string }): Attester {
  const ask = async (path: string, method: 'GET' | 'POST', signal?: AbortSignal) => {
    const call = { url: `${url}${path}`, method, headers: { accept: 'application/json' } }
    const answer = await callProvider({ ...call, timeoutMs: TIMEOUT_MS, signal }).catch((cause: unknown) => {
      throw new Error(signal?.aborted === true ? 'timeout' : 'unavailable', { cause })
    })
    return { status: answer.status, body: parse(answer.text) }
  }
  return {
    async fees({ source, destination }, signal) {
      const { status, body } = await ask(`/v2/burn/USDC/fees/${source}/${destination}`, 'GET', signal)
      // Chains between which nothing is burned.
      if (status === 400 || status === 404) return { fast: null, standard: null }
      if (status !== 200) throw new Error('unavailable')
      const found = fees.safeParse(body)
      if (!found.success) throw new Error('bad_answer', { cause: found.error })
      const feeOf = (threshold: number) => {
        const fee = found.data.find(({ finalityThreshold }) => finalityThreshold === threshold)
        return fee === undefined ? null : toMillionths(fee.minimumFee)
      }
      return { fast: feeOf(1_000), standard: feeOf(2_000) }
    },
    async find({ source, transactionHash }) {
      const { status, body } = await ask(`/v2/messages/${source}?transactionHash=${transactionHash}`, 'GET')
      // It has not seen the burn yet.
      if (status === 404) return []
      if (status !== 200) throw new Error('unavailable')
      const found = messages.safeParse(body)
      if (!found.success) throw new Error('bad_answer', { cause: found.error })
      return found.data.messages.flatMap(({ status: state, message, attestation, cctpVersion = 2 }) => {
        const signed = hex.safeParse(attestation)
        const isComplete = state === 'complete' && cctpVersion === 2 && signed.success
        if (!isComplete || message === null || message === undefined || message === '0x') return []
        return [{ message, attestation: signed.data }]
      })
    },
    async renew(nonce: Hex) {
      const { status } = await ask(`/v2/reattest/${nonce}`, 'POST')
      if (status !== 200) throw new Error('unavailable')
    },
  }
}

/** Rounded up, so that a fee is never understated. */
function toMillionths(bps: number): bigint {
  const [whole = '0', fraction = ''] = bps.toFixed(6).split('.')
  const millionthsOfBps = BigInt(whole + fraction)
  const scaled = millionthsOfBps * BPS
  return (scaled + 999_999n) / 1_000_000n
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Invalid JSON does not match any schema either.
    return undefined
  }
}
