/** Identity verification: what is said is kept, what is complete is screened and reviewed, and a verdict raises the account's level. */
import { matchNames } from '../../policies/aml/match-names.ts'
import { missingOf } from '../../policies/kyc.ts'
import { Failure } from '../failure.ts'
import type { NewId } from '../ids.ts'
import type { Log } from '../log.ts'
import type { Application, IdentityReview, Review } from '../providers/identity-review.ts'
import type { Sanctions } from '../providers/sanctions.ts'
import type { Connection, Database } from '../storage/database.ts'
import {
  findApplication,
  findHold,
  type KycApplication,
  keepApplication,
  moveApplication,
  raiseLevel,
  type SaidSoFar,
} from './kyc-store.ts'

/** What verification needs. */
export interface Verifying {
  readonly database: Database
  readonly identityReview: IdentityReview
  readonly sanctions: Sanctions
  readonly settings: { readonly dataKey: Uint8Array }
  readonly newId: NewId
  readonly log: Log
}

/** A name on the sanctions list is looked at by a person; no provider decides on it. */
export const SANCTIONS_REVIEW = 'SANCTIONS_REVIEW'

/** What was said is gone: the person may say it again. */
export const ERASED = 'ERASED'

/** An application as it is shown. @property requirements what it still lacks, as paths of the request. */
export interface ShownApplication {
  readonly application: KycApplication
  readonly requirements: readonly string[]
}

/**
 * Keeps what is said now beside what was said before, and has it reviewed once nothing is missing.
 * @throws Failure `provider_unavailable` (what was said is kept), `sanctions` failures of the list.
 */
export async function applyForKyc(
  verifying: Verifying,
  { accountId, level, said, at }: { accountId: string; level: 'basic' | 'full'; said: SaidSoFar; at: Date },
): Promise<ShownApplication> {
  const application = await keepSaid(verifying, { accountId, level, said, at })
  const requirements =
    application.said === null ? [] : missingOf(application.level, givenOf(application.said))
  if (application.status !== 'init' || requirements.length > 0) return { application, requirements }
  return { application: await review(verifying, application, at), requirements }
}

/** Asks the provider about an application that it has not decided on. */
export async function followUp(verifying: Verifying, application: KycApplication, at: Date): Promise<void> {
  if (application.reference === null) {
    if (application.said !== null) await submit(verifying, application, at)
    return
  }
  await conclude(verifying, application, await verifying.identityReview.read(application.reference), at)
}

async function keepSaid(
  { database, settings: { dataKey }, newId }: Verifying,
  { accountId, level, said, at }: { accountId: string; level: 'basic' | 'full'; said: SaidSoFar; at: Date },
): Promise<KycApplication> {
  return database.transaction(async (connection) => {
    // Two first applications at once: the second waits here, and finds the first.
    await connection.kysely
      .selectFrom('account')
      .select('id')
      .where('id', '=', accountId)
      .forUpdate()
      .execute()
    const keeping = { database: connection, dataKey }
    const found = await findApplication(keeping, { accountId, level, isLocked: true })
    const mayBeginAnew = found === undefined || found.status === 'retry' || isErasedUnsent(found)
    const isRead = Object.keys(said.applicant).length + said.documents.length === 0
    if (found !== undefined && (mayBeginAnew ? isRead : found.status !== 'init')) return found
    const hold = await findHold(keeping, { accountId, label: SANCTIONS_REVIEW })
    if (hold !== undefined) return hold
    const before = mayBeginAnew ? undefined : found
    if (before !== found && found !== undefined)
      await moveApplication(connection, found.id, { status: 'retry', labels: [ERASED], at })
    const merged: SaidSoFar = {
      applicant: { ...before?.said?.applicant, ...said.applicant },
      documents: [...(before?.said?.documents ?? []), ...said.documents].slice(-20),
    }
    const id = before?.id ?? newId('kyc', at)
    await keepApplication(keeping, { id, accountId, level, said: merged }, at)
    const kept = await findApplication(keeping, { accountId, level })
    if (kept === undefined) throw new Error('an application that was just kept is gone')
    return kept
  })
}

/** What nobody else has, and was erased, is said again, as an application of its own; not before a person has decided on a hit. */
function isErasedUnsent({ status, reference, said }: KycApplication): boolean {
  return status === 'pending' && reference === null && said === null
}

async function review(verifying: Verifying, application: KycApplication, at: Date): Promise<KycApplication> {
  const { database, sanctions } = verifying
  const { firstName, lastName } = completeOf(application).applicant
  const { names } = await sanctions.latest()
  if (matchNames(`${firstName} ${lastName}`, names).length > 0) {
    await moveApplication(database, application.id, { status: 'pending', labels: [SANCTIONS_REVIEW], at })
    return { ...application, status: 'pending', labels: [SANCTIONS_REVIEW] }
  }
  return submit(verifying, application, at)
}

/** Has the provider review it. Safe to repeat: the provider takes an application once. */
export async function submit(
  verifying: Verifying,
  application: KycApplication,
  at: Date,
): Promise<KycApplication> {
  const { reference, review: verdict } = await verifying.identityReview.submit(completeOf(application))
  return conclude(verifying, { ...application, reference }, verdict, at)
}

/** Writes a verdict down; an approval raises the level in the same transaction, unless something holds the account up. */
async function conclude(
  { database, settings: { dataKey }, log }: Verifying,
  application: KycApplication,
  verdict: Review,
  at: Date,
): Promise<KycApplication> {
  const { id, accountId, level, reference, said } = application
  const { status, labels } = await database.transaction(async (connection) => {
    // In the order in which applications are kept: account first.
    await lockAccount(connection, accountId)
    const of = { accountId, label: SANCTIONS_REVIEW, except: id }
    const hold = await findHold({ database: connection, dataKey }, of)
    const held = heldBack(verdict, hold)
    const to = { ...held, ...(reference === null ? {} : { reference }), at }
    const isMoved = await moveApplication(connection, id, to)
    if (isMoved && held.status === 'approved')
      await raiseLevel(connection, { accountId, level, country: said?.applicant.country ?? null })
    if (isMoved && held.status !== 'pending')
      log.info({ applicationId: id, status: held.status }, 'an identity was reviewed')
    return held
  })
  return { ...application, status, labels, reviewedAt: status === 'pending' ? null : at }
}

/** An approval waits while a person looks at another application of the account, and shares its rejection. */
function heldBack(verdict: Review, hold: KycApplication | undefined): Pick<Review, 'status' | 'labels'> {
  if (verdict.status !== 'approved' || hold === undefined) return verdict
  return hold.status === 'rejected'
    ? { status: 'rejected', labels: hold.labels }
    : { status: 'pending', labels: [] }
}

export async function lockAccount({ kysely }: Connection, accountId: string): Promise<void> {
  await kysely.selectFrom('account').select('id').where('id', '=', accountId).forUpdate().execute()
}

function completeOf({ id, level, said }: KycApplication): Application {
  const { firstName, lastName, dateOfBirth, country, address, email, phone } = said?.applicant ?? {}
  if (!said || !firstName || !lastName || !dateOfBirth || !country || !address)
    throw new Failure('conflict', 'What was said for this application was erased.', {
      hint: 'Say it again: send the whole application.',
    })
  const applicant = { firstName, lastName, dateOfBirth, country, address }
  return {
    id,
    level,
    applicant: { ...applicant, email: email ?? null, phone: phone ?? null },
    documents: said.documents,
  }
}

function givenOf({ applicant, documents }: SaidSoFar): ReadonlySet<string> {
  const given = Object.entries(applicant).flatMap(([member, value]) => (value ? [member] : []))
  return new Set(documents.length > 0 ? [...given, 'documents'] : given)
}
