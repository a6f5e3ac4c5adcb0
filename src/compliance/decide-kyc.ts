/** A person decides on a name that is on the sanctions list: it is somebody else's, and the review goes on, or it is not. */
import { Failure } from '../failure.ts'
import { ERASED, lockAccount, REVIEWED_BY_US, submit, type Verifying } from './kyc.ts'
import { forgetLevel, restoreLevel } from './kyc-level.ts'
import { findApplicationBy, type KycApplication, keepDecision, moveApplication } from './kyc-store.ts'

/** A decision. @property decidedBy `acct_…`. */
export interface KycDecision {
  readonly id: string
  readonly decidedBy: string
  readonly verdict: 'approve' | 'reject'
  readonly reason: string
  readonly at: Date
}

/**
 * Writes a decision down, for good. What is approved goes to the provider, as any other application does: no person stands in
 * for the check of an identity. What its person has erased meanwhile they may say again, and it is screened again. Where the provider does not answer, a job carries it there.
 * @throws Failure `not_found`, `conflict` where nothing waits for a decision.
 */
export async function decideOnHit(verifying: Verifying, decision: KycDecision): Promise<KycApplication> {
  const { database, log } = verifying
  const { id, verdict, at } = decision
  const application = await record(verifying, decision)
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

async function record(verifying: Verifying, decision: KycDecision): Promise<KycApplication> {
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
    await lockAccount(connection, first.accountId)
    const application = (await findApplicationBy(keeping, { id })) ?? first
    const { status, labels, reference, said } = application
    const waits =
      status === 'pending' && reference === null && labels.some((label) => REVIEWED_BY_US.includes(label))
    if (!waits || !(await keepDecision(connection, decision)))
      throw new Failure('conflict', 'The application does not wait for a decision, or was decided on.', {
        hint: 'GET /api/admin/kyc lists what waits.',
      })
    if (verdict === 'reject') {
      await moveApplication(connection, id, { status: 'rejected', labels, at })
      await forgetLevel(connection, first.accountId)
      return application
    }
    await restoreLevel(connection, first.accountId)
    if (said === null) await moveApplication(connection, id, { status: 'retry', labels: [ERASED], at })
    return application
  })
}

async function findAgain(
  { database, settings }: Pick<Verifying, 'database' | 'settings'>,
  application: KycApplication,
): Promise<KycApplication> {
  const found = await findApplicationBy({ database, dataKey: settings.dataKey }, { id: application.id })
  return found ?? application
}
