/** Purchases as their buyers see them. */
import { getAddress } from 'viem'
import { z } from 'zod'
import { type FundingFacts, fundingView, viewFunding } from '../../books/spending/funding-view.ts'
import { untrustedTextOrNull } from '../../core/base/untrusted-text.ts'
import { Failure } from '../../core/failures/failure.ts'
import { toDecimal } from '../../core/money/money.ts'
import { type Delivery, deliveryView, unsealAnswer } from './delivery.ts'
import { chargedUnits, deliverableUntil, type Purchase, parseKind } from './store.ts'
import { payableAssets, protocols, schemes } from './terms.ts'

/** Members that the answer to a purchase and its later reading share. */
const members = {
  purchaseId: z.string().nullable().describe('`buy_…`; null if free.'),
  charged: z.string().describe('Paid amount of the asset; "0" if unpaid or pending.'),
  asset: z.enum(payableAssets).nullable().describe('Asset paid in; null if free.'),
  protocol: z.enum(protocols).nullable().describe('Protocol; null if free.'),
  network: z.string().nullable().describe('As the seller names it; null if free.'),
  payTo: z.string().nullable().describe('Payee; null if free.'),
  transaction: z.string().nullable().describe('Its hash; null: none.'),
  decisionId: z.string().nullable().describe('`dec_…`; null if free.'),
  attempts: z.int().describe('Paid requests to the seller.'),
  lastFailure: untrustedTextOrNull('Why the last failed.'),
  expiresAt: z.string().nullable().describe('Until when it can be delivered, ISO 8601 UTC.'),
}

export const boughtView = z.strictObject({
  ...members,
  status: z
    .enum(['delivered', 'undelivered', 'settlement_pending', 'free'])
    .describe(
      '`undelivered`: paid, nothing came; `settlement_pending`: may be paid yet; `free`: no payment asked.',
    ),
  usd: z.string().nullable().describe('Value in USD when decided; null if free.'),
  askedAgain: z.boolean().describe('True if this repeated call asked the seller.'),
  response: deliveryView
    .nullable()
    .describe('The seller’s answer; null: none came, after a day, or in an approval: read the purchase.'),
  funding: fundingView.nullable().describe('Move from another chain before it; null: none.'),
  replayed: z.boolean().describe('True for a repeated call.'),
})
boughtView.register(z.globalRegistry, { id: 'Bought' })

export const purchaseView = z.strictObject({
  ...members,
  status: z
    .enum(['delivered', 'undelivered', 'settlement_pending', 'failed'])
    .describe('`undelivered`: paid, nothing came; `failed`: not paid and never will be.'),
  url: z.string().describe('Its URL.'),
  method: z.string().describe('HTTP method.'),
  purpose: z.string().nullable().describe('Its purpose.'),
  scheme: z.enum(schemes).describe('`upto`: `price` is the maximum that was reserved.'),
  price: z.string().describe('Agreed price in the asset.'),
  failure: untrustedTextOrNull('As `lastFailure`.'),
  recourseId: z.string().nullable().describe('`rec_…`; null: none.'),
  refunded: z.string().describe('What came back of it.'),
  createdAt: z.string().describe('ISO 8601 UTC.'),
})
purchaseView.register(z.globalRegistry, { id: 'Purchase' })

export const wholePurchaseView = purchaseView.extend({
  askedAgain: boughtView.shape.askedAgain,
  response: deliveryView.nullable().describe('The seller’s answer; null if none came, or after a day.'),
})

function viewShared(purchase: Purchase) {
  const { asset, protocol } = parseKind(purchase)
  const { state, delivered_at: deliveredAt } = purchase
  return {
    purchaseId: purchase.id,
    charged: state === 'settled' ? toDecimal({ asset, units: chargedUnits(purchase) }) : '0',
    asset,
    protocol,
    network: purchase.network,
    payTo: getAddress(purchase.pay_to),
    transaction: purchase.transaction_hash,
    decisionId: purchase.decision_id,
    attempts: purchase.attempts,
    lastFailure: deliveredAt === null ? purchase.failure : null,
    expiresAt: deliverableUntil(purchase)?.toISOString() ?? null,
  }
}

export function unsealDelivery(dataKey: Uint8Array, { id, delivered }: Purchase): Delivery | null {
  return delivered === null ? null : unsealAnswer(dataKey, id, delivered).view
}

/**
 * The answer to a purchase. @throws Failure why it was not paid, if it certainly was not and nothing came.
 */
export function viewBought(
  dataKey: Uint8Array,
  purchase: Purchase,
  {
    usd,
    funding,
    replayed,
    askedAgain,
  }: { usd: string; funding: FundingFacts | null; replayed: boolean; askedAgain: boolean },
): z.input<typeof boughtView> {
  const hasCome = purchase.delivered_at !== null
  if (purchase.state === 'failed' && !hasCome) throw notPaid(purchase)
  return {
    ...viewShared(purchase),
    status:
      hasCome && purchase.state !== 'signed'
        ? 'delivered'
        : purchase.state === 'settled'
          ? 'undelivered'
          : 'settlement_pending',
    usd,
    askedAgain,
    response: unsealDelivery(dataKey, purchase),
    funding: funding === null ? null : viewFunding(funding),
    replayed,
  }
}

export function viewFree(response: Delivery): z.input<typeof boughtView> {
  return {
    purchaseId: null,
    status: 'free',
    charged: '0',
    asset: null,
    usd: null,
    protocol: null,
    network: null,
    payTo: null,
    transaction: null,
    decisionId: null,
    attempts: 0,
    lastFailure: null,
    expiresAt: null,
    askedAgain: false,
    response,
    funding: null,
    replayed: false,
  }
}

/** Status of a purchase in its view and in its evidence. */
export function toStatus({ state, delivered_at: deliveredAt }: Pick<Purchase, 'state' | 'delivered_at'>) {
  if (state === 'reserved' || state === 'signed') return 'settlement_pending'
  if (deliveredAt !== null) return 'delivered'
  return state === 'settled' ? 'undelivered' : 'failed'
}

/** What came back of a purchase. @property refunded smallest units. */
export interface ReturnedPart {
  readonly recourseId: string
  readonly refunded: bigint
}

export function viewPurchase(
  purchase: Purchase,
  returned: ReturnedPart | undefined,
): z.input<typeof purchaseView> {
  const { asset } = parseKind(purchase)
  return {
    ...viewShared(purchase),
    status: toStatus(purchase),
    url: purchase.url,
    method: purchase.method,
    purpose: purchase.purpose,
    scheme: purchase.scheme,
    price: toDecimal({ asset, units: purchase.units }),
    failure: purchase.delivered_at === null ? purchase.failure : null,
    recourseId: returned?.recourseId ?? null,
    refunded: toDecimal({ asset, units: returned?.refunded ?? 0n }),
    createdAt: purchase.created_at.toISOString(),
  }
}

const codes = ['terms_not_payable', 'provider_unavailable', 'signature_rejected', 'seller_failed'] as const

/** The failure of a purchase that was not paid. */
function notPaid(purchase: Purchase): Failure {
  const code = codes.find((known) => known === purchase.failure_code) ?? 'seller_failed'
  return new Failure(code, `Nothing was paid: ${purchase.failure ?? 'the seller failed'}.`, {
    decisionId: purchase.decision_id,
    purchaseId: purchase.id,
    isFinal: true,
    ...(code === 'terms_not_payable' ? { reason: 'terms_changed', offers: [] } : {}),
    hint: 'The money is available again. Tell the owner; a new attempt needs a new idempotency key.',
  })
}
