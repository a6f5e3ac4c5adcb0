import { z } from 'zod'
import { admitPayout } from '../../../src/banking/admit-payout.ts'
import {
  findPayout,
  insertPayout,
  type NewPayout,
  payoutView,
  viewPayout,
} from '../../../src/banking/payout.ts'
import { numberOf, type Recipient, requireRecipient } from '../../../src/banking/recipients.ts'
import {
  endPayout,
  findRepeatedPayout,
  rejectedPayout,
  sendPayout,
} from '../../../src/banking/send-payout.ts'
import { payoutPayload, recordPayoutParties } from '../../../src/compliance/record-payout-parties.ts'
import { readCountry } from '../../../src/compliance/store.ts'
import { loadHolderName } from '../../../src/compliance/verified-person.ts'
import { Failure } from '../../../src/failures/failure.ts'
import { type Context, callerOf } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { amountMismatch, decimalAmount, moneyOf } from '../../../src/money/money.ts'
import type { Address } from '../../../src/providers/chain.ts'
import { releaseSpend } from '../../../src/spending/release.ts'
import { BANK } from '../../../src/spending/sources.ts'
import { recordMint } from '../../../src/wallets/reconcile/owed-mints.ts'
import { findOwnedWallet } from '../../../src/wallets/store.ts'
import { gatewayAuthorization } from '../../../src/wallets/transfers/gateway-authorization.ts'
import { sendTransfer } from '../../../src/wallets/transfers/send-transfer.ts'

const payoutRequest = z
  .strictObject({
    recipientId: z
      .string()
      .max(64)
      .describe('`rcp_…`: saved bank account, from GET /api/banking/recipients.'),
    amount: decimalAmount.describe(
      'Amount that leaves the account, with the fee, as a decimal string or number: 1 to 1,000,000.',
    ),
    asset: z
      .enum(['USD', 'USDC'])
      .default('USD')
      .describe('`USD`: cash at the bank; `USDC`: from the wallet. Default: `USD`.'),
    reference: z
      .string()
      .trim()
      .regex(/^[A-Za-z0-9 .,'()/?:+-]{1,35}$/, "must be 1 to 35 letters, digits, spaces or .,'()/?:+-")
      .optional()
      .describe('Reference that the recipient sees, where its bank shows one; 1 to 35 characters.'),
  })
  .superRefine(({ amount, asset }, context) => {
    const misfit = amountMismatch(amount, asset)
    if (misfit !== undefined) context.addIssue({ code: 'custom', path: ['amount'], message: misfit })
  })

const units = z.string().regex(/^\d+$/)

/** Terms and verdicts; nothing about the recipient but its id. */
const payoutFacts = z.strictObject({
  recipientId: z.string(),
  currency: z.enum(['USD', 'EUR', 'GBP']),
  fee: units,
  recipientUnits: units,
  rate: z.string(),
  eta: z.string(),
  travelRule: z.enum(['required', 'not_required']),
  screening: z.strictObject({ result: z.enum(['clear', 'review', 'blocked']), lists: z.array(z.string()) }),
})

export default defineTool({
  name: 'banking.payouts.create',
  title: 'Pay out to a bank',
  summary: 'Pay out USD cash, or USDC from the wallet, to a saved bank account.',
  description:
    'Use it when the owner asked for this payment; the recipient must be saved already. The fee is part of the amount; the answer says what arrives. The money cannot be called back. It counts under the policy (category `payout`; `counterparties` may list recipients). Returns `pending` or `sent`: follow it with GET /api/banking/payouts/{id}, do not send it again. `returned` and `failed` money is available again. `payout_rejected`: nothing was sent; see `reason`. `aml_blocked`: do not retry; tell your owner. `policy_denied`: stop, or ask with POST /api/approvals. After a timeout repeat with the same idempotency key.',
  route: 'POST /api/banking/payouts',
  who: 'account',
  scopes: ['banking:pay'],
  effect: 'spend',
  stepUp: true,
  mcp: true,
  rail: 'bank-payout',
  input: payoutRequest,
  output: payoutView,
  failures: [
    'insufficient_funds',
    'payout_rejected',
    'aml_blocked',
    'signature_rejected',
    'policy_denied',
    'approval_required',
    'screening_unavailable',
    'rates_unavailable',
    'provider_unavailable',
    'not_found',
    'conflict',
  ],
  example: { recipientId: 'rcp_01h455vb4pex5vsknk084sn02q', amount: '25', reference: 'Invoice 42' },
  facts: payoutFacts,
  spend: async (context, { recipientId, amount, asset }) => {
    const caller = callerOf(context)
    const accountId = caller.account.id
    const keyId = caller.kind === 'key' ? caller.key.id : null
    const recipient = await requireRecipient(context, { id: recipientId, accountId })
    const money = { asset, units: moneyOf(asset, amount).units }
    const place = asset === 'USD' ? BANK : context.chain.name
    if (place !== BANK) await requireGatewaySigns(context)
    const { quote, travelRule, aml } = await admitPayout(context, {
      accountId,
      keyId,
      payer: await loadHolderName(context, caller.account),
      payerCountry: await readCountry(context.database, accountId),
      place,
      money,
      recipient,
    })
    const { result, lists } = aml.screening
    return {
      category: 'payout',
      money,
      place,
      chain: place === BANK ? null : place,
      counterparty: recipientId,
      aml,
      ...(place === BANK ? {} : { isSponsored: true as const }),
      fundsHint:
        place === BANK
          ? 'Payouts of USD are paid from USD cash only: tell the owner to add USD, or pay out USDC.'
          : 'Tell the owner to add USDC, or pay out USD cash.',
      facts: {
        recipientId,
        currency: recipient.currency,
        fee: quote.fee.toString(),
        recipientUnits: quote.recipientUnits.toString(),
        rate: quote.rate,
        eta: quote.eta.toISOString(),
        travelRule,
        screening: { result, lists: [...lists] },
      },
    }
  },
  run: async (context, { reference }, { decisionId, facts, money, place }) => {
    const caller = callerOf(context)
    const accountId = caller.account.id
    if (place === null) throw new Error('a payout has no place')
    const payout: NewPayout = {
      id: context.newId('out', context.now),
      accountId,
      keyId: caller.kind === 'key' ? caller.key.id : null,
      decisionId,
      recipientId: facts.recipientId,
      place,
      money,
      fee: BigInt(facts.fee),
      currency: facts.currency,
      recipientUnits: BigInt(facts.recipientUnits),
      rate: facts.rate,
      eta: new Date(facts.eta),
      reference: reference ?? null,
      createdAt: context.now,
    }
    await writePayout(context, payout, facts.travelRule)
    const written = await findPayout(context, { decisionId })
    if (written === undefined) throw new Error('a payout that was just written cannot be read')
    const sent = await sendPayout({ ...context, oweMint: recordMint(context) }, written)
    if (place !== BANK && sent.payout.providerId !== null) await fund(context, sent)
    return viewPayout((await findPayout(context, { decisionId })) ?? sent.payout)
  },
  recall: async (context, _input, { decisionId }) => {
    const payout = await findRepeatedPayout(context, decisionId)
    return payout === null ? null : viewPayout(payout)
  },
})

/**
 * Writes a payout with its Travel Rule data, in one transaction.
 * @throws Failure `conflict` when the reservation has ended or the recipient was removed; the money is available again.
 */
async function writePayout(
  context: Context,
  payout: NewPayout,
  status: 'required' | 'not_required',
): Promise<void> {
  const { accountId, recipientId, decisionId, money, place } = payout
  const release = () => releaseSpend(context.database, { decisionId, at: context.now })
  const payload = await partiesOf(context, payout).catch(async (error: unknown) => {
    await release()
    throw error
  })
  const isWritten = await context.database.transaction(async (database) => {
    if (!(await insertPayout({ ...context, database }, payout))) return false
    await recordPayoutParties(
      { ...context, database },
      { accountId, recipientId, money, chain: place, decisionId, status, payload, at: context.now },
    )
    return true
  })
  if (isWritten) return
  await release()
  throw new Failure(
    'conflict',
    'The recipient was removed, or the reservation has ended; nothing was sent.',
    {
      decisionId,
      isFinal: true,
      hint: 'Read GET /api/banking/recipients, and send the payout with a new idempotency key.',
    },
  )
}

async function partiesOf(context: Context, { accountId, recipientId }: NewPayout) {
  const { account } = callerOf(context)
  const recipient: Recipient = await requireRecipient(context, { id: recipientId, accountId })
  if (recipient.details === null) throw new Error(`the data of ${recipientId} was erased`)
  const { name, isCompany, account: number } = recipient.details
  return payoutPayload(context.settings.vasp, {
    originator: {
      name: await loadHolderName(context, account),
      isLegal: false,
      country: await readCountry(context.database, accountId),
      identification: accountId,
      account: accountId,
    },
    beneficiary: {
      name,
      isLegal: isCompany,
      country: recipient.country,
      identification: recipientId,
      account: numberOf(number),
    },
  })
}

/**
 * Sends the stablecoins of a payout to the provider. While the chain's answer is unknown they stay held.
 * @throws Failure `payout_rejected` when they were not sent; the money is available again.
 */
async function fund(
  context: Context,
  {
    payout,
    depositTo,
  }: {
    payout: {
      id: string
      decisionId: string
      accountId: string
      keyId: string | null
      money: { units: bigint }
    }
    depositTo: Address | null
  },
): Promise<void> {
  const { id, decisionId, accountId, keyId, money } = payout
  const wallet = await findOwnedWallet(context.database, accountId)
  const isSent =
    wallet !== undefined &&
    depositTo !== null &&
    (await sendTransfer(context, {
      authorizedBy: gatewayAuthorization(wallet, keyId),
      accountId,
      decisionId,
      token: 'USDC',
      units: money.units,
      destination: depositTo,
      at: context.now,
    }).then(
      () => true,
      (error: unknown) => {
        if (!(error instanceof Failure)) throw error
        return error.code === 'settlement_pending'
      },
    ))
  if (isSent) return
  await endPayout(context, { id }, { reason: 'not_funded', at: context.now })
  const ended = await findPayout(context, { decisionId })
  if (ended !== undefined) throw rejectedPayout(ended)
}

/** @throws Failure `signature_rejected` for a person whose wallet the gateway does not sign for. */
async function requireGatewaySigns(context: Context): Promise<void> {
  const caller = callerOf(context)
  const wallet = await findOwnedWallet(context.database, caller.account.id)
  if (wallet === undefined) throw new Failure('not_found', 'The account has no wallet to pay from.')
  if (caller.kind === 'key' || wallet.owner.kind === 'gateway') return
  throw new Failure(
    'signature_rejected',
    'The wallet belongs to your own signer, which must sign this payout.',
    {
      hint: 'Pay out USD cash, or let an agent with an allowance on the chain pay out USDC.',
    },
  )
}
