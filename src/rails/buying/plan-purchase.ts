/** The choice among a seller's offers. */

import { getAddress } from 'viem'
import { z } from 'zod'
import { formatUsd } from '../../../policies/usd.ts'
import { untrustedText } from '../../core/base/untrusted-text.ts'
import { Failure } from '../../core/failures/failure.ts'
import { findCurrency } from '../../core/money/currencies.ts'
import { formatUnits, toDecimal } from '../../core/money/money.ts'
import type { RateTable } from '../../core/money/rate-table.ts'
import { usdMicrosAt } from '../../core/money/usd-value.ts'
import type { Offer } from './offers.ts'
import { type PayableAsset, protocols, schemes } from './terms.ts'

export const offerView = z.strictObject({
  protocol: z.enum(protocols).describe('Payment protocol.'),
  network: untrustedText('Network as the seller names it.'),
  asset: z.string().describe('Symbol, or contract address of an unknown asset.'),
  scheme: z.enum(schemes).describe('`upto`: `amount` is a maximum.'),
  amount: z.string().describe('Price; in smallest units for an unknown asset.'),
  usd: z.string().nullable().describe('Value in USD; null for an unknown asset.'),
  payTo: z.string().describe('Payee’s EVM address.'),
  payable: z.boolean().describe('True if it can be bought here.'),
  reason: z.string().nullable().describe('Why it is not payable; null if it is.'),
})
offerView.register(z.globalRegistry, { id: 'Offer' })

export function viewOffer(table: RateTable, offer: Offer): z.input<typeof offerView> {
  const { protocol, scheme, network, asset, units, token, payTo, reason } = offer
  return {
    protocol,
    network: network.slice(0, 100),
    scheme,
    asset: asset ?? getAddress(token),
    amount: asset === null ? formatUnits(units, 0) : toDecimal({ asset, units }),
    usd:
      asset === null || findCurrency(table, asset) === undefined
        ? null
        : formatUsd(usdMicrosAt(table, { asset, units }).usdMicros),
    payTo: getAddress(payTo),
    payable: reason === null,
    reason,
  }
}

/** The buyer's conditions. @property maxUnits highest price in smallest units. */
export interface Acceptance {
  readonly asset: PayableAsset
  readonly maxUnits: bigint
}

/**
 * Chooses the first offer that can be paid.
 * @throws Failure `terms_not_payable` with every offer and why it cannot be paid.
 */
export function chooseOffer(
  offers: readonly Offer[],
  { asset, maxUnits }: Acceptance,
  table: RateTable,
): Offer & { readonly asset: PayableAsset; readonly chain: string } {
  const judged = offers.map((offer) => ({
    ...offer,
    reason:
      offer.reason ??
      (offer.asset !== asset ? 'other_asset' : offer.units > maxUnits ? 'over_max_amount' : null),
  }))
  const [first] = judged.filter(({ reason }) => reason === null)
  if (first !== undefined && first.chain !== null) return { ...first, asset, chain: first.chain }
  const isTooDear = judged.some(({ reason }) => reason === 'over_max_amount')
  const max = toDecimal({ asset, units: maxUnits })
  throw new Failure(
    'terms_not_payable',
    judged.length === 0
      ? 'The seller asks for a payment in a form that cannot be read. Nothing was paid.'
      : isTooDear
        ? `The seller asks for more than maxAmount (${max} ${asset}). Nothing was paid.`
        : 'No offer of the seller can be paid from here. Nothing was paid.',
    {
      reason: judged.length === 0 ? 'no_offer' : (judged[0]?.reason ?? 'no_offer'),
      offers: judged.map((offer) => viewOffer(table, offer)),
      hint: 'Tell the owner what the seller asks for. Do not raise maxAmount without being asked to.',
    },
  )
}
