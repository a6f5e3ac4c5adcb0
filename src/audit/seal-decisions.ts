/**
 * Sealing: decisions get their receipt and their place in the chain. Receipts are signed before the transaction, which then
 * only takes places: nobody waits for a signature. A decision that was committed late is sealed late, and no authentic one is left
 * out. What no gateway has authenticated is not signed: it raises an alarm and keeps nothing else from being sealed.
 */
import { raiseAlarm } from '../alarms/alarms.ts'
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { DecisionContent } from '../spending/decision-content.ts'
import type { Connection, Database } from '../storage/database.ts'
import { chainHash } from './chain.ts'
import { judgeDecision } from './judge-decision.ts'
import { signReceipt } from './receipt.ts'
import { type SigningKey, signingKeyOf } from './signing-key.ts'
import {
  appendSeals,
  beforeFirstDecision,
  lockChain,
  type Position,
  readHead,
  readPositions,
  readUnsealed,
  type SealRow,
  type UnsealedDecision,
} from './store.ts'
import { verifyNewest } from './verify-chain.ts'

/** Decisions that are looked at in one statement. */
const PAGE = 1_000
/** Decisions that are sealed in one transaction. */
const BATCH = 250

/** What sealing needs. */
export interface SealingDependencies {
  readonly database: Database
  readonly clock: Clock
  readonly log: Pick<Log, 'error'>
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
export function createSealRound({ database, clock, log, settings }: SealingDependencies): SealRound {
  let seen: Position = beforeFirstDecision
  /** Decisions that were seen before they were authenticated. */
  let waiting: readonly string[] = []
  /** The head of the chain that was verified last. */
  let trusted: string | undefined
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
  /** Those that may be signed. The others raise an alarm, or are looked at again in the next round. */
  const authenticOf = async (unsealed: readonly UnsealedDecision[], missed: string[]) => {
    const contents: DecisionContent[] = []
    for (const decision of unsealed) {
      const { content, mac } = decision
      const judged = judgeDecision(settings.dataKey, decision, clock())
      if (judged.verdict === 'wait') missed.push(content.decisionId)
      else if (judged.fault !== null)
        await raiseAlarm(
          { database, log },
          {
            domain: 'audit',
            objectId: content.decisionId,
            reason: judged.fault,
            reported: { ...content, mac },
            at: clock(),
          },
        )
      if (judged.verdict === 'seal') contents.push(content)
    }
    return contents
  }
  /** Somebody else's seal at the head is verified before more is built on it; a false one is reported, and verification names it. */
  const checkHead = async (): Promise<void> => {
    const { sequence, hash } = await readHead(database)
    if (hash === trusted) return
    trusted = hash
    key ??= signingKeyOf(settings.dataKey)
    const fault = await verifyNewest(database, (await key).keySet)
    if (fault === null) return
    const { kind, detail, decisionId } = fault
    const reported = { kind, detail, decisionId, hash }
    const alarm = {
      domain: 'audit',
      objectId: `seal ${sequence}`,
      reason: 'seal_not_authentic',
      reported,
    } as const
    await raiseAlarm({ database, log }, { ...alarm, at: clock() })
  }
  const walk = async (signal: AbortSignal): Promise<number> => {
    let sealed = 0
    await checkHead()
    const missed: string[] = []
    const sealAll = async (ids: readonly string[]): Promise<boolean> => {
      const unsealed = ids.length === 0 ? [] : await readUnsealed(database, ids)
      const contents = await authenticOf(unsealed, missed)
      for (let from = 0; from < contents.length; from += BATCH) {
        if (signal.aborted) return false
        const batch = await signAll(contents.slice(from, from + BATCH))
        const count = await database.transaction((transaction) => sealBatch(transaction, batch, clock()))
        if (count === null) return false
        sealed += count
      }
      return true
    }
    if (!(await sealAll(waiting))) return sealed
    let horizon: string | undefined
    let after = seen
    const isWhole = seen === beforeFirstDecision
    for (;;) {
      const page = await readPositions(database, { after, limit: PAGE, isWhole })
      // Later statements see more, never less: what was finished before the first of them has been walked at the end.
      horizon ??= page[0]?.horizon
      if (!(await sealAll(idsOf(page)))) return sealed
      const last = page.at(-1)
      if (last === undefined || page.length < PAGE) break
      after = last
      if (signal.aborted) return sealed
    }
    if (horizon !== undefined) seen = { writer: horizon, id: '' }
    waiting = [...new Set(missed)]
    return sealed
  }
  return (signal) =>
    walk(signal).catch((error: unknown) => {
      // A server that was restored meanwhile gives its numbers out again.
      seen = beforeFirstDecision
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
    ).map(({ content }) => content.decisionId),
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
