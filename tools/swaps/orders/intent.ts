import { z } from 'zod'
import { toJson } from '../../../src/core/base/json.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import { toDecimal } from '../../../src/core/money/money.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { onChain } from '../../../src/providers/chain/chains.ts'
import { refineSwap, swapMembers } from '../../../src/rails/swaps/orders.ts'
import { planSwap } from '../../../src/rails/swaps/plan-swap.ts'
import { QUOTE_MS } from '../../../src/rails/swaps/quote-swap.ts'
import { buildDeskTransfer } from '../../../src/rails/swaps/send-swap.ts'
import { insertQuote } from '../../../src/rails/swaps/store.ts'
import { intentView, makeSwapIntent } from '../../../src/rails/wallets/signing/make-intent.ts'
import { findOwnedWallet } from '../../../src/rails/wallets/store.ts'

export default defineTool({
  name: 'swaps.orders.intent',
  title: 'Swap intent',
  summary: 'Get the intent to sign for a swap from the owner’s own wallet, valid for five minutes.',
  description:
    'Sign `challenge` with a passkey or `typedData` with a registered EVM key, then send the signature to POST /api/swaps/orders with the `quoteId` and the `intentId` of this response. Nothing is reserved until then.',
  route: 'POST /api/swaps/orders/intent',
  who: 'person',
  effect: 'write',
  proof: 'none',
  ownTransactions: true,
  rail: 'wallet-transfer',
  input: z.strictObject(swapMembers).superRefine(refineSwap),
  output: intentView.extend({
    quoteId: z.string().describe('`quote_…`: the quote that is signed.'),
    minReceived: z.string().describe('With less nothing moves at all; decimal.'),
    expected: z.string().describe('Amount that is expected to arrive, decimal.'),
  }),
  failures: [
    'swap_rejected',
    'chain_not_supported',
    'pair_not_supported',
    'no_route',
    'provider_unavailable',
    'not_found',
  ],
  example: { sell: { token: 'USDC', amount: '5' }, buy: { token: 'EURC' } },
  run: async (context, input) => {
    const { account } = requirePerson(context)
    const { now: at } = context
    const accountId = account.id
    const wallet = await findOwnedWallet(context.database, accountId)
    if (wallet === undefined) throw new Failure('not_found', 'The account has no wallet.')
    const planned = await planSwap(context, {
      ...input,
      accountId,
      wallet: wallet.address,
      isSigned: false,
      isApproved: false,
    })
    const { chain: place, sell, units, expected, route } = planned
    // What is signed is kept as a quote of its own: its minimum may be higher than the quote's.
    const quoteId = context.newId('quote', at)
    const { quoteId: _, ...executable } = planned
    await insertQuote(context, {
      id: quoteId,
      accountId,
      answer: toJson({ of: input.quoteId ?? null }),
      executable,
      at,
      expiresAt: new Date(at.getTime() + QUOTE_MS),
    })
    const onIts = onChain(context, place)
    const minReceived = toDecimal({ asset: route.buy, units: route.minReceived })
    const intent = await makeSwapIntent(onIts, {
      wallet,
      transfer: buildDeskTransfer(onIts.chain, { sell, units, route }),
      said: {
        quoteId,
        buy: route.buy,
        minReceived,
        ...(route.burn === undefined ? {} : { toChain: route.burn.to }),
      },
      at,
    })
    return { ...intent, quoteId, minReceived, expected: toDecimal({ asset: route.buy, units: expected }) }
  },
})
