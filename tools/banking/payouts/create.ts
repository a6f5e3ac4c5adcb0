import { z } from 'zod'
import { requireNoDebt } from '../../../src/books/debts/debts.ts'
import { fundingFacts, fundingView, viewFunding } from '../../../src/books/spending/funding-view.ts'
import { releaseSpend } from '../../../src/books/spending/release.ts'
import { BANK } from '../../../src/books/spending/sources.ts'
import { noteMembers, parseNote } from '../../../src/books/spending/spend-note.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import { toMoney } from '../../../src/core/money/money.ts'
import { type Context, requireCaller } from '../../../src/kernel/context.ts'
import { findLeavable } from '../../../src/kernel/gates/policy.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { payoutPayload, recordPayoutParties } from '../../../src/people/compliance/record-payout-parties.ts'
import { readCountry } from '../../../src/people/compliance/store.ts'
import { loadHolderName } from '../../../src/people/compliance/verified-person.ts'
import { countSignature } from '../../../src/people/identity/passkeys/count-signature.ts'
import { readAssertion } from '../../../src/people/identity/passkeys/passkey-response.ts'
import { passkeySigners } from '../../../src/people/identity/passkeys/passkey-signature.ts'
import type { PayoutQuote } from '../../../src/providers/banking/port.ts'
import { admitPayout } from '../../../src/rails/banking/admit-payout.ts'
import { fundPayout } from '../../../src/rails/banking/fund-payout.ts'
import {
  findPayout,
  insertPayout,
  type NewPayout,
  type Payout,
  payoutView,
  viewPayout,
} from '../../../src/rails/banking/payout.ts'
import { agreeTerms } from '../../../src/rails/banking/payout-quote.ts'
import {
  fromMember,
  payoutAssets,
  payoutMembers,
  refinePayout,
} from '../../../src/rails/banking/payout-request.ts'
import { requireAwaiting, takePrepared } from '../../../src/rails/banking/prepare-payout.ts'
import {
  advancePrepared,
  findPreparedPayout,
  type PreparedPayout,
  type SignablePayout,
  unsignedPayouts,
} from '../../../src/rails/banking/prepared-payout.ts'
import { type Recipient, readAccountNumber, requireRecipient } from '../../../src/rails/banking/recipients.ts'
import {
  endPayout,
  findRepeatedPayout,
  rejectedPayout,
  sendPayout,
} from '../../../src/rails/banking/send-payout.ts'
import { planFunding } from '../../../src/rails/swaps/plan-funding.ts'
import { dropBurn, sendBurn } from '../../../src/rails/swaps/send-funding.ts'
import { recordMint } from '../../../src/rails/wallets/reconcile/owed-mints.ts'
import { findIntent } from '../../../src/rails/wallets/signing/intent-store.ts'
import { signatureMember } from '../../../src/rails/wallets/signing/signature-member.ts'
import { buildRejection } from '../../../src/rails/wallets/signing/verify-signature.ts'
import { findOwnedWallet, findWallet } from '../../../src/rails/wallets/store.ts'
import {
  type AuthorizedTransfer,
  authorizedTransfer,
  authorizeTransfer,
  buildAuthorization,
} from '../../../src/rails/wallets/transfers/authorize-transfer.ts'
import { gatewayAuthorization } from '../../../src/rails/wallets/transfers/gateway-authorization.ts'
import type { TransferAuthorization } from '../../../src/rails/wallets/transfers/send-transfer.ts'
import type { Connection } from '../../../src/storage/database.ts'

const payoutRequest = z
  .strictObject({
    ...payoutMembers,
    ...noteMembers,
    from: fromMember,
    asset: z
      .enum(payoutAssets)
      .optional()
      .describe('`USD`: cash at the bank; `USDC`: from the wallet. Default: `USD`, or the quote’s.'),
    intentId: z
      .string()
      .max(64)
      .optional()
      .describe('`int_…`: signed intent. Default: your newest open intent for the same payout.'),
    signature: signatureMember(
      'Signature of the intent from POST /api/banking/payouts/intent: a passkey’s assertion (base64url of its JSON) or a registered EVM key’s EIP-712 signature (0x hex). Required for USDC of a person whose own key owns the wallet.',
    ),
  })
  .superRefine(refinePayout)
  // Equal requests compare equal, whether they name the default or not.
  .transform(({ asset, ...said }) => ({
    ...said,
    asset: asset ?? (said.quoteId === undefined ? ('USD' as const) : undefined),
  }))
  .superRefine(({ asset, intentId, signature }, context) => {
    if (asset === 'USD' && (intentId ?? signature) !== undefined)
      context.addIssue({ code: 'custom', path: ['signature'], message: 'is for payouts of USDC only' })
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
  /** Payout that the owner signed, and its authorization; null: the gateway signs, or it is cash. */
  signed: z.strictObject({ payoutId: z.string(), authorized: authorizedTransfer }).nullable().default(null),
  /** Absent in decisions of earlier versions. */
  funding: fundingFacts.nullable().default(null),
})

export default defineTool({
  name: 'banking.payouts.create',
  title: 'Pay out to a bank',
  summary: 'Pay out USD cash, or USDC from the wallet, to a saved bank account.',
  description:
    'Use it when the owner asked for this payment. The fee is part of `amount`: for rent or an invoice send `recipientAmount`, which is what arrives. It cannot be called back. Category `payout`. Follow `pending` and `sent` with GET /api/banking/payouts/{id}, do not send it again; `returned` and `failed` money is available again. After a timeout repeat with the same idempotency key.',
  restDescription:
    '`payout_rejected`: nothing was sent; see `reason`. `signature_rejected`: the owner’s own key must sign an intent first. `counterparties` of a policy may list recipients.',
  route: 'POST /api/banking/payouts',
  who: 'account',
  scopes: ['banking:pay'],
  effect: 'spend',
  proof: 'step-up',
  mcp: true,
  restOnly: ['intentId', 'signature'],
  rail: 'bank-payout',
  payee: 'recipientId',
  input: payoutRequest,
  output: payoutView.extend({
    funding: fundingView.nullable().describe('Move from another chain before it; null: none.'),
  }),
  failures: [
    'wallet_busy',
    'insufficient_funds',
    'payout_rejected',
    'aml_blocked',
    'signature_rejected',
    'policy_denied',
    'approval_required',
    'approval_rejected',
    'screening_unavailable',
    'rates_unavailable',
    'provider_unavailable',
    'not_found',
    'conflict',
  ],
  example: { recipientId: 'rcp_01h455vb4pex5vsknk084sn02q', amount: '25', reference: 'Invoice 42' },
  facts: payoutFacts,
  spend: async (context, input) => {
    const { recipientId } = input
    const caller = requireCaller(context)
    const accountId = caller.account.id
    const keyId = caller.kind === 'key' ? caller.key.id : null
    await requireNoDebt(context.database, accountId)
    const recipient = await requireRecipient(context, { id: recipientId, accountId })
    const agreed =
      input.quoteId === undefined ? null : await agreeTerms(context, { accountId, recipient, said: input })
    const asset = agreed?.money.asset ?? input.asset
    const place = asset === 'USDC' ? context.chain.name : BANK
    const signed =
      place === BANK ? null : await readSignedPayout(context, { ...input, place, agreed, recipient })
    const terms =
      signed?.prepared ?? agreed ?? (await agreeTerms(context, { accountId, recipient, said: input }))
    const { money } = terms
    const { travelRule, aml } = await admitPayout(context, {
      accountId,
      keyId,
      payer: await loadHolderName(context, caller.account),
      payerCountry: await readCountry(context.database, accountId),
      place,
      terms,
      recipient,
    })
    const { result, lists } = aml.screening
    const funding =
      input.from === 'any' && place !== BANK && signed === null
        ? await planFunding(context, {
            ...{ accountId, money: { asset: 'USDC', units: money.units }, chain: place, at: context.now },
            authorizedBy: await authorizeByGateway(context),
            wallet: (await findWallet(context.database, accountId)) ?? null,
            mayLeave: findLeavable(caller),
          })
        : undefined
    return {
      category: 'payout',
      money,
      place,
      chain: place === BANK ? null : place,
      counterparty: recipientId,
      aml,
      ...(place === BANK ? {} : { isSponsored: true as const }),
      ...(funding === undefined ? {} : { funding: funding.spend }),
      fundsHint:
        place === BANK
          ? 'Payouts of USD are paid from USD cash only: tell the owner to add USD, or pay out USDC.'
          : 'Tell the owner to add USDC, or pay out USD cash.',
      facts: {
        recipientId,
        currency: recipient.currency,
        fee: terms.fee.toString(),
        recipientUnits: terms.recipientUnits.toString(),
        rate: terms.rate,
        eta: terms.eta.toISOString(),
        travelRule,
        screening: { result, lists: [...lists] },
        signed: signed === null ? null : { payoutId: signed.prepared.id, authorized: signed.authorized },
        funding: funding?.facts ?? null,
      },
    }
  },
  run: async (context, input, { decisionId, facts, money, place, funding, written }) => {
    const { reference, signature, quoteId = null } = input
    const caller = requireCaller(context)
    const accountId = caller.account.id
    const { signed } = facts
    if (place === null) throw new Error('a payout has no place')
    if (signed !== null) await countSignature(context, signed.authorized, decisionId)
    const payout: NewPayout = {
      id: signed?.payoutId ?? context.newId('out', context.now),
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
      quoteId,
    }
    await writePayout(context, payout, facts).catch(async (error: unknown) => {
      if (error instanceof Failure && funding !== undefined) await dropBurn(context, { funding, decisionId })
      throw error
    })
    const fresh = await findPayout(context, { decisionId })
    if (fresh === undefined) throw new Error('a payout that was just written cannot be read')
    if (funding !== undefined) {
      await moveFirst(context, { payout: fresh, funding, written })
      return toAnswer(input, fresh, facts)
    }
    const parts = { ...context, oweMint: recordMint(context) }
    const sent = signed === null ? await sendPayout(parts, fresh) : await takePrepared(parts, fresh)
    if (place !== BANK && sent.payout.providerId !== null) {
      const authorizedBy =
        signed === null
          ? await authorizeByGateway(context)
          : await authorizeByOwner(context, { signed, signature })
      await fundPayout(context, sent, authorizedBy)
    }
    return toAnswer(input, (await findPayout(context, { decisionId })) ?? sent.payout, facts)
  },
  recall: async (context, input, { decisionId, facts }) => {
    const payout = await findRepeatedPayout(context, decisionId)
    return payout === null ? null : toAnswer(input, payout, facts)
  },
})

function toAnswer(
  input: z.output<typeof payoutRequest>,
  payout: Payout,
  { funding }: z.output<typeof payoutFacts>,
) {
  return {
    ...viewPayout(payout, { memo: parseNote(input).memo }),
    funding: funding === null ? null : viewFunding(funding),
  }
}

/**
 * Sends the burn that moves the money of a payout to its chain; once it is there, a job pays it out.
 * @throws Failure `payout_rejected` when the chain refuses the burn.
 */
async function moveFirst(
  context: Context,
  { payout, ...sent }: { payout: Payout } & Pick<Parameters<typeof sendBurn>[1], 'funding' | 'written'>,
): Promise<void> {
  const { id, accountId, decisionId } = payout
  try {
    await sendBurn(context, { ...sent, accountId, decisionId })
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    await endPayout(context, { id }, { reason: 'not_funded', at: context.now })
    throw rejectedPayout({ id, reason: 'not_funded' })
  }
}

/**
 * Reads what the owner of a wallet signed, and checks it; null where the gateway signs.
 * @throws Failure `signature_rejected`, `payout_rejected` when the payout has ended at the provider.
 */
async function readSignedPayout(
  context: Context,
  {
    recipientId,
    amount,
    recipientAmount,
    reference,
    intentId,
    signature,
    place,
    agreed,
    recipient: { currency },
  }: z.output<typeof payoutRequest> & { place: string; agreed: PayoutQuote | null; recipient: Recipient },
): Promise<{ prepared: SignablePayout; authorized: AuthorizedTransfer } | null> {
  const caller = requireCaller(context)
  const accountId = caller.account.id
  const wallet = await findOwnedWallet(context.database, accountId)
  if (wallet === undefined) throw new Failure('not_found', 'The account has no wallet to pay from.')
  const isNamed = intentId !== undefined || signature !== undefined
  if (caller.kind === 'key') {
    if (!isNamed) return null
    throw buildRejection('The credential of the request authorizes the payout.', caller.key)
  }
  if (wallet.owner.kind === 'gateway' && intentId === undefined) return null
  const units = agreed?.money.units ?? (amount === undefined ? null : toMoney('USDC', amount).units)
  const arriving =
    agreed?.recipientUnits ??
    (recipientAmount === undefined ? null : toMoney(currency, recipientAmount).units)
  const intent =
    intentId === undefined ? undefined : await findIntent(context.database, { accountId, id: intentId })
  const prepared =
    intentId === undefined
      ? (await unsignedPayouts(context, accountId)).find(isThis)
      : await findPreparedPayout(context, { accountId, id: intent?.payoutId ?? '' })
  const { depositTo = null, providerId = null } = prepared ?? {}
  if (prepared === undefined || depositTo === null || providerId === null)
    throw buildRejection('You have no open intent for exactly this payout.', null)
  if (!isThis(prepared))
    throw buildRejection(
      'The intent is for another payout: recipient, amount and reference must be the same.',
      null,
    )
  const { authorized } = await authorizeTransfer(
    { ...context, passkeys: passkeySigners(context), askedAt: async () => undefined },
    {
      accountId,
      parties: {
        wallet,
        hasEvmKey: wallet.owner.kind === 'eoa',
        hasPasskey: wallet.owner.kind === 'passkey',
        isOwnWallet: false,
      },
      key: null,
      transfer: { token: 'USDC', units: prepared.money.units, destination: depositTo, chain: place },
      signature,
      intentId,
      payoutId: prepared.id,
      at: context.now,
    },
  )
  await requireAwaiting(context, prepared, context.now)
  return { prepared: { ...prepared, depositTo, providerId }, authorized }

  function isThis(one: PreparedPayout): boolean {
    return (
      one.recipientId === recipientId &&
      one.place === place &&
      (units === null || one.money.units === units) &&
      (arriving === null || one.recipientUnits === arriving) &&
      one.reference === (reference ?? null)
    )
  }
}

/** The authorization of the transfer that funds a payout by the gateway, or within the key's allowance. */
async function authorizeByGateway(context: Context): Promise<TransferAuthorization> {
  const caller = requireCaller(context)
  const wallet = await findOwnedWallet(context.database, caller.account.id)
  if (wallet === undefined) throw new Error(`${caller.account.id} has no wallet`)
  return gatewayAuthorization(wallet, caller.kind === 'key' ? caller.key.id : null)
}

/** The authorization of the transfer that funds a payout by what its owner has signed. */
async function authorizeByOwner(
  context: Context,
  {
    signed: { authorized },
    signature,
  }: { signed: NonNullable<z.output<typeof payoutFacts>['signed']>; signature: string | undefined },
): Promise<TransferAuthorization> {
  const accountId = requireCaller(context).account.id
  const intent =
    authorized.intentId === null
      ? undefined
      : await findIntent(context.database, { accountId, id: authorized.intentId })
  const assertion = authorized.signer === 'passkey' ? readAssertion(signature ?? '')?.response : undefined
  return buildAuthorization({ authorized, intent, signature, assertion, at: context.now })
}

/**
 * Writes a payout with its Travel Rule data, in one transaction that uses up what was prepared for it.
 * @throws Failure `conflict` when the reservation has ended, the recipient was removed, or the payout was sent or
 * canceled; the money is available again.
 */
async function writePayout(
  context: Context,
  payout: NewPayout,
  { travelRule: status, signed }: z.output<typeof payoutFacts>,
): Promise<void> {
  const { accountId, recipientId, decisionId, money, place } = payout
  const release = () => releaseSpend(context.database, { decisionId, at: context.now })
  const payload = await readParties(context, payout).catch(async (error: unknown) => {
    await release()
    throw error
  })
  const write = async (database: Connection) => {
    if (!(await insertPayout({ ...context, database }, payout))) throw notWritten(decisionId)
    if (
      signed !== null &&
      !(await advancePrepared(database, payout.id, { from: ['awaiting'], to: 'signed' }))
    )
      throw notWritten(decisionId)
    await recordPayoutParties(
      { ...context, database },
      { accountId, recipientId, money, chain: place, decisionId, status, payload, at: context.now },
    )
  }
  await context.database.transaction(write).catch(async (error: unknown) => {
    if (error instanceof Failure) await release()
    throw error
  })
}

function notWritten(decisionId: string): Failure {
  return new Failure(
    'conflict',
    'The recipient was removed, the payout was sent or canceled already, its quote is used, or the reservation has ended; nothing was sent.',
    {
      decisionId,
      isFinal: true,
      hint: 'Read GET /api/banking/recipients and GET /api/banking/payouts, and send the payout with a new idempotency key.',
    },
  )
}

async function readParties(context: Context, { accountId, recipientId }: NewPayout) {
  const { account } = requireCaller(context)
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
      account: readAccountNumber(number),
    },
  })
}
