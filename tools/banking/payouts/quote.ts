import { z } from 'zod'
import { fundingView, viewFunding } from '../../../src/books/spending/funding-view.ts'
import { toDecimal } from '../../../src/core/money/money.ts'
import { requireCaller } from '../../../src/kernel/context.ts'
import { findLeavable } from '../../../src/kernel/gates/policy.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { payoutCurrencies } from '../../../src/providers/banking/port.ts'
import { agreeTerms, insertQuote } from '../../../src/rails/banking/payout-quote.ts'
import {
  fromMember,
  payoutAssets,
  quoteMembers,
  refineQuote,
} from '../../../src/rails/banking/payout-request.ts'
import { requireRecipient } from '../../../src/rails/banking/recipients.ts'
import { planFunding } from '../../../src/rails/swaps/plan-funding.ts'
import { findOwnedWallet } from '../../../src/rails/wallets/store.ts'

export default defineTool({
  name: 'banking.payouts.quote',
  title: 'Quote a payout',
  summary: 'Tell what a payout costs and what arrives, without paying.',
  description:
    'Use it before a payout whose fee or rate matters. Pay it with `quoteId`, once; where an approval may take longer, pay out `recipientAmount`.',
  route: 'POST /api/banking/payouts/quote',
  who: 'account',
  scopes: ['banking:pay'],
  effect: 'write',
  proof: 'none',
  ownTransactions: true,
  mcp: true,
  rail: 'bank-payout',
  payee: 'recipientId',
  input: z
    .strictObject({
      ...quoteMembers,
      from: fromMember,
      asset: z
        .enum(payoutAssets)
        .default('USD')
        .describe('`USD`: cash at the bank; `USDC`: from the wallet.'),
    })
    .superRefine(refineQuote),
  output: z.strictObject({
    quoteId: z
      .string()
      .nullable()
      .describe('`quote_…`; null where the bank sets its rate later: `recipientAmount` is then an estimate.'),
    amount: z.string().describe('Amount that leaves the account, with the fee.'),
    asset: z.enum(payoutAssets).describe('Asset that is paid out.'),
    fee: z.string().describe('Fee within the amount.'),
    rate: z.string().describe('Units of the currency per unit of the asset.'),
    recipientAmount: z.string().describe('Amount that arrives.'),
    currency: z.enum(payoutCurrencies).describe('Currency that arrives.'),
    eta: z.string().describe('When it is expected to arrive, ISO 8601 UTC.'),
    funding: fundingView.nullable().describe('Move from another chain before it; null: none.'),
    expiresAt: z.string().nullable().describe('When the quote expires, ISO 8601 UTC; null without one.'),
  }),
  failures: ['payout_rejected', 'rates_unavailable', 'provider_unavailable', 'not_found'],
  example: { recipientId: 'rcp_01h455vb4pex5vsknk084sn02q', recipientAmount: '5' },
  run: async (context, { recipientId, asset, ...said }) => {
    const caller = requireCaller(context)
    const accountId = caller.account.id
    const recipient = await requireRecipient(context, { id: recipientId, accountId })
    const terms = await agreeTerms(context, { accountId, recipient, said: { ...said, asset } })
    const { money, fee, rate, recipientUnits, eta, firmUntil } = terms
    const { currency } = recipient
    const wallet = await findOwnedWallet(context.database, accountId)
    // What an owner's own key must sign is not moved.
    const isMovable = caller.kind === 'key' || wallet?.owner.kind === 'gateway'
    const move =
      said.from === 'any' && money.asset === 'USDC' && isMovable
        ? await planFunding(context, {
            ...{ accountId, authorizedBy: null, at: context.now },
            ...{ chain: context.chain.name, money: { asset: money.asset, units: money.units } },
            wallet: wallet?.address ?? null,
            mayLeave: findLeavable(caller),
          })
        : undefined
    return {
      quoteId: await insertQuote(context, { accountId, recipient, terms }),
      amount: toDecimal(money),
      asset,
      fee: toDecimal({ asset, units: fee }),
      rate,
      recipientAmount: toDecimal({ asset: currency, units: recipientUnits }),
      currency,
      eta: eta.toISOString(),
      funding: move === undefined ? null : viewFunding(move.facts),
      expiresAt: firmUntil?.toISOString() ?? null,
    }
  },
})
