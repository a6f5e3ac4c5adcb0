/**
 * Sealing: adds receipts and chain positions to decisions. Receipts are signed before the transaction, so that it
 * only assigns positions. Decisions committed late are sealed late; no authentic decision is skipped. Unauthenticated
 * decisions are not signed: they raise an alarm and do not block others.
 */
import { raiseAlarm } from '../../books/alarms/alarms.ts'
import { storeCodes, type UnstoredCodes } from '../../books/spending/authenticate.ts'
import type { DecisionContent } from '../../books/spending/decision-content.ts'
import type { Clock } from '../../core/base/clock.ts'
import type { Log } from '../../core/base/log.ts'
import type { Connection, Database } from '../../storage/database.ts'
import { chainHash } from './chain.ts'
import { judgeDecision } from './judge-decision.ts'
import { signReceipt } from './receipt.ts'
import { readKeySet } from './receipt-keys.ts'
import type { SigningKey } from './signing-key.ts'
import {
  appendSeals,
  beforeFirstDecision,
  lockChain,
  type Position,
  readHead,
  readPositions,
  readUnsealed,
  readUnsealedIds,
  type SealRow,
  type UnsealedDecision,
} from './store.ts'
import { verifyNewest } from './verify-chain.ts'

/** Decisions per query. */
const PAGE = 1_000
/** Decisions per transaction. */
const BATCH = 250

export interface SealingDependencies {
  readonly database: Database
  readonly clock: Clock
  readonly log: Pick<Log, 'error'>
  readonly settings: {
    readonly dataKey: Uint8Array
    readonly receiptKey: SigningKey
    readonly origin: string
  }
  /** Stored first: a decision without a code is refused. */
  readonly unstoredCodes: UnstoredCodes
}

/** @param signal stops the round early. @returns the number of sealed decisions. */
export type SealRound = (signal: AbortSignal) => Promise<number>

interface Signed {
  readonly content: DecisionContent
  readonly receipt: string
}

/**
 * Creates the sealing rounds of one process. The first round, and the first after a failure, scans all decisions;
 * every other round starts at the oldest transaction that was open when the last one began.
 */
export function createSealRound({
  database,
  clock,
  log,
  settings,
  unstoredCodes,
}: SealingDependencies): SealRound {
  let seen: Position = beforeFirstDecision
  /** Decisions read before they were authenticated. */
  let waiting: readonly string[] = []
  /** Last verified chain head. */
  let trusted: string | undefined
  const signAll = (contents: readonly DecisionContent[]): Promise<Signed[]> =>
    Promise.all(
      contents.map(async (content) => ({
        content,
        receipt: await signReceipt(settings.receiptKey, { issuer: settings.origin, content }),
      })),
    )
  /** Selects the authentic decisions. Others raise an alarm, or are retried in the next round. */
  const filterAuthentic = async (unsealed: readonly UnsealedDecision[], missed: string[]) => {
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
  /** Verifies a head that another process wrote before extending it; a false one raises an alarm. */
  const checkHead = async (): Promise<void> => {
    const { sequence, hash } = await readHead(database)
    if (hash === trusted) return
    trusted = hash
    const fault = await verifyNewest(database, await readKeySet(database, settings.dataKey))
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
    await storeCodes(database, unstoredCodes)
    await checkHead()
    const missed: string[] = []
    const sealAll = async (ids: readonly string[]): Promise<boolean> => {
      const unsealed = ids.length === 0 ? [] : await readUnsealed(database, ids)
      const contents = await filterAuthentic(unsealed, missed)
      for (let from = 0; from < contents.length; from += BATCH) {
        if (signal.aborted) return false
        const batch = await signAll(contents.slice(from, from + BATCH))
        const added = await database.transaction((transaction) =>
          sealBatch(transaction, batch, { issuer: settings.origin, at: clock() }),
        )
        if (added === null) return false
        sealed += added.count
        // What this process has written on a head that it trusts needs no verification.
        if (added.previous === trusted) trusted = added.hash
      }
      return true
    }
    if (!(await sealAll(waiting))) return sealed
    let horizon: string | undefined
    let after = seen
    const isWhole = seen === beforeFirstDecision
    for (;;) {
      const page = await readPositions(database, { after, limit: PAGE, isWhole })
      // The first horizon is the safe one: all transactions below it are covered by the scan.
      horizon ??= page[0]?.horizon
      if (!(await sealAll(listIds(page)))) return sealed
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
      // A restored server reuses transaction numbers.
      seen = beforeFirstDecision
      throw error
    })
}

function listIds(page: readonly Position[]): string[] {
  return page.map(({ id }) => id)
}

/** Appends decisions to the chain. @returns their number, and the heads before and after; null if another process is sealing. */
async function sealBatch(
  transaction: Connection,
  batch: readonly Signed[],
  by: { issuer: string; at: Date },
): Promise<{ count: number; previous: string; hash: string } | null> {
  if (!(await lockChain(transaction))) return null
  // The previous lock holder may have sealed some of them; under the lock this check is final.
  const open = await readUnsealedIds(
    transaction,
    batch.map(({ content }) => content.decisionId),
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
  if (seals.length > 0) await appendSeals(transaction, seals, by)
  return { count: seals.length, previous: hash, hash: previous }
}
