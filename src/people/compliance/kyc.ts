/**
 * Identity verification: submitted data is stored, complete applications are screened and reviewed, and an approval
 * raises the account's level.
 */

import { matchNames } from '../../../policies/aml/match-names.ts'
import { findMissing } from '../../../policies/kyc.ts'
import { raiseAlarm } from '../../books/alarms/alarms.ts'
import type { NewId } from '../../core/base/ids.ts'
import { toJson } from '../../core/base/json.ts'
import type { Log } from '../../core/base/log.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { Application, IdentityReview, Review } from '../../providers/identity-review/port.ts'
import type { Sanctions } from '../../providers/sanctions/port.ts'
import type { Connection, Database } from '../../storage/database.ts'
import { deleteApplicationLevel, raiseLevel } from './kyc-level.ts'
import {
  earlierApplications,
  findApplication,
  findApplicationBy,
  findBlockingApplication,
  type KycApplication,
  type PartialApplicant,
  releaseApplication,
  storeApplication,
  updateApplicationStatus,
  withdrawApplication,
} from './kyc-store.ts'

export interface KycDependencies {
  readonly database: Database
  readonly identityReview: IdentityReview
  readonly sanctions: Sanctions
  readonly settings: { readonly dataKey: Uint8Array }
  readonly newId: NewId
  readonly log: Log
}

/** A name on the sanctions list is reviewed by a person, not by the provider. */
const SANCTIONS_REVIEW = 'SANCTIONS_REVIEW'

/** The applicant differs from the account's other applications and is reviewed by a person. */
const IDENTITY_CHANGED = 'IDENTITY_CHANGED'

/** Labels that need a manual decision. */
export const manuallyReviewedReasons: readonly string[] = [SANCTIONS_REVIEW, IDENTITY_CHANGED]

/** The data was erased and may be submitted again. */
export const ERASED = 'ERASED'

/** The provider did not answer and may have received the application in its earlier state. */
const UNANSWERED = 'UNANSWERED'

/** An application with its missing members. @property requirements missing members, as paths of the request. */
export interface KycApplicationSummary {
  readonly application: KycApplication
  readonly requirements: readonly string[]
}

/**
 * Merges submitted data with earlier data and starts the review once nothing is missing.
 * @throws Failure `provider_unavailable` (the data is stored), `screening_unavailable`, `conflict` for another person (it is not).
 */
export async function applyForKyc(
  dependencies: KycDependencies,
  { accountId, level, said, at }: KycSubmission,
): Promise<KycApplicationSummary> {
  const { application, isClaimed } = await storeAndScreen(dependencies, { accountId, level, said, at })
  if (!isClaimed)
    return {
      application,
      requirements: application.said === null ? [] : lackingIn(application.level, application.said),
    }
  try {
    return { application: await submit(dependencies, application, at), requirements: [] }
  } catch (error) {
    await releaseApplication(dependencies.database, { id: application.id, label: UNANSWERED, at })
    throw error
  }
}

/** Polls the provider for a pending application, or submits it. */
export async function followUp(
  dependencies: KycDependencies,
  application: KycApplication,
  at: Date,
): Promise<void> {
  if (application.reference === null) {
    if (application.said !== null) await submit(dependencies, application, at)
    return
  }
  await storeVerdict(
    dependencies,
    application,
    await dependencies.identityReview.read(application.reference),
    at,
  )
}

interface KycSubmission {
  readonly accountId: string
  readonly level: 'basic' | 'full'
  readonly said: PartialApplicant
  readonly at: Date
}

/**
 * Stores and screens data in one transaction, so that concurrent data cannot replace a hit. A complete application
 * without a hit is claimed: it stays unchanged until the claiming call has an answer.
 */
async function storeAndScreen(
  { database, settings: { dataKey }, sanctions, newId, log }: KycDependencies,
  { accountId, level, said, at }: KycSubmission,
): Promise<{ application: KycApplication; isClaimed: boolean }> {
  const { names } = await sanctions.latest()
  return database.transaction(async (connection) => {
    // Serializes concurrent first applications: the second waits here and finds the first.
    await lockAccountRow(connection, accountId)
    const keeping = { database: connection, dataKey }
    const found = await findApplication(keeping, { accountId, level, isLocked: true })
    const isRead = Object.keys(said.applicant).length + said.documents.length === 0
    const mayStartNew =
      found === undefined ||
      found.status === 'retry' ||
      isErasedUnsent(found) ||
      (isErasedApproval(found) && !isRead)
    const before = mayStartNew ? undefined : found
    const earlier = await earlierApplications(keeping, { accountId, sent: UNANSWERED })
    const elsewhere = await findApplication(keeping, {
      accountId,
      level: level === 'basic' ? 'full' : 'basic',
    })
    // Data submitted for one level also counts for the other.
    const known = elsewhere?.status === 'retry' || elsewhere?.status === 'rejected' ? null : elsewhere?.said
    const merged = mergeSaid(mergeSaid(known, before?.said ?? nothing), said)
    const isListed = lackingIn(level, merged).length === 0 && matchNames(joinName(merged), names).length > 0
    const withdraws = before !== undefined && isListed && isAnotherName(before, merged)
    if (found !== undefined && (mayStartNew ? isRead : found.status !== 'init' && !withdraws)) {
      if (found.status === 'approved' && found.said !== null && isDifferentPerson(found, merged))
        throw anotherPerson()
      if (elsewhere !== undefined) await withContact(keeping, elsewhere, { said, at })
      return { application: await withContact(keeping, found, { said, at }), isClaimed: false }
    }
    const hold = await findBlockingApplication(keeping, { accountId, labels: manuallyReviewedReasons })
    if (hold !== undefined && !withdraws) return { application: hold, isClaimed: false }
    if (withdraws) {
      await withdrawApplication(connection, { id: before.id, label: SANCTIONS_REVIEW, at })
      await deleteApplicationLevel(connection, accountId)
      log.warn(
        { applicationId: before.id },
        'an identity review was withdrawn because of a name on a sanctions list',
      )
    } else if (found !== undefined && isErasedApproval(found))
      await withdrawApplication(connection, { id: found.id, label: ERASED, at })
    else if (before !== found && found !== undefined)
      await updateApplicationStatus(connection, found.id, { status: 'retry', labels: [ERASED], at })
    // The provider accepts an application once and would decide on the data it received first, so changed data needs
    // a new application.
    const isSentDifferently = before !== undefined && !isRead && wasSentDifferently(before, merged)
    if (isSentDifferently)
      await updateApplicationStatus(connection, before.id, { status: 'retry', labels: [UNANSWERED], at })
    const isNew = before === undefined || withdraws || isSentDifferently
    const id = isNew ? newId('kyc', at) : before.id
    await storeApplication(keeping, { id, accountId, level, said: merged }, at)
    const isComplete = lackingIn(level, merged).length === 0
    const isChanged = isComplete && !isListed && earlier.some((other) => isDifferentPerson(other, merged))
    const labels = isListed ? [SANCTIONS_REVIEW] : isChanged ? [IDENTITY_CHANGED] : []
    if (isComplete) await updateApplicationStatus(connection, id, { status: 'pending', labels, at })
    const isClaimed = isComplete && labels.length === 0
    return { application: await findKept(keeping, id), isClaimed }
  })
}

/**
 * An erased application that was never sent may be submitted again as a new one, but not before a manual decision on
 * a hit.
 */
function isErasedUnsent({ status, reference, said }: KycApplication): boolean {
  return status === 'pending' && reference === null && said === null
}

/** An approval whose data was erased. Data that is submitted now needs a manual decision. */
function isErasedApproval({ status, said }: KycApplication): boolean {
  return status === 'approved' && said === null
}

/** Checks whether the provider may have received different data. */
function wasSentDifferently({ status, labels, said }: KycApplication, now: PartialApplicant): boolean {
  if (status !== 'init' || !labels.includes(UNANSWERED)) return false
  return said === null || JSON.stringify(said) !== JSON.stringify(now)
}

/** Checks whether an application under review or approved now gets a different name, which was not screened. */
function isAnotherName({ status, labels, said }: KycApplication, now: PartialApplicant): boolean {
  const isUnderReview =
    status === 'pending' && !labels.some((label) => manuallyReviewedReasons.includes(label))
  // An erased name may have been any name.
  return (isUnderReview || status === 'approved') && (said === null || joinName(said) !== joinName(now))
}

/** Checks whether an application names a different person. An erased application may have named anyone. */
function isDifferentPerson({ said }: KycApplication, now: PartialApplicant): boolean {
  return said === null || personIn(said) !== personIn(now)
}

/** An account has one holder. Does not repeat whose identity is known. */
function anotherPerson(): Failure {
  return new Failure('conflict', 'This account is verified as another person. Nothing was changed.', {
    hint: 'An account has one holder: another person opens another account. If your name has changed, ask the operator of this deployment.',
  })
}

/** Name and date of birth, normalized for comparison. */
function personIn(said: PartialApplicant): string {
  const name = joinName(said).normalize('NFKC').toLowerCase().trim().replaceAll(/\s+/g, ' ')
  return `${name} ${said.applicant.dateOfBirth ?? ''}`
}

/** Submits an application for review. Safe to repeat: the provider accepts each application once. */
export async function submit(
  dependencies: KycDependencies,
  application: KycApplication,
  at: Date,
): Promise<KycApplication> {
  const { reference, review: verdict } = await dependencies.identityReview.submit(
    requireComplete(application),
  )
  return storeVerdict(dependencies, { ...application, reference }, verdict, at)
}

/**
 * Stores a verdict; an approval raises the level in the same transaction, unless another application blocks the
 * account. A verdict on changed data, or on an application that now needs a manual decision, is ignored.
 */
async function storeVerdict(
  { database, settings: { dataKey }, log }: KycDependencies,
  { id, accountId, level, reference, said }: KycApplication,
  verdict: Review,
  at: Date,
): Promise<KycApplication> {
  return database.transaction(async (connection) => {
    // Same lock order as when data is stored: account first.
    await lockAccountRow(connection, accountId)
    const keeping = { database: connection, dataKey }
    const current = await findKept(keeping, id)
    if (!isAboutApplication(verdict, { id, reference })) {
      const reported = toJson(verdict.subject)
      const alarm = { domain: 'compliance', objectId: id, reason: 'another_applicant', reported, at } as const
      await raiseAlarm({ database: connection, log }, alarm)
      return current
    }
    const hold = await findBlockingApplication(keeping, { accountId, labels: manuallyReviewedReasons })
    const isSame = current.said === null || JSON.stringify(current.said) === JSON.stringify(said)
    if (hold?.id === id || !isSame) return current
    const held = withHold(verdict, hold)
    const to = { ...held, ...(reference === null ? {} : { reference }), at }
    if (!(await updateApplicationStatus(connection, id, to))) return current
    if (held.status === 'approved')
      await raiseLevel(connection, { accountId, level, country: said?.applicant.country ?? null })
    if (held.status !== 'pending')
      log.info({ applicationId: id, status: held.status }, 'an identity was reviewed')
    return findKept(keeping, id)
  })
}

/** Checks that a review belongs to the application it was requested for. */
function isAboutApplication(
  { subject }: Review,
  { id, reference }: Pick<KycApplication, 'id' | 'reference'>,
): boolean {
  if (subject === undefined) return true
  return subject.reference === reference && (subject.applicationId === null || subject.applicationId === id)
}

/**
 * Holds back an approval while another application of the account needs a manual decision, and rejects it if that one
 * was rejected.
 */
function withHold(verdict: Review, hold: KycApplication | undefined): Pick<Review, 'status' | 'labels'> {
  if (verdict.status !== 'approved' || hold === undefined) return verdict
  return hold.status === 'rejected'
    ? { status: 'rejected', labels: hold.labels }
    : { status: 'pending', labels: [] }
}

export async function lockAccountRow({ kysely }: Connection, accountId: string): Promise<void> {
  await kysely.selectFrom('account').select('id').where('id', '=', accountId).forUpdate().execute()
}

function requireComplete({ id, level, said }: KycApplication): Application {
  const { firstName, lastName, dateOfBirth, country, address, residence, email, phone } =
    said?.applicant ?? {}
  if (!said || !firstName || !lastName || !dateOfBirth || !country || !address)
    throw new Failure('conflict', 'The data of this application was erased.', {
      hint: 'Send the whole application again.',
    })
  const applicant = { firstName, lastName, dateOfBirth, country, address }
  return {
    id,
    level,
    applicant: { ...applicant, residence: residence ?? {}, email: email ?? null, phone: phone ?? null },
    documents: said.documents,
  }
}

async function findKept(
  keeping: Parameters<typeof findApplicationBy>[0],
  id: string,
): Promise<KycApplication> {
  const kept = await findApplicationBy(keeping, { id })
  if (kept === undefined) throw new Error('a stored application cannot be found')
  return kept
}

const nothing: PartialApplicant = { applicant: {}, documents: [] }

/**
 * Adds contact details that an approved application lacks, which banks and brokers ask for. The verdict does not
 * depend on them; details that the application has stay as they are.
 */
async function withContact(
  keeping: { readonly database: Connection; readonly dataKey: Uint8Array },
  application: KycApplication,
  { said, at }: { said: PartialApplicant; at: Date },
): Promise<KycApplication> {
  const { status, said: kept } = application
  if (status !== 'approved' || kept === null) return application
  const { email, phone, residence } = said.applicant
  const hasResidence = Object.keys(kept.applicant.residence ?? {}).length > 0
  const added = {
    ...(kept.applicant.email === undefined && email !== undefined && { email }),
    ...(kept.applicant.phone === undefined && phone !== undefined && { phone }),
    ...(!hasResidence && residence !== undefined && { residence }),
  }
  if (Object.keys(added).length === 0) return application
  const completed = { ...kept, applicant: { ...kept.applicant, ...added } }
  await storeApplication(keeping, { ...application, said: completed }, at)
  return { ...application, said: completed }
}

function mergeSaid(before: PartialApplicant | null | undefined, said: PartialApplicant): PartialApplicant {
  return {
    applicant: { ...before?.applicant, ...said.applicant },
    documents: [...(before?.documents ?? []), ...said.documents].slice(-20),
  }
}

function joinName({ applicant: { firstName = '', lastName = '' } }: PartialApplicant): string {
  return `${firstName} ${lastName}`
}

function lackingIn(level: 'basic' | 'full', said: PartialApplicant): readonly string[] {
  return findMissing(level, listGiven(said))
}

function listGiven({ applicant, documents }: PartialApplicant): ReadonlySet<string> {
  const given = Object.entries(applicant).flatMap(([member, value]) => (value ? [member] : []))
  return new Set(documents.length > 0 ? [...given, 'documents'] : given)
}
