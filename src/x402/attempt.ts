/**
 * One attempt to pay, as the parts that take part in it report it. The stock middlewares make a 402 of every trouble, also
 * of those in which money may have moved; so what really happened is written down here, beside them.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { SettleResponse, VerifyResponse } from '@x402/core/types'

/** What happened so far. */
export interface Attempt {
  readonly id: string
  /** What it costs, in smallest units. */
  readonly units: bigint
  readonly deliver: () => Promise<Record<string, unknown>>
  /** Is told of what this process broadcasts, as soon as it has. */
  readonly onTransaction: (transaction: string) => void
  delivered: Record<string, unknown> | null
  /** What delivering threw; nothing is settled then. */
  deliveryError: { readonly thrown: unknown } | null
  verification: VerifyResponse | null
  /** Begun at most once, whoever asks again. */
  settling: Promise<SettleResponse> | null
  settlement: SettleResponse | null
  /** What this process broadcast, if it did. */
  transaction: string | null
  /** Somebody could not be reached, and nothing was broadcast because of it. */
  isUnreachable: boolean
  /** A transaction may have been broadcast; nobody knows what became of it. */
  isUnknown: boolean
}

/** The attempts that are under way. */
export interface Attempts {
  /** Runs work as part of a new attempt. */
  begin(
    parts: Pick<Attempt, 'id' | 'units' | 'deliver' | 'onTransaction'>,
    work: (attempt: Attempt) => Promise<Response>,
  ): Promise<{ readonly attempt: Attempt; readonly response: Response }>
  /** Runs work as part of an attempt that came in by its id, over the private listener. */
  resume<Result>(id: string, work: () => Promise<Result>): Promise<Result>
  /** The attempt that the caller is part of. @throws Error outside of any: a bug. */
  current(): Attempt
}

/** An empty register of attempts. */
export function createAttempts(): Attempts {
  const byId = new Map<string, Attempt>()
  const storage = new AsyncLocalStorage<Attempt>()
  const required = (attempt: Attempt | undefined): Attempt => {
    if (attempt === undefined) throw new Error('not part of any attempt to pay')
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
      }
      byId.set(attempt.id, attempt)
      try {
        return { attempt, response: await storage.run(attempt, () => work(attempt)) }
      } finally {
        byId.delete(attempt.id)
      }
    },
    resume: (id, work) => storage.run(required(byId.get(id)), work),
    current: () => required(storage.getStore()),
  }
}
