/** Sends the burn of a payment's money. Called with both of them reserved and written. */
import type { PlannedSpend } from '../../books/spending/build-spend-request.ts'
import type { Json } from '../../core/base/json.ts'
import { Failure } from '../../core/failures/failure.ts'
import { type Chains, onChain } from '../../providers/chain/chains.ts'
import type { Connection, Statement } from '../../storage/database.ts'
import { findTransferOfDecision, walletWritten } from '../wallets/store.ts'
import { failedTransfer } from '../wallets/transfers/failed-transfer.ts'
import { sendWritten, type TransferDependencies } from '../wallets/transfers/send-transfer.ts'
import { explainLostMove, failFunding } from './fundings.ts'

/**
 * Sends the burn; a job does what follows. @param written wallet of the burn's row.
 * @throws Failure of the payment, which is not made, where the chain refuses the burn.
 */
export async function sendBurn(
  parts: TransferDependencies & { readonly chains: Chains },
  {
    funding: { id: fundingId, burn },
    accountId,
    decisionId,
    written,
  }: {
    readonly funding: NonNullable<PlannedSpend['funding']>
    readonly accountId: string
    readonly decisionId: string
    readonly written: Json | null
  },
): Promise<void> {
  if (burn === undefined) throw new Error(`the funding ${fundingId} has no burn`)
  const row = burn.buildRow(decisionId)
  try {
    const wallet = walletWritten(accountId, written)
    await sendWritten(onChain(parts, burn.from), { decisionId, row, wallet })
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    // Unknown: a job finds out, and the payment waits.
    if (error.code === 'settlement_pending') return
    const code = error.code === 'signature_rejected' ? error.code : 'provider_unavailable'
    const failure = explainLostMove(error.message)
    await failFunding(parts.database, { fundingId, failure, code, at: parts.clock() })
    const payment = await findTransferOfDecision(parts.database, decisionId)
    throw payment === undefined ? error : failedTransfer(payment.id, { failure, code })
  }
}

const drop: Statement = {
  name: 'funding_drop_burn',
  text: `with dropped as (
      update transfer set state = 'failed', failure = $3, failure_code = 'provider_unavailable', updated_at = $4
      where id = $1 and state = 'reserved' and updated_at = created_at returning id
    )
    select r.verdict from dropped cross join lateral spend_resolve($2, 'released', null, $4) r`,
}

/**
 * Takes a burn back that was written and not sent, because its payment is not made. One that a job has claimed meanwhile is left to it;
 * nobody who has not claimed it locks its reservation.
 */
export async function dropBurn(
  { database, clock }: Pick<TransferDependencies, 'database' | 'clock'>,
  {
    funding: { id: fundingId, burn },
    decisionId,
  }: Pick<Parameters<typeof sendBurn>[1], 'funding' | 'decisionId'>,
): Promise<void> {
  if (burn === undefined) throw new Error(`the funding ${fundingId} has no burn`)
  const at = clock()
  const failure = 'its payment was not made'
  await database.call(drop, [burn.buildRow(decisionId).id, fundingId, failure, at])
  await failFunding(database, { fundingId, failure, code: 'provider_unavailable', at })
}

/** A payment that waits for its money, or is about to be sent with it. */
export interface WaitingPayment {
  readonly transferId: string
  readonly transactionHash: null
  readonly status: 'funding'
}

/** Finds the transfer of a decision while it waits for its money; undefined where it has none, was sent, or has ended. */
export async function findWaitingTransfer(
  database: Connection,
  decisionId: string,
): Promise<WaitingPayment | undefined> {
  const transfer = await findTransferOfDecision(database, decisionId)
  if (transfer === undefined || transfer.transactionHash !== null || transfer.state === 'failed')
    return undefined
  return { transferId: transfer.id, transactionHash: null, status: 'funding' }
}
