/**
 * Manual decisions on sanctions hits and changed identities: an approval forwards the application to the provider, a
 * rejection is final.
 */

import { type Json, toJson } from '../../core/base/json.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { Connection } from '../../storage/database.ts'
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

/** States of an application before and after a decision, without personal data. */
export interface DecidedApplication {
  readonly accountId: string
  readonly before: Json
  readonly after: Json
}

/** Records a decision in the journal, as the last step of its transaction. */
export type RecordDecision = (transaction: Connection, decided: DecidedApplication) => Promise<void>

/**
 * Records a decision, permanently. An approved application goes to the provider like any other, because a manual
 * decision does not replace the identity check. Data erased in the meantime may be submitted again and is screened
 * again. If the provider does not answer, a job submits the application later.
 * @throws Failure `not_found`, `conflict` when no decision is pending.
 */
export async function decideHit(
  dependencies: KycDependencies,
  decision: KycDecision,
  recordDecision: RecordDecision,
): Promise<KycApplication> {
  const { database, log } = dependencies
  const { id, verdict, at } = decision
  const application = await record(dependencies, decision, recordDecision)
  log.info({ applicationId: id, decidedBy: decision.decidedBy, verdict }, 'a sanctions hit was decided')
  if (verdict === 'reject' || application.said === null) return findAgain(dependencies, application)
  try {
    return await submit(dependencies, application, at)
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'provider_unavailable') throw error
    log.warn({ err: error, applicationId: id }, 'a cleared identity could not be submitted for review yet')
    return findAgain({ ...dependencies, database }, application)
  }
}

async function record(
  dependencies: KycDependencies,
  decision: KycDecision,
  recordDecision: RecordDecision,
): Promise<KycApplication> {
  const { database, settings } = dependencies
  const { id, decidedBy, verdict, at } = decision
  return database.transaction(async (connection) => {
    const keeping = { database: connection, dataKey: settings.dataKey }
    const first = await findApplicationBy(keeping, { id })
    if (first === undefined) throw new Failure('not_found', 'There is no such application.')
    if (first.accountId === decidedBy)
      throw new Failure('conflict', 'Administrators cannot decide their own application.', {
        hint: 'Let another administrator decide.',
      })
    await lockAccountRow(connection, first.accountId)
    const application = (await findApplicationBy(keeping, { id })) ?? first
    const { status, labels, reference, said } = application
    const waits =
      status === 'pending' &&
      reference === null &&
      labels.some((label) => manuallyReviewedReasons.includes(label))
    if (!waits || !(await storeReviewDecision(connection, decision)))
      throw new Failure(
        'conflict',
        'The application is not waiting for a decision, or was already decided.',
        {
          hint: 'GET /api/admin/kyc lists the open applications.',
        },
      )
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
      before: toState(application),
      after: toState(after),
    })
    return application
  })
}

function toState({ level, status, labels }: KycApplication): Json {
  return toJson({ level, status, labels })
}

async function findAgain(
  { database, settings }: Pick<KycDependencies, 'database' | 'settings'>,
  application: KycApplication,
): Promise<KycApplication> {
  const found = await findApplicationBy({ database, dataKey: settings.dataKey }, { id: application.id })
  return found ?? application
}
