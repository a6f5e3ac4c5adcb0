import { getAddress, isAddress } from 'viem'
import { z } from 'zod'
import { fundingView, viewFunding } from '../../src/books/spending/funding-view.ts'
import { untrustedTextOrNull, visibleName } from '../../src/core/base/untrusted-text.ts'
import { formatUnits } from '../../src/core/money/money.ts'
import { type Context, requireCaller } from '../../src/kernel/context.ts'
import { findLeavable } from '../../src/kernel/gates/policy.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { latestOrDollars } from '../../src/providers/rates/port.ts'
import { type Offer, readOffersOnAll, toOfferChain } from '../../src/rails/buying/offers.ts'
import { isSuccess } from '../../src/rails/buying/pay-purchase.ts'
import { offerView, viewOffer } from '../../src/rails/buying/plan-purchase.ts'
import { askUnpaid, readRequest, toSeller, unusableAnswer } from '../../src/rails/buying/request.ts'
import {
  MAX_PURCHASE_BYTES,
  requestMembers,
  unlistedMembers,
} from '../../src/rails/buying/request-members.ts'
import { withoutSecrets } from '../../src/rails/buying/secrets.ts'
import { findKnownSeller } from '../../src/rails/buying/store.ts'
import { isSignedFirst, protocols } from '../../src/rails/buying/terms.ts'
import { planFunding } from '../../src/rails/swaps/plan-funding.ts'
import { hasMoneyFor, MAX_MOVE_SEC, rankByMoney, readMeans } from '../../src/rails/swaps/rank-by-money.ts'
import { findWallet } from '../../src/rails/wallets/store.ts'

/** Decimals of every asset that can be paid in. */
const DIGITS = 6

export default defineTool({
  name: 'purchases.quote',
  title: 'Price of a web resource',
  summary: 'Ask a URL what it costs, without paying.',
  description: 'Use it before a first purchase from a seller. The URL is requested once.',
  route: 'POST /api/purchases/quote',
  who: 'account',
  scopes: ['purchases:pay'],
  effect: 'read',
  mcp: true,
  restOnly: ['headers', ...unlistedMembers],
  maxBodyBytes: MAX_PURCHASE_BYTES,
  withoutSecrets,
  input: z.strictObject(requestMembers),
  output: z.strictObject({
    url: z.string().describe('Requested URL.'),
    origin: z.string().describe('Seller.'),
    protocols: z.array(z.enum(protocols)).describe('Payment protocols of the seller.'),
    offers: z.array(offerView).describe('Offers of the seller, preferred first.'),
    description: untrustedTextOrNull('The seller’s description; null without one.'),
    known: z
      .strictObject({
        payTo: z.string().describe('Payee of the latest purchase.'),
        price: z.string().describe('Its price.'),
        purchases: z.int().describe('Paid purchases from this seller.'),
      })
      .nullable()
      .describe('Your past with this seller; null without one.'),
    funding: fundingView.nullable().describe('Move from another chain before it; null: none.'),
    free: z.boolean().describe('True if no payment is asked.'),
  }),
  failures: ['url_not_allowed', 'seller_failed', 'rates_unavailable'],
  example: { url: 'https://api.example.com/report' },
  run: async (context, input) => {
    const loopback = context.settings.mode === 'sandbox'
    const request = readRequest(input, { loopback })
    const answer = await askUnpaid(request, { ...context, loopback })
    const isFree = isSuccess(answer)
    if (!isFree && answer.status !== 402) throw unusableAnswer(answer)
    const offers = isFree
      ? []
      : readOffersOnAll(
          {
            home: await toOfferChain(context.chain, context.settings),
            others: context.chains.all.filter(({ name }) => name !== context.chain.name),
          },
          answer,
          context.now,
        )
    const funding = await planMove(context, offers)
    const { origin, href } = request.url
    const accountId = requireCaller(context).account.id
    const seen = await findKnownSeller(context.database, { accountId, ...toSeller(request), asset: null })
    const table = await latestOrDollars(context.rates, context.now)
    return {
      url: href,
      origin,
      protocols: protocols.filter((protocol) => offers.some((offer) => offer.protocol === protocol)),
      offers: offers.map((offer) => viewOffer(table, offer)),
      description: findDescription(offers),
      known:
        seen.last === null
          ? null
          : {
              payTo: toChecksum(seen.last.payTo),
              price: formatUnits(BigInt(seen.last.price), DIGITS),
              purchases: seen.purchases,
            },
      funding: funding === undefined ? null : viewFunding(funding.facts),
      free: isFree,
    }
  },
})

/** Plans what a purchase of the offer that fits best would move first. */
async function planMove(context: Context, offers: readonly Offer[]) {
  const caller = requireCaller(context)
  const accountId = caller.account.id
  const means = await readMeans(context, {
    accountId,
    purseId: caller.kind === 'key' ? caller.key.id : accountId,
    mayUse: findLeavable(caller),
  })
  const [best] = offers
    .filter(({ reason }) => reason === null)
    .toSorted((one, other) => (means === null ? 0 : rankByMoney(means, one) - rankByMoney(means, other)))
  if (means === null || best?.asset !== 'USDC' || best.chain === null || !isSignedFirst(best))
    return undefined
  if (hasMoneyFor(means, best)) return undefined
  return planFunding(context, {
    ...{ accountId, chain: best.chain, money: { asset: best.asset, units: best.units } },
    ...{ mayLeave: means.mayUse, authorizedBy: null, at: context.now, withinSec: MAX_MOVE_SEC },
    wallet: (await findWallet(context.database, accountId)) ?? null,
  })
}

function toChecksum(address: string): string {
  return isAddress(address) ? getAddress(address) : address
}

function findDescription(offers: readonly Offer[]): string | null {
  const text = offers.find(({ description }) => description !== null)?.description
  return text == null ? null : visibleName(text, 1000)
}
