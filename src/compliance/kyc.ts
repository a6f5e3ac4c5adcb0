/** Identity verification: what is said is kept, what is complete is screened and reviewed, and a verdict raises the account's level. */

import { matchNames } from '../../policies/aml/match-names.ts'
import { missingOf } from '../../policies/kyc.ts'
import { raiseAlarm } from '../alarms/alarms.ts'
import type { NewId } from '../base/ids.ts'
import { toJson } from '../base/json.ts'
import type { Log } from '../base/log.ts'
import { Failure } from '../failures/failure.ts'
import type { Application, IdentityReview, Review } from '../providers/identity-review.ts'
import type { Sanctions } from '../providers/sanctions.ts'
import type { Connection, Database } from '../storage/database.ts'
import { deleteApplicationLevel, raiseLevel } from './kyc-level.ts'
import {
  earlierApplications,
  findApplication,
  findApplicationBy,
  findHold,
  type KycApplication,
  keepApplication,
  type PartialApplicant,
  releaseApplication,
  updateApplicationStatus,
  withdrawApplication,
} from './kyc-store.ts'

/** What verification needs. */
export interface KycDependencies {
  readonly database: Database
  readonly identityReview: IdentityReview
  readonly sanctions: Sanctions
  readonly settings: { readonly dataKey: Uint8Array }
  readonly newId: NewId
  readonly log: Log
}

/** A name on the sanctions list is looked at by a person; no provider decides on it. */
const SANCTIONS_REVIEW = 'SANCTIONS_REVIEW'

/** Another person than the account's other applications name: somebody looks at it. */
const IDENTITY_CHANGED = 'IDENTITY_CHANGED'

/** What a person of ours decides on, and no provider. */
export const manuallyReviewedReasons: readonly string[] = [SANCTIONS_REVIEW, IDENTITY_CHANGED]

/** What was said is gone: the person may say it again. */
export const ERASED = 'ERASED'

/** The provider was asked and did not answer: it may know the application as it was then. */
const UNANSWERED = 'UNANSWERED'

/** An application as it is shown. @property requirements what it still lacks, as paths of the request. */
export interface KycApplicationSummary {
  readonly application: KycApplication
  readonly requirements: readonly string[]
}

/**
 * Keeps what is said now beside what was said before, and has it reviewed once nothing is missing.
 * @throws Failure `provider_unavailable` (what was said is kept), `screening_unavailable` (it is not).
 */
export async function applyForKyc(
  verifying: KycDependencies,
  { accountId, level, said, at }: Saying,
): Promise<KycApplicationSummary> {
  const { application, isClaimed } = await keepSaid(verifying, { accountId, level, said, at })
  if (!isClaimed)
    return {
      application,
      requirements: application.said === null ? [] : lackingIn(application.level, application.said),
    }
  try {
    return { application: await submit(verifying, application, at), requirements: [] }
  } catch (error) {
    await releaseApplication(verifying.database, { id: application.id, label: UNANSWERED, at })
    throw error
  }
}

/** Asks the provider about an application that it has not decided on. */
export async function followUp(
  verifying: KycDependencies,
  application: KycApplication,
  at: Date,
): Promise<void> {
  if (application.reference === null) {
    if (application.said !== null) await submit(verifying, application, at)
    return
  }
  await conclude(verifying, application, await verifying.identityReview.read(application.reference), at)
}

interface Saying {
  readonly accountId: string
  readonly level: 'basic' | 'full'
  readonly said: PartialApplicant
  readonly at: Date
}

/**
 * Keeps and screens in one step, so that nothing which is said at the same moment takes the place of a hit.
 * What is complete and hits nothing is claimed: it stays as it is until whoever claimed it has an answer.
 */
async function keepSaid(
  { database, settings: { dataKey }, sanctions, newId, log }: KycDependencies,
  { accountId, level, said, at }: Saying,
): Promise<{ application: KycApplication; isClaimed: boolean }> {
  const { names } = await sanctions.latest()
  return database.transaction(async (connection) => {
    // Two first applications at once: the second waits here, and finds the first.
    await lockAccountRow(connection, accountId)
    const keeping = { database: connection, dataKey }
    const found = await findApplication(keeping, { accountId, level, isLocked: true })
    const mayBeginAnew = found === undefined || found.status === 'retry' || isErasedUnsent(found)
    const before = mayBeginAnew ? undefined : found
    const earlier = await earlierApplications(keeping, { accountId, sent: UNANSWERED })
    const elsewhere = await findApplication(keeping, {
      accountId,
      level: level === 'basic' ? 'full' : 'basic',
    })
    // What was said for one level counts for the other.
    const known = elsewhere?.status === 'retry' || elsewhere?.status === 'rejected' ? null : elsewhere?.said
    const merged = mergeSaid(mergeSaid(known, before?.said ?? nothing), said)
    const isListed = lackingIn(level, merged).length === 0 && matchNames(nameOf(merged), names).length > 0
    const takesBack = before !== undefined && isListed && isAnotherName(before, merged)
    const isRead = Object.keys(said.applicant).length + said.documents.length === 0
    if (found !== undefined && (mayBeginAnew ? isRead : found.status !== 'init' && !takesBack))
      return { application: found, isClaimed: false }
    const hold = await findHold(keeping, { accountId, labels: manuallyReviewedReasons })
    if (hold !== undefined && !takesBack) return { application: hold, isClaimed: false }
    if (takesBack) {
      await withdrawApplication(connection, { id: before.id, label: SANCTIONS_REVIEW, at })
      await deleteApplicationLevel(connection, accountId)
      log.warn(
        { applicationId: before.id },
        'an identity review is taken back for a name on a sanctions list',
      )
    } else if (before !== found && found !== undefined)
      await updateApplicationStatus(connection, found.id, { status: 'retry', labels: [ERASED], at })
    // The provider takes an application once: it would decide on what it was sent then, and not on what is said now.
    const isSentOtherwise = before !== undefined && !isRead && wasSentOtherwise(before, merged)
    if (isSentOtherwise)
      await updateApplicationStatus(connection, before.id, { status: 'retry', labels: [UNANSWERED], at })
    const isAnew = before === undefined || takesBack || isSentOtherwise
    const id = isAnew ? newId('kyc', at) : before.id
    await keepApplication(keeping, { id, accountId, level, said: merged }, at)
    const isComplete = lackingIn(level, merged).length === 0
    const isChanged = isComplete && !isListed && earlier.some((other) => isSomebodyElse(other, merged))
    const labels = isListed ? [SANCTIONS_REVIEW] : isChanged ? [IDENTITY_CHANGED] : []
    if (isComplete) await updateApplicationStatus(connection, id, { status: 'pending', labels, at })
    const isClaimed = isComplete && labels.length === 0
    return { application: await findKept(keeping, id), isClaimed }
  })
}

/** What nobody else has, and was erased, is said again, as an application of its own; not before a person has decided on a hit. */
function isErasedUnsent({ status, reference, said }: KycApplication): boolean {
  return status === 'pending' && reference === null && said === null
}

/** Whether the provider may have been sent something else than is said now. */
function wasSentOtherwise({ status, labels, said }: KycApplication, now: PartialApplicant): boolean {
  if (status !== 'init' || !labels.includes(UNANSWERED)) return false
  return said === null || JSON.stringify(said) !== JSON.stringify(now)
}

/** Whether a name is said of an application that is under review or approved under another one, which nobody has screened. */
function isAnotherName({ status, labels, said }: KycApplication, now: PartialApplicant): boolean {
  const isUnderReview =
    status === 'pending' && !labels.some((label) => manuallyReviewedReasons.includes(label))
  // A name that was erased may have been any.
  return (isUnderReview || status === 'approved') && (said === null || nameOf(said) !== nameOf(now))
}

/** Whether an application names another person than is named now. One that was erased may have named anybody. */
function isSomebodyElse({ said }: KycApplication, now: PartialApplicant): boolean {
  return said === null || personIn(said) !== personIn(now)
}

/** Name and day of birth, as far as writing them differently does not matter. */
function personIn(said: PartialApplicant): string {
  const name = nameOf(said).normalize('NFKC').toLowerCase().trim().replaceAll(/\s+/g, ' ')
  return `${name} ${said.applicant.dateOfBirth ?? ''}`
}

/** Has the provider review it. Safe to repeat: the provider takes an application once. */
export async function submit(
  verifying: KycDependencies,
  application: KycApplication,
  at: Date,
): Promise<KycApplication> {
  const { reference, review: verdict } = await verifying.identityReview.submit(completeOf(application))
  return conclude(verifying, { ...application, reference }, verdict, at)
}

/**
 * Writes a verdict down; an approval raises the level in the same transaction, unless something holds the account up. A verdict
 * on what has become something else, or waits for a person by now, is none.
 */
async function conclude(
  { database, settings: { dataKey }, log }: KycDependencies,
  { id, accountId, level, reference, said }: KycApplication,
  verdict: Review,
  at: Date,
): Promise<KycApplication> {
  return database.transaction(async (connection) => {
    // In the order in which applications are kept: account first.
    await lockAccountRow(connection, accountId)
    const keeping = { database: connection, dataKey }
    const current = await findKept(keeping, id)
    if (!isReviewOf(verdict, { id, reference })) {
      const reported = toJson(verdict.subject)
      const alarm = { domain: 'compliance', objectId: id, reason: 'another_applicant', reported, at } as const
      await raiseAlarm({ database: connection, log }, alarm)
      return current
    }
    const hold = await findHold(keeping, { accountId, labels: manuallyReviewedReasons })
    const isSame = current.said === null || JSON.stringify(current.said) === JSON.stringify(said)
    if (hold?.id === id || !isSame) return current
    const held = heldBack(verdict, hold)
    const to = { ...held, ...(reference === null ? {} : { reference }), at }
    if (!(await updateApplicationStatus(connection, id, to))) return current
    if (held.status === 'approved')
      await raiseLevel(connection, { accountId, level, country: said?.applicant.country ?? null })
    if (held.status !== 'pending')
      log.info({ applicationId: id, status: held.status }, 'an identity was reviewed')
    return findKept(keeping, id)
  })
}

/** Whether a review is of the application that was asked about. */
function isReviewOf(
  { subject }: Review,
  { id, reference }: Pick<KycApplication, 'id' | 'reference'>,
): boolean {
  if (subject === undefined) return true
  return subject.reference === reference && (subject.applicationId === null || subject.applicationId === id)
}

/** An approval waits while a person looks at another application of the account, and shares its rejection. */
function heldBack(verdict: Review, hold: KycApplication | undefined): Pick<Review, 'status' | 'labels'> {
  if (verdict.status !== 'approved' || hold === undefined) return verdict
  return hold.status === 'rejected'
    ? { status: 'rejected', labels: hold.labels }
    : { status: 'pending', labels: [] }
}

export async function lockAccountRow({ kysely }: Connection, accountId: string): Promise<void> {
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

async function findKept(
  keeping: Parameters<typeof findApplicationBy>[0],
  id: string,
): Promise<KycApplication> {
  const kept = await findApplicationBy(keeping, { id })
  if (kept === undefined) throw new Error('an application that was kept is gone')
  return kept
}

const nothing: PartialApplicant = { applicant: {}, documents: [] }

function mergeSaid(before: PartialApplicant | null | undefined, said: PartialApplicant): PartialApplicant {
  return {
    applicant: { ...before?.applicant, ...said.applicant },
    documents: [...(before?.documents ?? []), ...said.documents].slice(-20),
  }
}

function nameOf({ applicant: { firstName = '', lastName = '' } }: PartialApplicant): string {
  return `${firstName} ${lastName}`
}

function lackingIn(level: 'basic' | 'full', said: PartialApplicant): readonly string[] {
  return missingOf(level, givenOf(said))
}

function givenOf({ applicant, documents }: PartialApplicant): ReadonlySet<string> {
  const given = Object.entries(applicant).flatMap(([member, value]) => (value ? [member] : []))
  return new Set(documents.length > 0 ? [...given, 'documents'] : given)
}
