/**
 * Authenticity of decisions. The process that takes a decision signs its content with a key that the database never holds, so a
 * row that somebody else wrote or changed is never sealed. The code of the decision that a request leads to by itself goes with
 * the request and is stored with its row; where a counter or the balance decided otherwise, the code follows in a write of its
 * own, before the answer. A process that ends between the two leaves a row without a code, which the audit reports.
 */
import { timingSafeEqual } from 'node:crypto'
import { canonicalJson, toJson } from '../base/json.ts'
import type { Log } from '../base/log.ts'
import { keyedHash } from '../base/seal.ts'
import type { Connection, Statement } from '../storage/database.ts'
import { type ContentRow, contentOf, type DecisionContent, type MadeRow } from './decision-content.ts'
import type { SpendVerdict } from './reserve.ts'
import type { ReserveQueue } from './reserve-queue.ts'
import type { SpendRequest } from './spend-request.ts'

/** What authenticating needs. */
export interface AuthenticationDependencies {
  readonly dataKey: Uint8Array
  readonly log: Pick<Log, 'error'>
}

/** Authenticates decisions that a function of the database has just made and returned: rows of `decisions_made`. */
export type Vouch = (connection: Connection, made: readonly (ContentRow | MadeRow)[]) => Promise<void>

/** The authentication code of a decision: HMAC-SHA-256, hex. */
export function decisionMac(dataKey: Uint8Array, content: DecisionContent): string {
  return keyedHash(dataKey, 'decision', canonicalJson(content))
}

/** Whether a decision is as its process took it. @param mac as it is stored with the decision. */
export function isAuthentic(dataKey: Uint8Array, content: DecisionContent, mac: string | null): boolean {
  const expected = Buffer.from(decisionMac(dataKey, content))
  const found = Buffer.from(mac ?? '')
  return found.length === expected.length && timingSafeEqual(found, expected)
}

const statement: Statement = {
  name: 'decision_authenticate',
  text: `update decision d set mac = made.mac from unnest($1::text[], $2::text[]) as made (id, mac)
    where d.id = made.id and d.mac is null`,
}

/** Makes the {@link Vouch} of a process. It never throws: what stays without a code is reported, and the decision stands. */
export function createVouch({ dataKey, log }: AuthenticationDependencies): Vouch {
  return async (connection, made) => {
    if (made.length === 0) return
    const contents = made.map(contentOf)
    const macs = contents.map((content) => decisionMac(dataKey, content))
    const ids = contents.map(({ decisionId }) => decisionId)
    await connection
      .call(statement, [ids, macs])
      .catch((err: unknown) => log.error({ err, decisionIds: ids }, 'decisions could not be authenticated'))
  }
}

/** The same reserve, with every decision authenticated. */
export function authenticatedReserve(
  reserve: ReserveQueue['reserve'],
  { database, ...authenticating }: AuthenticationDependencies & { readonly database: Connection },
): ReserveQueue['reserve'] {
  const vouch = createVouch(authenticating)
  return async (request) => {
    const expected = decisionOf(request, {
      verdict: request.violations.length > 0 ? 'deny' : request.needsApproval ? 'approval_required' : 'allow',
      violations: request.violations,
      available_units: null,
    })
    const mac = decisionMac(authenticating.dataKey, contentOf(expected))
    const decided = await reserve({ ...request, mac })
    const row = otherDecision(request, decided)
    if (row !== null && canonicalJson(row) !== canonicalJson(expected)) await vouch(database, [row])
    return decided
  }
}

/** The decision where it may not be the expected one; null where it is, or was taken for an earlier call. */
function otherDecision(request: SpendRequest, decided: SpendVerdict): ContentRow | null {
  if (decided.verdict === 'deny' && !decided.replayed)
    return decisionOf(request, { verdict: 'deny', violations: decided.violations, available_units: null })
  if (decided.verdict === 'insufficient_funds' && !decided.replayed)
    return decisionOf(request, {
      verdict: 'insufficient_funds',
      violations: request.violations,
      available_units: decided.available.units,
    })
  return null
}

function decisionOf(
  { decisionId, at, accountId, key, policyHash, operation, facts }: SpendRequest,
  {
    verdict,
    violations,
    available_units,
  }: Pick<ContentRow, 'verdict' | 'available_units'> & { violations: SpendRequest['violations'] },
): ContentRow {
  return {
    id: decisionId,
    at: at.toISOString().replace('Z', '000Z'),
    account_id: accountId,
    key_id: key?.id ?? null,
    operation,
    verdict,
    policy_version: key?.policyVersion ?? null,
    policy_hash: policyHash,
    facts: toJson(facts),
    violations: toJson(violations),
    available_units,
  }
}
