/** Wakes the streams of this gateway when their account has new events, whichever gateway published them. */
import { timers } from '../../core/base/timers.ts'
import type { Connection, Statement } from '../../storage/database.ts'

/** A watched account. */
export interface EventWatch {
  /** The account's last sequence that is known. */
  readonly head: () => bigint
  /** Waits until the account has an event after `sequence`, for a time at most, or until the signal aborts. */
  wait(sequence: bigint, ms: number, signal: AbortSignal): Promise<void>
  close(): void
}

export interface EventWatches {
  /** @returns undefined when the account already has as many watches here as it may have. */
  open(accountId: string): EventWatch | undefined
  /** Reads the last sequences of all watched accounts in one query, and wakes those that have grown. */
  check(): Promise<void>
}

const statement: Statement = {
  name: 'events_heads',
  text: 'select account_id, last_sequence from event_head where account_id = any($1::text[])',
}

/** @param perAccount streams of one account on this gateway at most. */
export function createEventWatches(
  database: Pick<Connection, 'call'>,
  { perAccount = 20 }: { perAccount?: number } = {},
): EventWatches {
  const accounts = new Map<string, { head: bigint; open: number; waiting: Set<() => void> }>()
  return {
    open: (accountId) => {
      const account = accounts.get(accountId) ?? { head: 0n, open: 0, waiting: new Set() }
      if (account.open >= perAccount) return undefined
      account.open += 1
      accounts.set(accountId, account)
      let isOpen = true
      return {
        head: () => account.head,
        wait: (sequence, ms, signal) =>
          new Promise((resolve) => {
            if (account.head > sequence || signal.aborted) return resolve()
            const wake = () => {
              cancel()
              account.waiting.delete(wake)
              signal.removeEventListener('abort', wake)
              resolve()
            }
            const cancel = timers.after(ms, wake)
            account.waiting.add(wake)
            signal.addEventListener('abort', wake, { once: true })
          }),
        close: () => {
          if (!isOpen) return
          isOpen = false
          account.open -= 1
          if (account.open === 0) accounts.delete(accountId)
        },
      }
    },
    check: async () => {
      if (accounts.size === 0) return
      const heads = await database.call<{ account_id: string; last_sequence: bigint }>(statement, [
        [...accounts.keys()],
      ])
      for (const { account_id: id, last_sequence: last } of heads) {
        const account = accounts.get(id)
        if (account === undefined || last <= account.head) continue
        account.head = last
        for (const wake of [...account.waiting]) wake()
      }
    },
  }
}
