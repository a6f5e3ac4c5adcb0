/** Stored identity reviews; personal data is sealed. */
import { type Expression, type ExpressionBuilder, type SqlBool, sql } from 'kysely'
import { z } from 'zod'
import type { Page } from '../../core/base/page.ts'
import { seal, unseal } from '../../core/base/seal.ts'
import type { Connection } from '../../storage/database.ts'
import type { KycApplicationTable, Schema } from '../../storage/schema.ts'

const PURPOSE = 'kyc'

/** Application data submitted so far; any member may be missing. */
export const partialApplicant = z.object({
  applicant: z
    .object({
      firstName: z.string(),
      lastName: z.string(),
      dateOfBirth: z.string(),
      country: z.string(),
      address: z.string(),
      /** The address by its parts; without members when it was given as one line. */
      residence: z
        .object({ street: z.string(), city: z.string(), postalCode: z.string(), state: z.string() })
        .partial(),
      email: z.string(),
      phone: z.string(),
    })
    .partial(),
  documents: z.array(z.object({ type: z.string(), country: z.string(), reference: z.string() })),
})

export type PartialApplicant = z.output<typeof partialApplicant>

/** One review. @property said submitted data; null once erased. */
export interface KycApplication {
  readonly id: string
  readonly accountId: string
  readonly level: 'basic' | 'full'
  readonly status: KycApplicationTable['status']
  readonly labels: readonly string[]
  readonly said: PartialApplicant | null
  readonly reference: string | null
  readonly reviewedAt: Date | null
}

interface Keeping {
  readonly database: Connection
  readonly dataKey: Uint8Array
}

/**
 * Finds an account's application for a level, preferring one not in `retry`, then the newest.
 * @param isLocked locks it until the transaction ends.
 */
export async function findApplication(
  { database, dataKey }: Keeping,
  { accountId, level, isLocked = false }: { accountId: string; level: 'basic' | 'full'; isLocked?: boolean },
): Promise<KycApplication | undefined> {
  const query = database.kysely
    .selectFrom('kyc_application')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('level', '=', level)
    .orderBy(sql`status = 'retry'`)
    .orderBy('id', 'desc')
    .limit(1)
  const row = await (isLocked ? query.forUpdate() : query).executeTakeFirst()
  return row === undefined ? undefined : parseApplication(dataKey, row)
}

/**
 * Finds the application that blocks an account at every level: a rejection, which is permanent, or an undecided hit,
 * even if erased.
 */
export async function findBlockingApplication(
  { database, dataKey }: Keeping,
  { accountId, labels }: { accountId: string; labels: readonly string[] },
): Promise<KycApplication | undefined> {
  const row = await database.kysely
    .selectFrom('kyc_application')
    .selectAll()
    .where('account_id', '=', accountId)
    .where((where) => where.or([where('status', '=', 'rejected'), isUndecided(where, labels)]))
    .orderBy(sql`status = 'rejected'`, 'desc')
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row === undefined ? undefined : parseApplication(dataKey, row)
}

function isUndecided(
  { eb, and, not, exists, selectFrom }: ExpressionBuilder<Schema, 'kyc_application'>,
  labels: readonly string[],
): Expression<SqlBool> {
  return and([
    eb('status', '=', 'pending'),
    eb('reference', 'is', null),
    sql<boolean>`labels && ${[...labels]}::text[]`,
    not(
      exists(
        selectFrom('kyc_decision')
          .select('application_id')
          .whereRef('application_id', '=', 'kyc_application.id'),
      ),
    ),
  ])
}

/** Finds applications awaiting the provider, the longest untouched first. */
export async function pendingApplications(
  { database, dataKey }: Keeping,
  before: Date,
  limit: number,
): Promise<KycApplication[]> {
  const rows = await database.kysely
    .selectFrom('kyc_application')
    .selectAll()
    .where('status', '=', 'pending')
    .where(({ eb, or, exists, selectFrom }) =>
      or([
        eb('reference', 'is not', null),
        // Claimed for submission by a process that ended without an answer.
        sql<boolean>`labels = '{}' and sealed is not null`,
        // A cleared hit that was not submitted to the provider yet.
        exists(
          selectFrom('kyc_decision')
            .select('application_id')
            .whereRef('application_id', '=', 'kyc_application.id')
            .where('verdict', '=', 'approve'),
        ),
      ]),
    )
    .where('updated_at', '<', before)
    .orderBy('updated_at')
    .limit(limit)
    .execute()
  return rows.map((row) => parseApplication(dataKey, row))
}

/** Finds an application by id or by the provider's reference. */
export async function findApplicationBy(
  { database, dataKey }: Keeping,
  by: { reference: string } | { id: string },
): Promise<KycApplication | undefined> {
  const query = database.kysely.selectFrom('kyc_application').selectAll()
  const row = await ('id' in by
    ? query.where('id', '=', by.id)
    : query.where('reference', '=', by.reference)
  ).executeTakeFirst()
  return row === undefined ? undefined : parseApplication(dataKey, row)
}

/** Finds undecided applications with one of the labels, newest first: one more than the page's limit. */
export async function undecidedApplications(
  { database, dataKey }: Keeping,
  { labels, page }: { labels: readonly string[]; page: Page },
): Promise<KycApplication[]> {
  const query = database.kysely
    .selectFrom('kyc_application')
    .selectAll()
    .where((where) => isUndecided(where, labels))
  const rows = await (page.after === null ? query : query.where('id', '<', page.after))
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute()
  return rows.map((row) => parseApplication(dataKey, row))
}

/** Stores a manual decision once. @returns false when one already exists. */
export async function storeReviewDecision(
  database: Connection,
  decision: { id: string; decidedBy: string; verdict: 'approve' | 'reject'; reason: string; at: Date },
): Promise<boolean> {
  const row = await database.kysely
    .insertInto('kyc_decision')
    .values({
      application_id: decision.id,
      decided_by: decision.decidedBy,
      verdict: decision.verdict,
      reason: decision.reason,
      decided_at: decision.at,
    })
    .onConflict((conflict) => conflict.doNothing())
    .returning('application_id')
    .executeTakeFirst()
  return row !== undefined
}

/** Stores submitted data. @returns false when another application for the level was created concurrently. */
export async function storeApplication(
  { database, dataKey }: Keeping,
  {
    id,
    accountId,
    level,
    said,
  }: Pick<KycApplication, 'id' | 'accountId' | 'level'> & { said: PartialApplicant },
  at: Date,
): Promise<boolean> {
  const sealed = seal(dataKey, { purpose: PURPOSE, owner: id }, JSON.stringify(said))
  const row = await database.kysely
    .insertInto('kyc_application')
    .values({
      id,
      account_id: accountId,
      level,
      status: 'init',
      labels: [],
      sealed,
      reference: null,
      created_at: at,
      updated_at: at,
      reviewed_at: null,
    })
    .onConflict((conflict) => conflict.column('id').doUpdateSet({ sealed, updated_at: at }))
    .returning('id')
    .executeTakeFirst()
  return row !== undefined
}

/** Updates the status of a review unless it is complete. @returns whether it changed. */
export async function updateApplicationStatus(
  database: Connection,
  id: string,
  to: {
    status: KycApplicationTable['status']
    labels: readonly string[]
    reference?: string
    at: Date
  },
): Promise<boolean> {
  const isOver = to.status !== 'pending' && to.status !== 'init'
  const row = await database.kysely
    .updateTable('kyc_application')
    .set({
      status: to.status,
      labels: [...to.labels],
      updated_at: to.at,
      ...(to.reference === undefined ? {} : { reference: to.reference }),
      ...(isOver ? { reviewed_at: to.at } : {}),
    })
    .where('id', '=', id)
    .where('status', 'in', ['init', 'pending'])
    .returning('id')
    .executeTakeFirst()
  return row !== undefined
}

/** Releases an application that was claimed for a provider that did not answer, so that it can be completed. */
export async function releaseApplication(
  database: Connection,
  { id, label, at }: { id: string; label: string; at: Date },
): Promise<void> {
  await database.kysely
    .updateTable('kyc_application')
    .set({ status: 'init', labels: [label], updated_at: at })
    .where('id', '=', id)
    .where('status', '=', 'pending')
    .where('reference', 'is', null)
    .where(sql<boolean>`labels = '{}'`)
    .execute()
}

/** Withdraws a review, and an approval with it, because of data submitted later. */
export async function withdrawApplication(
  database: Connection,
  { id, label, at }: { id: string; label: string; at: Date },
): Promise<void> {
  await database.kysely
    .updateTable('kyc_application')
    .set({ status: 'retry', labels: [label], updated_at: at })
    .where('id', '=', id)
    .execute()
}

/**
 * Lists an account's submitted applications, whatever their outcome.
 * @param sent label of an unfinished application that the provider may have received.
 */
export async function earlierApplications(
  { database, dataKey }: Keeping,
  { accountId, sent }: { accountId: string; sent: string },
): Promise<KycApplication[]> {
  const rows = await database.kysely
    .selectFrom('kyc_application')
    .selectAll()
    .where('account_id', '=', accountId)
    .where(({ eb, or }) => or([eb('status', '!=', 'init'), sql<boolean>`${sent} = any(labels)`]))
    .execute()
  return rows.map((row) => parseApplication(dataKey, row))
}

/** Finds the approval of the account's highest level. */
export async function findVerified(
  { database, dataKey }: Keeping,
  accountId: string,
): Promise<KycApplication | undefined> {
  const row = await database.kysely
    .selectFrom('kyc_application')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('status', '=', 'approved')
    .orderBy(sql`level = 'full'`, 'desc')
    .limit(1)
    .executeTakeFirst()
  return row === undefined ? undefined : parseApplication(dataKey, row)
}

/** Erases an account's personal data and the reasons of decisions; verdicts and labels stay. */
export async function eraseApplications(database: Connection, accountId: string): Promise<void> {
  await database.kysely
    .updateTable('kyc_decision')
    .set({ reason: '' })
    .where('application_id', 'in', (own) =>
      own.selectFrom('kyc_application').select('id').where('account_id', '=', accountId),
    )
    .execute()
  await database.kysely
    .updateTable('kyc_application')
    .set({ sealed: null })
    .where('account_id', '=', accountId)
    .execute()
}

function parseApplication(dataKey: Uint8Array, row: KycApplicationTable): KycApplication {
  const { id, account_id: accountId, level, status, labels, sealed, reference, reviewed_at: reviewedAt } = row
  const said =
    sealed === null
      ? null
      : partialApplicant.parse(JSON.parse(unseal(dataKey, { purpose: PURPOSE, owner: id }, sealed)))
  return { id, accountId, level, status, labels, said, reference, reviewedAt }
}
