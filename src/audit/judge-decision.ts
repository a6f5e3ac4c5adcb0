/** What is wrong with a decision that is not sealed yet. */
import { timeOfId } from '../base/ids.ts'
import { isAuthentic } from '../spending/authenticate.ts'
import type { Connection } from '../storage/database.ts'
import { type UnsealedDecision, unsealedPages } from './store.ts'

/** The code of a denial follows its row within a round trip: what has none after this has none for good. */
const AUTHENTICATED_WITHIN_MS = 60_000
/** The id of a decision is made for the moment that the decision is taken for. */
const ID_TOLERANCE_MS = 5 * 60_000
/** Decisions are sealed within seconds; after an outage it may be longer. */
const SEALED_WITHIN_MS = 60 * 60_000
/** Instances share the database's clock. */
const AHEAD_MS = 5 * 60_000

/**
 * A judgement. `seal`: it is authentic; `fault` is a place in time that a person should look at, or null. `refuse`: it is not
 * signed. `wait`: its process may still authenticate it.
 */
export type Judgement =
  | { readonly verdict: 'seal'; readonly fault: 'sealed_late' | 'dated_ahead' | null }
  | { readonly verdict: 'refuse'; readonly fault: 'not_authentic' | 'unauthenticated' | 'id_of_another_time' }
  | { readonly verdict: 'wait' }

/** Judges a decision without a seal. */
export function judgeDecision(dataKey: Uint8Array, { content, mac }: UnsealedDecision, now: Date): Judgement {
  const at = Date.parse(content.at)
  const age = now.getTime() - at
  if (mac === null)
    return Math.abs(age) < AUTHENTICATED_WITHIN_MS
      ? { verdict: 'wait' }
      : { verdict: 'refuse', fault: 'unauthenticated' }
  if (!isAuthentic(dataKey, content, mac)) return { verdict: 'refuse', fault: 'not_authentic' }
  const idTime = timeOfId(content.decisionId)?.getTime()
  if (idTime === undefined || Math.abs(idTime - at) > ID_TOLERANCE_MS)
    return { verdict: 'refuse', fault: 'id_of_another_time' }
  const fault = age > SEALED_WITHIN_MS ? 'sealed_late' : age < -AHEAD_MS ? 'dated_ahead' : null
  return { verdict: 'seal', fault }
}

/**
 * Audits the decisions without a seal. @param dataKey null where it is not known: then nothing can be told from a forgery.
 * @returns how many wait for their seal, and those that never get one.
 */
export async function auditUnsealed(
  database: Connection,
  { dataKey, now }: { dataKey: Uint8Array | null; now: Date },
): Promise<{ count: bigint; refused: readonly { id: string; why: string }[] }> {
  let count = 0n
  const refused: { id: string; why: string }[] = []
  for await (const page of unsealedPages(database))
    for (const decision of page) {
      const judged = dataKey === null ? null : judgeDecision(dataKey, decision, now)
      if (judged?.verdict === 'refuse') refused.push({ id: decision.content.decisionId, why: judged.fault })
      else count += 1n
    }
  return { count, refused }
}
