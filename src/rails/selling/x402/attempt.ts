/**
 * Records one payment attempt. The stock middlewares answer 402 for every error, including errors after which money
 * may have moved, so the real outcome is recorded here.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { SettleResponse, VerifyResponse } from '@x402/core/types'

export interface Attempt {
  readonly id: string
  /** What is charged, in smallest units. */
  readonly units: bigint
  /** Amount of the payment, in smallest units: what is charged, or of `upto` the most that could be. */
  readonly agreed: bigint
  readonly deliver: () => Promise<Record<string, unknown>>
  /** Called with the hash as soon as this process has broadcast a transaction. */
  readonly onTransaction: (transaction: string) => void
  delivered: Record<string, unknown> | null
  /** Error thrown by `deliver`; the payment is not settled in this case. */
  deliveryError: { readonly thrown: unknown } | null
  verification: VerifyResponse | null
  /** Settlement is started at most once, even if the middleware calls it again. */
  settling: Promise<SettleResponse> | null
  settlement: SettleResponse | null
  /** Hash of the transaction that this process broadcast. */
  transaction: string | null
  /** The chain or the facilitator was unreachable, so nothing was broadcast. */
  isUnreachable: boolean
  /** A transaction may have been broadcast with unknown outcome. */
  isUnknown: boolean
  /** State of the payment's channel, for a client whose own is behind. */
  correction: Readonly<Record<string, unknown>> | null
}

export interface Attempts {
  begin(
    parts: Pick<Attempt, 'id' | 'units' | 'agreed' | 'deliver' | 'onTransaction'>,
    work: (attempt: Attempt) => Promise<Response>,
  ): Promise<{ readonly attempt: Attempt; readonly response: Response }>
  /** Runs work for an attempt whose id arrived over the private listener. */
  resume<Result>(id: string, work: () => Promise<Result>): Promise<Result>
  /** The current attempt. @throws Error outside of any attempt, which is a bug. */
  current(): Attempt
}

export function createAttempts(): Attempts {
  const byId = new Map<string, Attempt>()
  const storage = new AsyncLocalStorage<Attempt>()
  const requireAttempt = (attempt: Attempt | undefined): Attempt => {
    if (attempt === undefined) throw new Error('called outside of a payment attempt')
    return attempt
  }
  return {
    begin: async (parts, work) => {
      const attempt: Attempt = {
        ...parts,
        delivered: null,
        deliveryError: null,
        verification: null,
        settling: null,
        settlement: null,
        transaction: null,
        isUnreachable: false,
        isUnknown: false,
        correction: null,
      }
      byId.set(attempt.id, attempt)
      try {
        return { attempt, response: await storage.run(attempt, () => work(attempt)) }
      } finally {
        byId.delete(attempt.id)
      }
    },
    resume: (id, work) => storage.run(requireAttempt(byId.get(id)), work),
    current: () => requireAttempt(storage.getStore()),
  }
}
