/** Takes the payments of one chain: verified, settled and looked up there, and nowhere else. */

import { transactionMark } from '../../../books/evidence/transaction-mark.ts'
import type { Clock } from '../../../core/base/clock.ts'
import type { NewId } from '../../../core/base/ids.ts'
import type { Log } from '../../../core/base/log.ts'
import type { Chains } from '../../../providers/chain/chains.ts'
import type { Chain } from '../../../providers/chain/port.ts'
import { type DecisionObserver, observeProvider } from '../../../providers/observe-provider.ts'
import type { Database } from '../../../storage/database.ts'
import { channelAuthorizer } from '../payments/collect-channels.ts'
import { createAttempts } from './attempt.ts'
import { createChannelStorage, createSellerScheme, isVoucherSigned } from './channels.ts'
import { createFacilitator } from './facilitator.ts'
import type { FacilitatorKey } from './facilitator-token.ts'
import { isSignedByPayer, type Payment } from './payment.ts'
import { createPaymentDeduplication, type PaymentDeduplication } from './payment-deduplication.ts'
import { type Listen, servePrivately } from './private-facilitator.ts'
import { type SettlementAttempt, toSettlementAttempt } from './settlement-attempt.ts'
import { isPermitSignedByPayer } from './signed-permit.ts'
import { mountStockMiddlewares } from './stock.ts'
import { buildTerms, type Terms, type TermsInput } from './terms.ts'

/** @property facilitatorUrl null settles payments over this process's own chain. @property listen for simulations. */
export interface TillParts extends Omit<TermsInput, 'chain'>, DecisionObserver {
  readonly operation: string
  readonly chains: Chains
  readonly database: Database
  readonly dataKey: Uint8Array
  readonly facilitatorUrl: string | null
  readonly facilitatorKey: FacilitatorKey | null
  readonly clock: Clock
  readonly newId: NewId
  readonly log: Log
  readonly listen?: Listen
  /** Schemes that are taken, where the chain supports them; all by default. */
  readonly schemes?: 'exact'
}

/** @property terms what a payment on this chain must look like. */
export interface Till {
  readonly terms: Terms
  readonly payments: PaymentDeduplication
  /** Gives a payer back what is left of its channel, at its wish. */
  closeChannel(payment: Payment, units: bigint): Promise<SettlementAttempt>
  close(): Promise<void>
}

/** Opens the till of a chain. @throws Error when the configuration is not supported. */
export async function openTill(parts: TillParts, chain: Chain): Promise<Till> {
  const { facilitatorUrl, facilitatorKey, clock, dataKey, database, newId, schemes } = parts
  // A remote facilitator settles from an address of its own, which it does not tell here.
  const hasOthers = facilitatorUrl === null && schemes !== 'exact'
  const hasUpto = hasOthers && (await chain.uptoSupport()) === 'supported'
  const hasChannels = hasOthers && (await chain.channelSupport()) === 'supported'
  const authorizer = channelAuthorizer(dataKey)
  const terms = buildTerms({
    ...parts,
    chain,
    uptoFacilitator: hasUpto ? chain.signer.address : null,
    channelAuthorizer: hasChannels ? authorizer.address : null,
  })
  const storage = createChannelStorage(database, { chain: chain.name, clock })
  const channels = hasChannels ? createSellerScheme(terms, { storage, authorizer }) : null
  const attempts = createAttempts()
  const facilitator = observeProvider(
    createFacilitator({
      signer: chain.signer,
      terms,
      url: facilitatorUrl,
      key: facilitatorKey,
      clock,
      attempts,
      authorizer,
      deriveMark: (id) => transactionMark(dataKey, id),
    }),
    'facilitator',
    parts,
  )
  const listener = await servePrivately(facilitator, attempts, parts.listen)
  const stock = mountStockMiddlewares({ terms, facilitator, listener, attempts, channels })
  const payments = createPaymentDeduplication({
    ...parts,
    chain,
    token: terms.asset,
    settings: { dataKey },
    isRemote: facilitatorUrl !== null,
    isSigned: ({ payment, transfer }) =>
      payment.channel !== null
        ? isVoucherSigned(chain, payment.channel, storage)
        : payment.permit === null
          ? isSignedByPayer(chain, terms, transfer)
          : isPermitSignedByPayer(chain, payment.permit),
    attempts,
    stock,
  })
  const closeChannel: Till['closeChannel'] = async (payment, units) => {
    const deliver = () => Promise.reject(new Error('Nothing is delivered for a refund.'))
    const parts = { id: newId('pay', clock()), units, agreed: units, deliver, onTransaction: () => undefined }
    const { attempt, response } = await attempts.begin(parts, () => stock(payment))
    return toSettlementAttempt(attempt, payment, response)
  }
  return { terms, payments, closeChannel, close: () => listener.close() }
}
