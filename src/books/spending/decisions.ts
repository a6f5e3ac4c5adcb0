/** Reads of recorded decisions. */
import { sql } from 'kysely'
import { z } from 'zod'
import type { Violation } from '../../core/failures/failure.ts'
import { type Connection, callForRow, type Statement } from '../../storage/database.ts'
import { isAuthentic } from './authenticate.ts'
import { type ContentRow, contentColumns, toContent } from './decision-content.ts'
import type { IdempotentCall } from './idempotency.ts'
import { violationView } from './violation-view.ts'

const recorded = z.looseObject({ found: z.unknown() })

/** Reads what a spend had looked up before its decision. */
export async function findDecisionFacts(database: Connection, decisionId: string): Promise<unknown> {
  const { facts } = await database.kysely
    .selectFrom('decision')
    .select('facts')
    .where('id', '=', decisionId)
    .executeTakeFirstOrThrow()
  return recorded.parse(facts).found
}

/** Finds the task that a decision is labeled with; null: none. */
export async function findDecisionTask({ kysely }: Connection, decisionId: string): Promise<string | null> {
  const row = await kysely
    .selectFrom('decision')
    .select(sql<string | null>`facts->>'task'`.as('task'))
    .where('id', '=', decisionId)
    .executeTakeFirst()
  return row?.task ?? null
}

/** Reads the rules that a denied spend violated. */
export async function findViolations(
  database: Connection,
  decisionId: string,
): Promise<readonly Violation[]> {
  const { violations } = await database.kysely
    .selectFrom('decision')
    .select('violations')
    .where('id', '=', decisionId)
    .executeTakeFirstOrThrow()
  return z.array(violationView).parse(violations)
}

const contentById: Statement = {
  name: 'decision_content',
  text: `select ${contentColumns}, d.mac from decision d where d.id = $1`,
}

/**
 * Reads the facts of an allowed decision, to act on them again. @throws when this gateway did not decide it so: its row was
 * written or changed by others.
 */
export async function findAuthenticFacts(
  database: Connection,
  { dataKey, decisionId, accountId }: { dataKey: Uint8Array; decisionId: string; accountId: string },
): Promise<unknown> {
  const row = await callForRow<ContentRow & { mac: string | null }>(database, contentById, [decisionId])
  const content = toContent(row)
  const isOurs =
    isAuthentic(dataKey, content, row.mac) && content.accountId === accountId && content.verdict === 'allow'
  if (!isOurs) throw new Error(`the decision ${decisionId} is not authentic`)
  return recorded.parse(content.facts).found
}

/** Finds the decision that allowed an earlier spend with this key and input. */
export async function findAllowedDecision(
  database: Connection,
  call: IdempotentCall,
): Promise<string | undefined> {
  const row = await selectDecision(database, call).where('decision.verdict', '=', 'allow').executeTakeFirst()
  return row?.id
}

/** Retention of an idempotency key: 24 hours. */
const RETENTION_MS = 24 * 60 * 60 * 1000

/** Checks whether an idempotency key belongs to a spend of the owner's money that is allowed or awaits approval. */
export async function isSpendDecided(
  database: Connection,
  call: IdempotentCall,
  now: Date,
): Promise<boolean> {
  const row = await selectDecision(database, call)
    .where(({ or, eb }) =>
      or([
        eb('idempotency.created_at', '>=', new Date(now.getTime() - RETENTION_MS)),
        sql<boolean>`spend_is_open(decision.id, ${now})`,
      ]),
    )
    .where('decision.verdict', 'in', ['allow', 'approval_required'])
    .executeTakeFirst()
  return row !== undefined
}

/** The decision on a spend with an idempotency key and input. */
function selectDecision({ kysely }: Connection, { principal, key, fingerprint }: IdempotentCall) {
  return kysely
    .selectFrom('idempotency')
    .innerJoin('decision', 'decision.id', 'idempotency.decision_id')
    .select('decision.id')
    .where('idempotency.principal', '=', principal)
    .where('idempotency.key', '=', key)
    .where('idempotency.fingerprint', '=', fingerprint)
}
