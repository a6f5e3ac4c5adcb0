import { z } from 'zod'
import { reasonMember } from '../../src/books/spending/spend-note.ts'
import { Failure } from '../../src/core/failures/failure.ts'
import { decimalAmount, decimalOf } from '../../src/core/money/money.ts'
import { requireCaller } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { quoteMembers, soldQuote, viewBoughtQuote } from '../../src/rails/selling/payments/bought-quote.ts'
import { quoteFx } from '../../src/rails/selling/payments/fx-quote.ts'
import { findOwnedWallet } from '../../src/rails/wallets/store.ts'
import { findRepeatedTransfer } from '../../src/rails/wallets/transfers/find-repeated-transfer.ts'
import { gatewayAuthorization } from '../../src/rails/wallets/transfers/gateway-authorization.ts'
import { type SentTransfer, sendTransfer } from '../../src/rails/wallets/transfers/send-transfer.ts'

const code = z
  .string()
  .regex(/^[A-Za-z]{3,5}$/, 'must be a currency code such as EUR, or a stablecoin such as USDC')
  .toUpperCase()

const payment = z.strictObject({
  id: z.string().describe('`pay_…`'),
  transaction: z.string().describe('Hash of the transaction that paid.'),
  network: z.string().describe('Network of the payment.'),
  amount: z.string().describe('Price, as a decimal string of the asset.'),
  asset: z.string().describe('Stablecoin by symbol.'),
  payer: z.string().describe('EVM address that paid.'),
})

export default defineTool({
  name: 'x402.fx',
  title: 'FX quote',
  summary: 'Buy a foreign-exchange quote.',
  description:
    'Use it when an exact rate is worth its price, 0.01 USDC by default. It exchanges nothing. The owner’s wallet pays (category `x402`), or your own x402 payment in _meta["x402/payment"]. `settlement_pending`: repeat with the same idempotency key only.',
  restDescription:
    'Over REST no account is needed: answer the 402 challenge with an x402 payment. GET /api/rails shows the age of the rates. `pair_not_supported` and `rates_unavailable` cost nothing.',
  route: 'GET /api/x402/fx',
  who: 'public',
  scopes: ['fx:pay'],
  effect: 'spend',
  proof: 'step-up',
  mcp: true,
  rail: 'x402-fx',
  rate: 'fx',
  input: z.strictObject({
    from: code.describe('Currency (ISO 4217) or stablecoin to sell, such as USD or EURC.'),
    to: code.describe('Currency (ISO 4217) or stablecoin to buy.'),
    amount: decimalAmount.describe('Amount of `from`, as a decimal.'),
    ...reasonMember,
  }),
  output: z.strictObject({ ...quoteMembers, payment: payment.describe('Payment for the quote.') }),
  failures: [
    'pair_not_supported',
    'rates_unavailable',
    'policy_denied',
    'approval_required',
    'approval_rejected',
    'insufficient_funds',
    'controls_unavailable',
    'facilitator_unavailable',
    'settlement_pending',
    'payment_reused',
  ],
  example: { from: 'USD', to: 'EUR', amount: '100' },
  sale: async (context, input) => ({
    quoteId: context.newId('quote', context.now),
    ...(await quoteFx(context, input, context.now)),
  }),
  facts: soldQuote,
  spend: async (context, input) => {
    const { settings, chain, now, newId } = context
    const payer = (await findOwnedWallet(context.database, requireCaller(context).account.id))?.address
    if (payer === undefined) throw new Failure('not_found', 'The account has no wallet to pay from.')
    const quoted = { quoteId: newId('quote', now), ...(await quoteFx(context, input, now)) }
    const facts = {
      quoted,
      paymentId: newId('pay', now),
      payer,
      network: chain.name,
      price: decimalOf(settings.fxPrice),
    }
    return {
      category: 'x402',
      money: settings.fxPrice,
      place: chain.name,
      chain: chain.name,
      counterparty: settings.x402PayTo,
      facts,
    }
  },
  run: async (context, _input, { decisionId, facts, money }) => {
    const caller = requireCaller(context)
    const wallet = await findOwnedWallet(context.database, caller.account.id)
    if (wallet === undefined) throw new Failure('not_found', 'The account has no wallet to pay from.')
    const sent = await sendTransfer(context, {
      authorizedBy: gatewayAuthorization(wallet, caller.kind === 'key' ? caller.key.id : null),
      accountId: caller.account.id,
      decisionId,
      token: 'USDC',
      units: money.units,
      destination: context.settings.x402PayTo,
      at: context.now,
    })
    return deliverQuote(sent, { decisionId, facts })
  },
  recall: async (context, _input, { decisionId, facts }) => {
    const sent = await findRepeatedTransfer(context, decisionId)
    return sent === null ? null : deliverQuote(sent, { decisionId, facts })
  },
})

/**
 * Builds the answer: the quote with its payment.
 * @throws Failure `settlement_pending` until the chain has confirmed the payment.
 */
function deliverQuote(
  { transactionHash, transferId, status }: SentTransfer,
  { decisionId, facts }: { decisionId: string; facts: z.output<typeof soldQuote> },
) {
  if (status !== 'confirmed')
    throw new Failure(
      'settlement_pending',
      `The payment for the quote was sent as transfer ${transferId} and is not yet confirmed.`,
      {
        decisionId,
        transferId,
        retryAfter: 3,
        hint: 'Repeat this call with the same idempotency key to get the quote after the payment is confirmed; it never pays twice.',
      },
    )
  return viewBoughtQuote(facts, transactionHash)
}
