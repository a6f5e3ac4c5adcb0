/** A person decides on a name that is on the sanctions list: it is somebody else's, and the review goes on, or it is not. */

import { type Json, toJson } from '../base/json.ts'
import { Failure } from '../failures/failure.ts'
import type { Connection } from '../storage/database.ts'
import { ERASED, type KycDependencies, lockAccountRow, manuallyReviewedReasons, submit } from './kyc.ts'
import { deleteApplicationLevel, restoreLevel } from './kyc-level.ts'
import {
  findApplicationBy,
  type KycApplication,
  storeReviewDecision,
  updateApplicationStatus,
} from './kyc-store.ts'

/** A decision. @property decidedBy `acct_…`. */
export interface KycDecision {
  readonly id: string
  readonly decidedBy: string
  readonly verdict: 'approve' | 'reject'
  readonly reason: string
  readonly at: Date
}

/** What a decision has made of an application: states that hold nothing of what its person said. */
export interface DecidedApplication {
  readonly accountId: string
  readonly before: Json
  readonly after: Json
}

/** Writes a decision into the journal, last in the transaction that makes it. */
export type RecordDecision = (transaction: Connection, decided: DecidedApplication) => Promise<void>

/**
 * Writes a decision down, for good. What is approved goes to the provider, as any other application does: no person stands in
 * for the check of an identity. What its person has erased meanwhile they may say again, and it is screened again. Where the provider does not answer, a job carries it there.
 * @throws Failure `not_found`, `conflict` where nothing waits for a decision.
 */
export async function decideOnHit(
  verifying: KycDependencies,
  decision: KycDecision,
  recordDecision: RecordDecision,
): Promise<KycApplication> {
  const { database, log } = verifying
  const { id, verdict, at } = decision
  const application = await record(verifying, decision, recordDecision)
  log.info({ applicationId: id, decidedBy: decision.decidedBy, verdict }, 'a sanctions hit was decided on')
  if (verdict === 'reject' || application.said === null) return findAgain(verifying, application)
  try {
    return await submit(verifying, application, at)
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'provider_unavailable') throw error
    log.warn({ err: error, applicationId: id }, 'an identity that was cleared is not under review yet')
    return findAgain({ ...verifying, database }, application)
  }
}

async function record(
  verifying: KycDependencies,
  decision: KycDecision,
  recordDecision: RecordDecision,
): Promise<KycApplication> {
  const { database, settings } = verifying
  const { id, decidedBy, verdict, at } = decision
  return database.transaction(async (connection) => {
    const keeping = { database: connection, dataKey: settings.dataKey }
    const first = await findApplicationBy(keeping, { id })
    if (first === undefined) throw new Failure('not_found', 'There is no such application.')
    if (first.accountId === decidedBy)
      throw new Failure('conflict', 'Nobody decides on their own application.', {
        hint: 'Another administrator decides.',
      })
    await lockAccountRow(connection, first.accountId)
    const application = (await findApplicationBy(keeping, { id })) ?? first
    const { status, labels, reference, said } = application
    const waits =
      status === 'pending' &&
      reference === null &&
      labels.some((label) => manuallyReviewedReasons.includes(label))
    if (!waits || !(await storeReviewDecision(connection, decision)))
      throw new Failure('conflict', 'The application does not wait for a decision, or was decided on.', {
        hint: 'GET /api/admin/kyc lists what waits.',
      })
    if (verdict === 'reject') {
      await updateApplicationStatus(connection, id, { status: 'rejected', labels, at })
      await deleteApplicationLevel(connection, first.accountId)
    } else {
      await restoreLevel(connection, first.accountId)
      if (said === null)
        await updateApplicationStatus(connection, id, { status: 'retry', labels: [ERASED], at })
    }
    const after = (await findApplicationBy(keeping, { id })) ?? application
    await recordDecision(connection, {
      accountId: first.accountId,
      before: stateOf(application),
      after: stateOf(after),
    })
    return application
  })
}

function stateOf({ level, status, labels }: KycApplication): Json {
  return toJson({ level, status, labels })
}

async function findAgain(
  { database, settings }: Pick<KycDependencies, 'database' | 'settings'>,
  application: KycApplication,
): Promise<KycApplication> {
  const found = await findApplicationBy({ database, dataKey: settings.dataKey }, { id: application.id })
  return found ?? application
}
