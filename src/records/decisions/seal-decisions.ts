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
  readNewestSealed,
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
/** Pages of older decisions between two looks at the newest. */
const OLDER_PAGES = 20
/** Transactions before the newest sealed decision that may have been open as it was sealed. */
const RECENT_TRANSACTIONS = 10_000n

export interface SealingDependencies {
  readonly database: Database
  readonly clock: Clock
  readonly onCalendar: (at: Date) => Date
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
 * Creates the sealing rounds of one process. A round starts at the oldest transaction that was open when the last one began. The
 * first, and the first after a failure, starts a little before the newest seal, and then looks through all older decisions too, while
 * it seals new ones in between: millions take minutes.
 */
export function createSealRound({
  database,
  clock,
  onCalendar,
  log,
  settings,
  unstoredCodes,
}: SealingDependencies): SealRound {
  /** How far the newest are sealed; undefined: not known. */
  let seen: Position | undefined
  /** How far all were looked through since the start; undefined: to the end. */
  let older: Position | undefined = beforeFirstDecision
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
      const now = clock()
      const judged = judgeDecision(settings.dataKey, decision, { now, calendar: onCalendar(now) })
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
  /** @returns the transaction to start from: that of the newest seal, or of now on a server that counts again from a lower number. */
  const findStart = async (): Promise<Position> => {
    const { sealed, horizon } = await readNewestSealed(database)
    const newest = sealed === null || BigInt(sealed) > BigInt(horizon) ? BigInt(horizon) : BigInt(sealed)
    return { writer: `${newest > RECENT_TRANSACTIONS ? newest - RECENT_TRANSACTIONS : 0n}`, id: '' }
  }
  const walk = async (signal: AbortSignal): Promise<number> => {
    let sealed = 0
    const sealAll = async (ids: readonly string[], missed: string[]): Promise<boolean> => {
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
    const sealNewest = async (): Promise<boolean> => {
      await storeCodes(database, unstoredCodes)
      await checkHead()
      const missed: string[] = []
      if (!(await sealAll(waiting, missed))) return false
      let horizon: string | undefined
      let after = seen ?? (await findStart())
      // What is written from here on is covered, even if there is nothing yet.
      seen ??= after
      for (;;) {
        const page = await readPositions(database, { after, limit: PAGE, isWhole: false })
        // The first horizon is the safe one: all transactions below it are covered by the scan.
        horizon ??= page[0]?.horizon
        if (!(await sealAll(listIds(page), missed))) return false
        const last = page.at(-1)
        if (last === undefined || page.length < PAGE) break
        after = last
        if (signal.aborted) return false
      }
      if (horizon !== undefined) seen = { writer: horizon, id: '' }
      waiting = [...new Set(missed)]
      return true
    }
    const sealOlder = async (): Promise<boolean> => {
      for (let pages = 0; older !== undefined && pages < OLDER_PAGES; pages += 1) {
        const missed: string[] = []
        const page = await readPositions(database, { after: older, limit: PAGE, isWhole: true })
        if (signal.aborted || !(await sealAll(listIds(page), missed))) return false
        waiting = [...new Set([...waiting, ...missed])]
        older = page.length < PAGE ? undefined : page.at(-1)
      }
      return older !== undefined
    }
    while ((await sealNewest()) && (await sealOlder())) {
      // Until all are looked through.
    }
    return sealed
  }
  return (signal) =>
    walk(signal).catch((error: unknown) => {
      // A restored server reuses transaction numbers.
      seen = undefined
      older = beforeFirstDecision
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
