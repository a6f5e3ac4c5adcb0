import { z } from 'zod'
import { requireNoDebt } from '../../../src/books/debts/debts.ts'
import { balances } from '../../../src/books/ledger/balances.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import { type Money, toDecimal } from '../../../src/core/money/money.ts'
import { type Context, requirePerson } from '../../../src/kernel/context.ts'
import { denyUnscreened } from '../../../src/kernel/gates/spend.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { readCountry } from '../../../src/people/compliance/store.ts'
import { loadHolderName } from '../../../src/people/compliance/verified-person.ts'
import { payoutCurrencies } from '../../../src/providers/banking/port.ts'
import { admitPayout } from '../../../src/rails/banking/admit-payout.ts'
import { agreeTerms } from '../../../src/rails/banking/payout-quote.ts'
import { payoutMembers, refinePayout } from '../../../src/rails/banking/payout-request.ts'
import { preparePayout } from '../../../src/rails/banking/prepare-payout.ts'
import { renewPrepared } from '../../../src/rails/banking/prepared-payout.ts'
import { requireRecipient } from '../../../src/rails/banking/recipients.ts'
import { endPayoutIntents } from '../../../src/rails/wallets/signing/intent-store.ts'
import { intentView, makePayoutIntent } from '../../../src/rails/wallets/signing/make-intent.ts'
import { findOwnedWallet } from '../../../src/rails/wallets/store.ts'

export default defineTool({
  name: 'banking.payouts.intent',
  title: 'Payout intent',
  summary: 'Get the intent to sign for a payout of USDC from the owner’s own wallet, valid for five minutes.',
  description:
    'The banking provider is asked for the payout first, because only its answer names the address that the money goes to. Sign `challenge` with a passkey or `typedData` with a registered EVM key, then send the signature to POST /api/banking/payouts with the same members and `intentId`. Nothing is reserved until then, and a payout that is not signed is canceled at the provider. A later intent for the same payout replaces this one. `conflict`: another payout of this amount waits to be signed.',
  route: 'POST /api/banking/payouts/intent',
  who: 'person',
  effect: 'write',
  proof: 'step-up',
  ownTransactions: true,
  rail: 'bank-payout',
  payee: 'recipientId',
  input: z
    .strictObject({
      ...payoutMembers,
      asset: z.literal('USDC').default('USDC').describe('`USDC`: from the wallet, the default.'),
    })
    .superRefine(refinePayout),
  output: intentView.extend({
    amount: z.string().describe('Amount that leaves the wallet, with the fee, as a decimal string.'),
    fee: z.string().describe('Fee within the amount, as a decimal string of the asset.'),
    currency: z.enum(payoutCurrencies).describe('Currency that the recipient gets.'),
    recipientAmount: z.string().describe('Amount that the recipient gets, as a decimal string.'),
    rate: z.string().describe('Units of the currency per unit of the asset, as a decimal string.'),
    eta: z.string().describe('When it is expected to arrive, ISO 8601 UTC.'),
  }),
  failures: [
    'wallet_busy',
    'insufficient_funds',
    'payout_rejected',
    'aml_blocked',
    'screening_unavailable',
    'rates_unavailable',
    'provider_unavailable',
    'not_found',
    'conflict',
  ],
  example: { recipientId: 'rcp_01h455vb4pex5vsknk084sn02q', amount: '25', asset: 'USDC' },
  run: async (context, { recipientId, reference = null, ...payout }) => {
    const { account } = requirePerson(context)
    const { chain, database, now: at } = context
    const accountId = account.id
    await requireNoDebt(database, accountId)
    const recipient = await requireRecipient(context, { id: recipientId, accountId })
    const wallet = await findOwnedWallet(database, accountId)
    if (wallet === undefined) throw new Failure('not_found', 'The account has no wallet to pay from.')
    const place = chain.name
    const { firmUntil: _, ...terms } = await agreeTerms(context, { accountId, recipient, said: payout })
    const { money, fee, recipientUnits, rate, eta } = terms
    const { aml } = await admitPayout(context, {
      ...{ accountId, keyId: null, place, terms, recipient },
      payer: await loadHolderName(context, account),
      payerCountry: await readCountry(database, accountId),
    })
    if (aml.screening.result !== 'clear') {
      const facts = { screening: aml.screening }
      const spending = {
        category: 'payout',
        money,
        place: null,
        chain: place,
        counterparty: recipientId,
      } as const
      await denyUnscreened('banking.payouts.intent', { ...spending, aml, facts }, context)
    }
    await requireFunds(context, { accountId, place, money })
    const { currency } = recipient
    const order = { accountId, recipientId, place, currency, reference, createdAt: at, ...terms }
    const prepared = await preparePayout(context, { ...order, id: context.newId('out', at) })
    const { id: payoutId, depositTo: destination } = prepared
    const said = {
      recipientId,
      currency,
      recipientAmount: toDecimal({ asset: currency, units: recipientUnits }),
    }
    const intent = await database.transaction(async (connection) => {
      if (!(await renewPrepared(connection, { ...order, id: payoutId })))
        throw new Failure('conflict', 'The payout was signed or has ended meanwhile.', {
          hint: 'Read GET /api/banking/payouts, and ask for an intent again if it is not there.',
        })
      await endPayoutIntents(connection, { payoutId, at })
      const transfer = { token: 'USDC', units: money.units, destination, chain: place } as const
      return makePayoutIntent({ ...context, database: connection }, { wallet, payoutId, transfer, said, at })
    })
    return {
      ...intent,
      amount: toDecimal(money),
      fee: toDecimal({ asset: 'USDC', units: fee }),
      currency,
      recipientAmount: said.recipientAmount,
      rate,
      eta: eta.toISOString(),
    }
  },
})

/** Keeps a payout that could not be paid from being asked for. @throws Failure `insufficient_funds`. */
async function requireFunds(
  { database }: Context,
  { accountId, place, money }: { accountId: string; place: string; money: Money },
): Promise<void> {
  const rows = await balances(database, accountId)
  const available = rows.find((row) => row.place === place && row.asset === money.asset)?.available ?? 0n
  if (available >= money.units) return
  throw new Failure(
    'insufficient_funds',
    `The wallet has ${toDecimal({ ...money, units: available })} ${money.asset} available; ${toDecimal(money)} needed.`,
    { hint: 'Add USDC, or pay out USD cash.' },
  )
}
