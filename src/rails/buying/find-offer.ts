/** The offer that a purchase accepts: what the seller asks for when it is asked without a payment. */
import type { RateTable } from '../../core/money/rate-table.ts'
import type { Chains } from '../../providers/chain/chains.ts'
import type { Chain } from '../../providers/chain/port.ts'
import type { PublicAnswer, PublicFetch } from '../../providers/public-fetch.ts'
import type { Connection } from '../../storage/database.ts'
import { derivePurchaseNonce, purseKey } from './authorization.ts'
import { SMALL_UNITS } from './channels/channel.ts'
import { type ChannelPlan, planChannel } from './channels/plan-channel.ts'
import { type ChannelLimits, type Offer, readOffersOnAll, toOfferChain } from './offers.ts'
import { isSuccess } from './pay-purchase.ts'
import { type Acceptance, chooseOffer } from './plan-purchase.ts'
import {
  askUnpaid,
  type PurchaseRequest,
  repeatedChallenge,
  termsChanged,
  unusableAnswer,
} from './request.ts'
import { isNonceTaken } from './store.ts'
import { hasOwnPurse } from './terms.ts'

/** How often a seller that repeats a challenge is asked for another. */
const ASKS = 3

interface AskingParts {
  readonly database: Connection
  readonly chain: Chain
  readonly chains: Pick<Chains, 'all'>
  readonly now: Date
  readonly fetchPublic: PublicFetch
  readonly settings: {
    readonly mode: 'sandbox' | 'production'
    readonly dataKey: Uint8Array
    readonly channels: ChannelLimits
  }
}

/** An offer to accept. @property channel that it is paid by; null: by none. */
export type ChosenOffer = ReturnType<typeof chooseOffer> & { readonly channel: ChannelPlan | null }

/**
 * Asks the seller, and chooses the offer to accept. @param isSigned the owner signs the transfer to the purse, which is known before: an
 * `upto` purchase has a purse of its own, as has one on a further chain. @param onlyBy channel by which alone it is bought. @param rank of an
 * offer: of those that can be paid, the lowest is chosen. @returns the answer itself where it asks for no payment.
 * @throws Failure `terms_not_payable`, `seller_failed`.
 */
export async function findOffer(
  { database, chain, chains, now, fetchPublic, settings }: AskingParts,
  {
    request,
    purseId,
    keyId,
    table,
    isSigned = false,
    onlyBy,
    rank = () => 0,
    ...acceptance
  }: Acceptance & {
    request: PurchaseRequest
    purseId: string
    keyId: string | null
    table: RateTable
    isSigned?: boolean
    onlyBy?: string | undefined
    rank?: (offer: Offer) => number
  },
): Promise<ChosenOffer | { readonly free: PublicAnswer }> {
  const loopback = settings.mode === 'sandbox'
  const payer = purseKey(settings.dataKey, purseId).address
  for (let asked = 1; asked <= ASKS; asked += 1) {
    const answer = await askUnpaid(request, { fetchPublic, loopback })
    if (isSuccess(answer)) return { free: answer }
    if (answer.status !== 402) throw unusableAnswer(answer)
    const home = await toOfferChain(chain, settings)
    const others = chains.all.filter(({ name }) => name !== chain.name)
    const offers = readOffersOnAll({ home, others }, answer, now).map((offer) => {
      // A seller that names the purse itself would have it pay in a circle.
      if (offer.payTo === payer.toLowerCase()) return { ...offer, reason: 'payee_invalid' }
      // The payment of MPP is in the field of the login.
      if (offer.protocol === 'mpp' && request.secrets.authorization !== undefined)
        return { ...offer, reason: offer.reason ?? 'authorization_conflict' }
      if (offer.scheme === 'batch-settlement' && keyId === null)
        return { ...offer, reason: offer.reason ?? 'agents_only' }
      return isSigned && (hasOwnPurse(offer.scheme) || offer.chain !== chain.name) && offer.reason === null
        ? { ...offer, reason: 'owner_signs_prices_only' }
        : offer
    })
    const byChannel = offers.find(
      ({ scheme, reason, asset, units }) =>
        scheme === 'batch-settlement' &&
        reason === null &&
        asset === acceptance.asset &&
        units <= acceptance.maxUnits,
    )
    const channel =
      byChannel === undefined || keyId === null
        ? null
        : await planChannel(
            { database, now },
            {
              pair: {
                ...{ keyId, origin: request.url.origin, chain: chain.name },
                ...{ payTo: byChannel.payTo, asset: acceptance.asset },
              },
              ...{ offer: byChannel, limits: settings.channels },
            },
          )
    if (onlyBy !== undefined && !(channel?.isReady && channel.id === onlyBy)) throw termsChanged()
    const isSmall = byChannel !== undefined && (channel?.isReady || byChannel.units < SMALL_UNITS)
    const sorted = offers.toSorted((one, other) => rank(one) - rank(other))
    const offer = chooseOffer(isSmall ? [byChannel, ...sorted] : sorted, acceptance, table)
    if (offer.protocol !== 'mpp')
      return { ...offer, channel: offer.scheme === 'batch-settlement' ? channel : null }
    const nonce = derivePurchaseNonce({ purchaseId: '', ...offer })
    if (!(await isNonceTaken(database, { payer, token: offer.token, nonce })))
      return { ...offer, channel: null }
  }
  throw repeatedChallenge()
}
