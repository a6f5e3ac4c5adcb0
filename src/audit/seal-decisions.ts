/**
 * Sealing: decisions get their receipt and their place in the chain. Receipts are signed before the transaction, which then
 * only takes places: nobody waits for a signature. A decision that was committed late is sealed late, and none is left out.
 */
import type { Clock } from '../clock.ts'
import type { Connection, Database } from '../storage/database.ts'
import { chainHash } from './chain.ts'
import type { DecisionContent } from './content.ts'
import { signReceipt } from './receipt.ts'
import { type SigningKey, signingKeyOf } from './signing-key.ts'
import {
  appendSeals,
  beginning,
  lockChain,
  type Position,
  readHead,
  readPositions,
  readUnsealed,
  type SealRow,
} from './store.ts'

/** Decisions that are looked at in one statement. */
const PAGE = 1_000
/** Decisions that are sealed in one transaction. */
const BATCH = 250

/** What sealing needs. */
export interface Sealing {
  readonly database: Database
  readonly clock: Clock
  readonly settings: { readonly dataKey: Uint8Array; readonly origin: string }
}

/** One round of sealing. @param signal ends it early. @returns how many decisions it sealed. */
export type SealRound = (signal: AbortSignal) => Promise<number>

/** A decision whose receipt is signed. */
interface Signed {
  readonly content: DecisionContent
  readonly receipt: string
}

/**
 * Makes the rounds of one process. It remembers how far it has seen everything: the first round walks all decisions, and so
 * does the one after a failure; every other one starts where transactions were still open when the last one began.
 */
export function createSealRound({ database, clock, settings }: Sealing): SealRound {
  let seen: Position = beginning
  let key: Promise<SigningKey> | undefined
  const signAll = async (contents: readonly DecisionContent[]): Promise<Signed[]> => {
    key ??= signingKeyOf(settings.dataKey)
    const signingKey = await key
    return Promise.all(
      contents.map(async (content) => ({
        content,
        receipt: await signReceipt(signingKey, { issuer: settings.origin, content }),
      })),
    )
  }
  const walk = async (signal: AbortSignal): Promise<number> => {
    let sealed = 0
    let horizon: string | undefined
    let after = seen
    const isWhole = seen === beginning
    for (;;) {
      const page = await readPositions(database, { after, limit: PAGE, isWhole })
      // Later statements see more, never less: what was finished before the first of them has been walked at the end.
      horizon ??= page[0]?.horizon
      const unsealed = page.length === 0 ? [] : await readUnsealed(database, idsOf(page))
      for (let from = 0; from < unsealed.length; from += BATCH) {
        if (signal.aborted) return sealed
        const batch = await signAll(unsealed.slice(from, from + BATCH))
        const count = await database.transaction((transaction) => sealBatch(transaction, batch, clock()))
        if (count === null) return sealed
        sealed += count
      }
      const last = page.at(-1)
      if (last === undefined || page.length < PAGE) break
      after = last
      if (signal.aborted) return sealed
    }
    if (horizon !== undefined) seen = { writer: horizon, id: '' }
    return sealed
  }
  return (signal) =>
    walk(signal).catch((error: unknown) => {
      // A server that was restored meanwhile gives its numbers out again.
      seen = beginning
      throw error
    })
}

function idsOf(page: readonly Position[]): string[] {
  return page.map(({ id }) => id)
}

/** Puts decisions at the end of the chain. @returns how many; null where another process is sealing. */
async function sealBatch(
  transaction: Connection,
  batch: readonly Signed[],
  at: Date,
): Promise<number | null> {
  if (!(await lockChain(transaction))) return null
  // Whoever had the lock before may have sealed some of them: only now nobody can any more.
  const open = new Set(
    (
      await readUnsealed(
        transaction,
        batch.map(({ content }) => content.decisionId),
      )
    ).map(({ decisionId }) => decisionId),
  )
  const { sequence, hash } = await readHead(transaction)
  const seals: SealRow[] = []
  let previous = hash
  for (const { content, receipt } of batch.filter(({ content }) => open.has(content.decisionId))) {
    const next = chainHash(previous, content)
    seals.push({
      sequence: sequence + BigInt(seals.length + 1),
      decisionId: content.decisionId,
      previous,
      hash: next,
      receipt,
    })
    previous = next
  }
  if (seals.length > 0) await appendSeals(transaction, seals, at)
  return seals.length
}
