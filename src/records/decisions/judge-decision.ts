/** Judges decisions that are not sealed yet. */

import { isAuthentic } from '../../books/spending/authenticate.ts'
import { readIdTime } from '../../core/base/ids.ts'
import type { Connection } from '../../storage/database.ts'
import { type UnsealedDecision, unsealedPages } from './store.ts'

/**
 * The authentication code of a denial is written within a round trip, or once the database is back; after this time it is
 * considered missing.
 */
const AUTHENTICATED_WITHIN_MS = 5 * 60_000
/** Decision ids carry the time of the decision. */
const ID_TOLERANCE_MS = 5 * 60_000
/** Decisions are usually sealed within seconds, and later only after an outage. */
const SEALED_WITHIN_MS = 60 * 60_000
/** Instances share the database's clock, so a later decision time is suspicious. */
const AHEAD_MS = 5 * 60_000

/**
 * `seal`: authentic; `fault` marks a suspicious time, or is null. `refuse`: never signed. `wait`: its process may
 * still authenticate it.
 */
export type Judgement =
  | { readonly verdict: 'seal'; readonly fault: 'sealed_late' | 'dated_ahead' | null }
  | { readonly verdict: 'refuse'; readonly fault: 'not_authentic' | 'unauthenticated' | 'id_of_another_time' }
  | { readonly verdict: 'wait' }

/** @param now by the clock. @param calendar its time by the calendar, which a sandbox sets ahead: decisions are dated by either. */
export function judgeDecision(
  dataKey: Uint8Array,
  { content, mac }: UnsealedDecision,
  { now, calendar }: { now: Date; calendar: Date },
): Judgement {
  const at = Date.parse(content.at)
  const [age, ahead] = [now.getTime() - at, at - calendar.getTime()]
  if (mac === null)
    return [age, ahead].some((difference) => Math.abs(difference) < AUTHENTICATED_WITHIN_MS)
      ? { verdict: 'wait' }
      : { verdict: 'refuse', fault: 'unauthenticated' }
  if (!isAuthentic(dataKey, content, mac)) return { verdict: 'refuse', fault: 'not_authentic' }
  const idTime = readIdTime(content.decisionId)?.getTime()
  if (idTime === undefined || Math.abs(idTime - at) > ID_TOLERANCE_MS)
    return { verdict: 'refuse', fault: 'id_of_another_time' }
  const fault = age > SEALED_WITHIN_MS ? 'sealed_late' : ahead > AHEAD_MS ? 'dated_ahead' : null
  return { verdict: 'seal', fault }
}

/**
 * Audits unsealed decisions. @param dataKey null if unknown; authenticity cannot be checked then. @returns the number
 * awaiting their seal, and the refused ones.
 */
export async function auditUnsealed(
  database: Connection,
  { dataKey, now }: { dataKey: Uint8Array | null; now: Date },
): Promise<{ count: bigint; refused: readonly { id: string; why: string }[] }> {
  let count = 0n
  const refused: { id: string; why: string }[] = []
  for await (const page of unsealedPages(database))
    for (const decision of page) {
      const judged = dataKey === null ? null : judgeDecision(dataKey, decision, { now, calendar: now })
      if (judged?.verdict === 'refuse') refused.push({ id: decision.content.decisionId, why: judged.fault })
      else count += 1n
    }
  return { count, refused }
}
