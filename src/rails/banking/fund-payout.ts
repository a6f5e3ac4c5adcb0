/** Funds payouts in stablecoins: the transfer to the address that the provider has given for one. */
import { Failure } from '../../core/failures/failure.ts'
import { findTransferOfDecision } from '../wallets/store.ts'
import {
  sendTransfer,
  type TransferAuthorization,
  type TransferDependencies,
} from '../wallets/transfers/send-transfer.ts'
import { isDepositShared } from './prepared-payout.ts'
import { endPayout, rejectedPayout, type SendPayoutDependencies, type SentPayout } from './send-payout.ts'

export type FundPayoutDependencies = TransferDependencies & Pick<SendPayoutDependencies, 'bankingProvider'>

/**
 * Sends the stablecoins of a payout to the provider. While the chain's answer is unknown they stay held.
 * @throws Failure `payout_rejected` when they were not sent; the money is available again.
 */
export async function fundPayout(
  parts: FundPayoutDependencies,
  { payout, depositTo }: SentPayout,
  authorizedBy: TransferAuthorization,
): Promise<void> {
  const { database, bankingProvider, clock, log } = parts
  const { id, decisionId, accountId, money, providerId } = payout
  const isShared =
    depositTo === null || (await isDepositShared(database, { id, accountId, money, depositTo }))
  // Two jobs may send it at once: what the other has sent is not taken back.
  const isSentByOther = async () => {
    const transfer = await findTransferOfDecision(database, decisionId)
    return transfer !== undefined && transfer.state !== 'failed'
  }
  const isSent = isShared
    ? await isSentByOther()
    : await sendTransfer(parts, {
        authorizedBy,
        accountId,
        decisionId,
        token: 'USDC',
        units: money.units,
        destination: depositTo,
        at: clock(),
      }).then(
        () => true,
        async (error: unknown) => {
          if (!(error instanceof Failure)) throw error
          return error.code === 'settlement_pending' || isSentByOther()
        },
      )
  if (isSent) return
  const reason = isShared && depositTo !== null ? 'ambiguous_deposit' : 'not_funded'
  // A payout that is not canceled at the provider stays open for the job, which tries again.
  const isCanceled = await bankingProvider.cancelPayout(providerId ?? '').then(
    () => true,
    (err: unknown) => {
      log.warn({ err, payoutId: id }, 'a payout that was not funded could not be canceled')
      return false
    },
  )
  if (isCanceled) await endPayout(parts, { id }, { reason, at: clock() })
  throw rejectedPayout({ id, reason })
}
