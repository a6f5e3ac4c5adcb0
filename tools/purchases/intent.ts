import { getAddress } from 'viem'
import { z } from 'zod'
import { Failure } from '../../src/core/failures/failure.ts'
import { toDecimal, toMoney } from '../../src/core/money/money.ts'
import { requirePerson } from '../../src/kernel/context.ts'
import { denyUnscreened } from '../../src/kernel/gates/spend.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { complianceFactsFrom } from '../../src/people/compliance/transfer-facts.ts'
import { latestOrDollars } from '../../src/providers/rates/port.ts'
import { purseKey } from '../../src/rails/buying/authorization.ts'
import { findOffer } from '../../src/rails/buying/find-offer.ts'
import { readRequest } from '../../src/rails/buying/request.ts'
import {
  MAX_PURCHASE_BYTES,
  purchaseMembers,
  refinePurchase,
} from '../../src/rails/buying/request-members.ts'
import { withoutSecrets } from '../../src/rails/buying/secrets.ts'
import { describeTerms } from '../../src/rails/buying/signed-terms.ts'
import { payableAssets } from '../../src/rails/buying/terms.ts'
import { intentView, makePurchaseIntent } from '../../src/rails/wallets/signing/make-intent.ts'
import { lowerCase } from '../../src/rails/wallets/store.ts'
import { admitTransfer } from '../../src/rails/wallets/transfers/admit-transfer.ts'
import { loadTransferFacts } from '../../src/rails/wallets/transfers/load-transfer-facts.ts'

export default defineTool({
  name: 'purchases.intent',
  title: 'Purchase intent',
  summary: 'Get the intent to sign for a purchase from the owner’s own wallet, valid for five minutes.',
  description:
    'The seller is asked for its price first. Sign `challenge` with a passkey or `typedData` with a registered EVM key, then send the signature to POST /api/purchases with the same members and `intentId`. Nothing is reserved until then. The signature pays this price to this payee, or nothing: if the seller then asks for something else, get a new intent.',
  route: 'POST /api/purchases/intent',
  who: 'person',
  effect: 'write',
  proof: 'none',
  ownTransactions: true,
  rail: 'x402-purchases',
  maxBodyBytes: MAX_PURCHASE_BYTES,
  withoutSecrets,
  input: z.strictObject(purchaseMembers).superRefine(refinePurchase),
  output: intentView.extend({
    amount: z.string().describe('Price, as a decimal string of the asset.'),
    asset: z.enum(payableAssets).describe('Asset paid in.'),
    payTo: z.string().describe('Payee’s EVM address.'),
  }),
  failures: [
    'url_not_allowed',
    'terms_not_payable',
    'seller_failed',
    'aml_blocked',
    'screening_unavailable',
    'rates_unavailable',
    'not_found',
    'conflict',
  ],
  example: { url: 'https://api.example.com/report', maxAmount: '0.05' },
  run: async (context, input) => {
    const { now: at, chain, settings } = context
    const { asset } = input
    const accountId = requirePerson(context).account.id
    const request = readRequest(input, { loopback: settings.mode === 'sandbox' })
    const table = await latestOrDollars(context.rates, at)
    const maxUnits = toMoney(asset, input.maxAmount).units
    const found = await findOffer(context, {
      request,
      purseId: accountId,
      keyId: null,
      asset,
      maxUnits,
      table,
      isSigned: true,
    })
    if ('free' in found)
      throw new Failure('conflict', 'This URL asks for no payment.', {
        reason: 'costless',
        hint: 'Nothing has to be bought: request the URL itself.',
      })
    const { units, payTo } = found
    const money = { asset, units }
    const payment = { accountId, keyId: null, destination: payTo, chain: chain.name, money }
    const known = await loadTransferFacts(context, payment)
    const facts = complianceFactsFrom(known.compliance, payTo)
    const { aml } = await admitTransfer(context, { ...known, ...payment, facts, safeAddress: undefined })
    if (aml.screening.result !== 'clear')
      await denyUnscreened(
        'purchases.intent',
        {
          category: 'x402',
          money,
          place: null,
          chain: chain.name,
          counterparty: payTo,
          aml,
          facts: { screening: aml.screening },
        },
        context,
      )
    const { wallet } = known.parties
    if (wallet === undefined) throw new Failure('not_found', 'The account has no wallet to pay from.')
    const destination = lowerCase(purseKey(settings.dataKey, accountId).address)
    const intent = await makePurchaseIntent(context, {
      wallet,
      transfer: { token: asset, units, destination, chain: chain.name },
      said: describeTerms({ request, payTo }),
      at,
    })
    return { ...intent, amount: toDecimal(money), asset, payTo: getAddress(payTo) }
  },
})
