/**
 * Authenticity of decisions. The process that makes a decision signs its content with a key the database never holds,
 * so rows written or changed by others never carry a valid code. The code of the expected decision is sent with the
 * request and stored with its row. If a counter or the balance changes the decision, a second write stores the right
 * code before the answer is sent; where the database is lost just then, the next round of sealing does. A process that ends
 * between the two writes leaves a row without a code, which the audit reports.
 */
import { timingSafeEqual } from 'node:crypto'
import { canonicalJson, toJson } from '../../core/base/json.ts'
import type { Log } from '../../core/base/log.ts'
import { keyedHash } from '../../core/base/seal.ts'
import type { Connection, Statement } from '../../storage/database.ts'
import {
  type ContentRow,
  canonicalContent,
  type DecisionContent,
  type MadeRow,
  toContent,
} from './decision-content.ts'
import type { SpendVerdict } from './reserve.ts'
import type { Reserve } from './reserve-queue.ts'
import type { SpendRequest } from './spend-request.ts'

export interface AuthenticationDependencies {
  readonly dataKey: Uint8Array
  readonly log: Pick<Log, 'error'>
  readonly unstoredCodes: UnstoredCodes
}

/** Authentication codes that this process could not store, by decision id. */
export type UnstoredCodes = Map<string, string>

/** Authenticates decisions that a database function has just made and returned as rows of `decisions_made`. */
export type AuthenticateDecisions = (
  connection: Connection,
  made: readonly (ContentRow | MadeRow)[],
) => Promise<void>

/** Authentication code of a decision: HMAC-SHA-256, hex. */
export function decisionMac(dataKey: Uint8Array, content: DecisionContent): string {
  return keyedHash(dataKey, 'decision', canonicalContent(content))
}

/** Verifies a decision against its authentication code. @param mac code stored with the decision. */
export function isAuthentic(dataKey: Uint8Array, content: DecisionContent, mac: string | null): boolean {
  const expected = Buffer.from(decisionMac(dataKey, content))
  const found = Buffer.from(mac ?? '')
  return found.length === expected.length && timingSafeEqual(found, expected)
}

const statement: Statement = {
  name: 'decision_authenticate',
  text: 'select id from decisions_authenticate($1)',
}

/** Creates the {@link AuthenticateDecisions} of a process. It never throws: a code that is not stored now is stored later. */
export function createDecisionAuthenticator({
  dataKey,
  log,
  unstoredCodes,
}: AuthenticationDependencies): AuthenticateDecisions {
  const store = async (connection: Connection, id: string, mac: string) => {
    try {
      await connection.gather<{ id: string }>(statement, { id, mac })
    } catch (err) {
      unstoredCodes.set(id, mac)
      log.error({ err, decisionId: id }, 'a decision could not be authenticated yet')
    }
  }
  return async (connection, made) => {
    const contents = made.map(toContent)
    await Promise.all(
      contents.map((content) => store(connection, content.decisionId, decisionMac(dataKey, content))),
    )
  }
}

/** Stores the codes that could not be stored before. @throws Failure `provider_unavailable`, and keeps them. */
export async function storeCodes(connection: Connection, unstoredCodes: UnstoredCodes): Promise<void> {
  if (unstoredCodes.size === 0) return
  const codes = [...unstoredCodes].map(([id, mac]) => ({ id, mac }))
  await connection.call(statement, [JSON.stringify(codes)])
  for (const { id } of codes) unstoredCodes.delete(id)
}

/** Wraps a reserve so that every decision is authenticated. */
export function authenticatedReserve(
  reserve: Reserve,
  { database, ...dependencies }: AuthenticationDependencies & { readonly database: Connection },
): Reserve {
  const vouch = createDecisionAuthenticator(dependencies)
  return async (request) => {
    const expected = expectedDecision(request)
    const mac = decisionMac(dependencies.dataKey, toContent(expected))
    const decided = await reserve({ ...request, mac })
    const row = otherDecision(request, decided)
    if (row !== null && canonicalJson(row) !== canonicalJson(expected)) await vouch(database, [row])
    return decided
  }
}

/** Authentication code of the decision that a request leads to unless a counter or the balance objects. */
export function expectedMac(dataKey: Uint8Array, request: SpendRequest): string {
  return decisionMac(dataKey, toContent(expectedDecision(request)))
}

function expectedDecision(request: SpendRequest): ContentRow {
  const { violations, needsApproval } = request
  const verdict = violations.length > 0 ? 'deny' : needsApproval ? 'approval_required' : 'allow'
  return toDecision(request, { verdict, violations, available_units: null })
}

/** Returns the decision that may differ from the expected one; null when it matches or belongs to an earlier call. */
function otherDecision(request: SpendRequest, decided: SpendVerdict): ContentRow | null {
  if (decided.verdict === 'deny' && !decided.replayed)
    return toDecision(request, { verdict: 'deny', violations: decided.violations, available_units: null })
  if (decided.verdict === 'allow' && decided.overruled !== undefined)
    return toDecision(request, { verdict: 'allow', violations: decided.overruled, available_units: null })
  if (decided.verdict === 'insufficient_funds' && !decided.replayed)
    return toDecision(request, {
      verdict: 'insufficient_funds',
      violations: decided.overruled ?? [],
      available_units: decided.available.units,
    })
  return null
}

function toDecision(
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
