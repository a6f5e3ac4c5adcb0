import { z } from 'zod'
import { untrustedText, untrustedTextOrNull } from '../../src/core/base/untrusted-text.ts'
import { decimalAmount, toDecimal, toMoney } from '../../src/core/money/money.ts'
import { type Context, requireCaller } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import {
  type FoundSeller,
  findSellers,
  type SellerEntry,
  sellerOrders,
  sellerSources,
} from '../../src/rails/buying/find-sellers.ts'
import { toSeller } from '../../src/rails/buying/request.ts'
import { refinePurchase } from '../../src/rails/buying/request-members.ts'
import type { SellerRecord } from '../../src/rails/buying/seller-records.ts'
import { payableAssets, protocols } from '../../src/rails/buying/terms.ts'
import { sandboxSellers, sellerUrl } from '../../src/sandbox/sellers/sellers.ts'

const recordView = z.strictObject({
  of: z.enum(['all', 'own']).describe('All accounts’ purchases, or only yours.'),
  purchases: z.int().describe('Paid purchases; at most the latest 1,000 count.'),
  delivered: z.int().describe('Delivered ones.'),
  undelivered: z.int().describe('Paid ones for which nothing came.'),
  refunded: z.int().describe('Paid ones whose money came back.'),
  medianMs: z.int().nullable().describe('Milliseconds from decision to delivery.'),
  lastAt: z.string().describe('Latest purchase, ISO 8601 UTC; its day, if of all accounts.'),
  priceChanges: z.int().describe('How often the price of a resource changed.'),
  payeeChanges: z.int().describe('How often the payee changed.'),
})
recordView.register(z.globalRegistry, { id: 'SellerRecord' })

export default defineTool({
  name: 'sellers.find',
  title: 'Find sellers',
  summary: 'Find paid URLs, and how reliably their sellers delivered.',
  description:
    'Use it to choose whom to buy from. `own`: bought here before; `sandbox`; `bazaar`: listed by others, as a hint. Prices may be old: ask purchases_quote.',
  restDescription:
    'A record is of all accounts once five stand behind it, else of your own purchases; null without any. At most 50 sellers.',
  route: 'GET /api/sellers',
  who: 'account',
  scopes: ['purchases:pay'],
  effect: 'read',
  mcp: true,
  input: z
    .strictObject({
      query: z.string().trim().max(200).default('').describe('Words of its URL, name or text.'),
      asset: z.enum(payableAssets).optional().describe('Asset of the price.'),
      maxPrice: decimalAmount.optional().describe('Highest price in it (USDC by default).'),
      sort: z.enum(sellerOrders).default('record').describe('Best record, lowest price or latest first.'),
    })
    .superRefine(({ maxPrice, asset = 'USDC' }, context) => {
      if (maxPrice !== undefined) refinePurchase({ maxAmount: maxPrice, asset }, context)
    }),
  output: z.strictObject({
    sellers: z
      .array(
        z.strictObject({
          origin: z.string().describe('Origin of the URL.'),
          url: z.string().describe('URL to buy.'),
          name: untrustedText('Name.'),
          about: untrustedTextOrNull('What it sells, in its own words.'),
          protocol: z.enum(protocols).describe('Payment protocol.'),
          price: z.string().describe('Price when it was last paid or listed.'),
          asset: z.enum(payableAssets).describe('Asset of the price.'),
          source: z.enum(sellerSources).describe('Who knows it.'),
          record: recordView.nullable().describe('What became of purchases from this seller.'),
        }),
      )
      .describe('Sellers.'),
  }),
  failures: [],
  run: async (context, { query, asset, maxPrice, sort }) => {
    const caller = requireCaller(context)
    const found = await findSellers(
      { ...context, sandbox: listSandbox(context) },
      {
        accountId: caller.account.id,
        keyId: caller.kind === 'key' ? caller.key.id : null,
        query,
        asset: asset ?? null,
        maxUnits: maxPrice === undefined ? null : toMoney(asset ?? 'USDC', maxPrice).units,
        order: sort,
        now: context.now,
      },
    )
    return { sellers: found.map(viewSeller) }
  },
})

/** The sandbox's own sellers: the buyer is told of the dishonest ones too. */
function listSandbox({ settings }: Pick<Context, 'settings'>): readonly SellerEntry[] {
  if (settings.mode !== 'sandbox') return []
  return sandboxSellers.flatMap((one) => {
    const { name, about, protocol, price } = one
    if (protocol === 'free') return []
    const url = new URL(sellerUrl(settings.origin, one))
    const { units } = toMoney('USDC', price)
    const { origin, href } = url
    const { seller } = toSeller({ url })
    return [{ url: href, origin, seller, name, about, protocol, asset: 'USDC', units, source: 'sandbox' }]
  })
}

function viewSeller({ origin, url, name, about, protocol, asset, units, source, record }: FoundSeller) {
  return {
    origin,
    url,
    name,
    about,
    protocol,
    price: toDecimal({ asset, units }),
    asset,
    source,
    record: record === null ? null : viewRecord(record),
  }
}

/** The time of a purchase that may be somebody else's is told to the day. */
function viewRecord({ isShared, lastAt, ...counts }: SellerRecord): z.input<typeof recordView> {
  const at = lastAt.toISOString()
  return {
    of: isShared ? 'all' : 'own',
    ...counts,
    lastAt: isShared ? `${at.slice(0, 10)}T00:00:00.000Z` : at,
  }
}
