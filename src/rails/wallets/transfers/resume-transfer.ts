/** Resumes a transfer from its recorded state. */
import { type OperationOutcome, operationOutcome } from '../../../books/evidence/operation-outcome.ts'
import { type Transfer, toOperation, updateTransfer } from '../store.ts'
import { finishTransfer } from './finish-transfer.ts'
import { explainFailure, type TransferDependencies } from './send-transfer.ts'
import { requireAuthentic } from './transfer-mac.ts'

/** How long a resubmitted transfer is waited for; the next round checks again. */
const WAIT_MS = 3000

/** Assumed maximum lag of the chain's clock: a transfer is given up only this long after its expiry. */
const CLOCK_SKEW_MS = 60_000

/**
 * Reads a transfer's outcome from the chain and acts on it. A transfer that was never executed is submitted again:
 * its id is its nonce, so the chain executes it at most once. After its expiry the chain never will.
 */
export async function resumeTransfer(dependencies: TransferDependencies, transfer: Transfer): Promise<void> {
  const { chain, log, clock } = dependencies
  const operation = toOperation(transfer)
  const isOver = clock().getTime() > transfer.validUntil.getTime() + CLOCK_SKEW_MS
  const known = await operationOutcome(chain, operation, 0)
  if (known.status !== 'absent') return act(dependencies, transfer, known)
  if (isOver)
    return finishTransfer(dependencies, transfer, {
      state: 'failed',
      failure: 'the chain did not accept it in time',
    })
  if (transfer.fundingId !== undefined && transfer.state === 'reserved') {
    const held = await findUnwritten(dependencies, transfer.decisionId)
    // Its call may be about to write the payment.
    if (held === 'reserved') return
    if (held !== undefined)
      return finishTransfer(dependencies, transfer, {
        ...{ state: 'failed', failure: 'its payment was not made', code: 'provider_unavailable' },
      })
  }
  requireAuthentic(dependencies.settings.dataKey, transfer)
  const submission = await chain.submit(operation)
  if (submission.status === 'submitted') {
    const { transactionHash } = submission
    await updateTransfer(
      dependencies.database,
      transfer.id,
      { state: 'settlement_pending', transactionHash },
      dependencies.clock(),
    )
    return act(dependencies, transfer, await operationOutcome(chain, operation, WAIT_MS))
  }
  // An earlier broadcast may still be executed despite this rejection, so the money stays held until the transfer
  // expires.
  log.error({ transferId: transfer.id, reason: submission.reason }, 'the chain rejected an open transfer')
}

/**
 * Reads the hold of a payment whose money a burn is to move: the burn may be written with the hold, before the payment is.
 * @returns undefined for a payment that was written.
 */
async function findUnwritten(
  { database }: Pick<TransferDependencies, 'database'>,
  decisionId: string,
): Promise<string | undefined> {
  const row = await database.kysely
    .selectFrom('reservation')
    .select('status')
    .where('decision_id', '=', decisionId)
    .where(({ and, not, exists, selectFrom }) =>
      and([
        not(
          exists(
            selectFrom('transfer')
              .select('id')
              .where('decision_id', '=', decisionId)
              .where('funding_id', 'is', null),
          ),
        ),
        not(exists(selectFrom('payout').select('id').where('decision_id', '=', decisionId))),
        not(exists(selectFrom('purchase').select('id').where('decision_id', '=', decisionId))),
      ]),
    )
    .executeTakeFirst()
  return row?.status
}

async function act(
  dependencies: TransferDependencies,
  transfer: Transfer,
  outcome: OperationOutcome,
): Promise<void> {
  const { log } = dependencies
  if (outcome.status === 'confirmed') {
    log.info({ transferId: transfer.id }, 'an open transfer was confirmed')
    return finishTransfer(dependencies, transfer, {
      state: 'confirmed',
      transactionHash: outcome.transactionHash,
    })
  }
  if (outcome.status === 'failed' || outcome.status === 'canceled') {
    const { status } = outcome
    log.warn({ transferId: transfer.id, status }, 'an open transfer did not happen')
    return finishTransfer(dependencies, transfer, { state: 'failed', ...explainFailure(transfer, status) })
  }
}
