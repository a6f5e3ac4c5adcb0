import { z } from 'zod'
import { requireNoDebt } from '../../../src/books/debts/debts.ts'
import { releaseSpend } from '../../../src/books/spending/release.ts'
import { BANK } from '../../../src/books/spending/sources.ts'
import { noteMembers, parseNote } from '../../../src/books/spending/spend-note.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import { toMoney } from '../../../src/core/money/money.ts'
import { type Context, requireCaller } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { payoutPayload, recordPayoutParties } from '../../../src/people/compliance/record-payout-parties.ts'
import { readCountry } from '../../../src/people/compliance/store.ts'
import { loadHolderName } from '../../../src/people/compliance/verified-person.ts'
import { countSignature } from '../../../src/people/identity/passkeys/count-signature.ts'
import { readAssertion } from '../../../src/people/identity/passkeys/passkey-response.ts'
import { passkeySigners } from '../../../src/people/identity/passkeys/passkey-signature.ts'
import type { PayoutQuote } from '../../../src/providers/banking/port.ts'
import { admitPayout } from '../../../src/rails/banking/admit-payout.ts'
import {
  findPayout,
  insertPayout,
  type NewPayout,
  payoutView,
  viewPayout,
} from '../../../src/rails/banking/payout.ts'
import { agreeTerms } from '../../../src/rails/banking/payout-quote.ts'
import { payoutAssets, payoutMembers, refinePayout } from '../../../src/rails/banking/payout-request.ts'
import { requireAwaiting, takePrepared } from '../../../src/rails/banking/prepare-payout.ts'
import {
  advancePrepared,
  findPreparedPayout,
  isDepositShared,
  type PreparedPayout,
  type SignablePayout,
  unsignedPayouts,
} from '../../../src/rails/banking/prepared-payout.ts'
import { type Recipient, readAccountNumber, requireRecipient } from '../../../src/rails/banking/recipients.ts'
import {
  endPayout,
  findRepeatedPayout,
  rejectedPayout,
  type SentPayout,
  sendPayout,
} from '../../../src/rails/banking/send-payout.ts'
import { recordMint } from '../../../src/rails/wallets/reconcile/owed-mints.ts'
import { findIntent } from '../../../src/rails/wallets/signing/intent-store.ts'
import { signatureMember } from '../../../src/rails/wallets/signing/signature-member.ts'
import { buildRejection } from '../../../src/rails/wallets/signing/verify-signature.ts'
import { findOwnedWallet } from '../../../src/rails/wallets/store.ts'
import {
  type AuthorizedTransfer,
  authorizedTransfer,
  authorizeTransfer,
  buildAuthorization,
} from '../../../src/rails/wallets/transfers/authorize-transfer.ts'
import { gatewayAuthorization } from '../../../src/rails/wallets/transfers/gateway-authorization.ts'
import {
  sendTransfer,
  type TransferAuthorization,
} from '../../../src/rails/wallets/transfers/send-transfer.ts'
import type { Connection } from '../../../src/storage/database.ts'

const payoutRequest = z
  .strictObject({
    ...payoutMembers,
    ...noteMembers,
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
  output: payoutView,
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
        fee: terms.fee.toString(),
        recipientUnits: terms.recipientUnits.toString(),
        rate: terms.rate,
        eta: terms.eta.toISOString(),
        travelRule,
        screening: { result, lists: [...lists] },
        signed: signed === null ? null : { payoutId: signed.prepared.id, authorized: signed.authorized },
      },
    }
  },
  run: async (context, input, { decisionId, facts, money, place }) => {
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
    await writePayout(context, payout, facts)
    const written = await findPayout(context, { decisionId })
    if (written === undefined) throw new Error('a payout that was just written cannot be read')
    const parts = { ...context, oweMint: recordMint(context) }
    const sent = signed === null ? await sendPayout(parts, written) : await takePrepared(parts, written)
    if (place !== BANK && sent.payout.providerId !== null)
      await fund(context, sent, await authorizePayout(context, { signed, signature }))
    return viewPayout((await findPayout(context, { decisionId })) ?? sent.payout, parseNote(input).memo)
  },
  recall: async (context, input, { decisionId }) => {
    const payout = await findRepeatedPayout(context, decisionId)
    return payout === null ? null : viewPayout(payout, parseNote(input).memo)
  },
})

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

/** Builds the authorization of the transfer that funds a payout: the owner's signature, or the gateway's. */
async function authorizePayout(
  context: Context,
  { signed, signature }: { signed: z.output<typeof payoutFacts>['signed']; signature: string | undefined },
): Promise<TransferAuthorization> {
  const caller = requireCaller(context)
  const accountId = caller.account.id
  if (signed === null) {
    const wallet = await findOwnedWallet(context.database, accountId)
    if (wallet === undefined) throw new Error(`${accountId} has no wallet`)
    return gatewayAuthorization(wallet, caller.kind === 'key' ? caller.key.id : null)
  }
  const { authorized } = signed
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

/**
 * Sends the stablecoins of a payout to the provider. While the chain's answer is unknown they stay held.
 * @throws Failure `payout_rejected` when they were not sent; the money is available again.
 */
async function fund(
  context: Context,
  { payout, depositTo }: SentPayout,
  authorizedBy: TransferAuthorization,
): Promise<void> {
  const { id, decisionId, accountId, money, providerId } = payout
  const isShared =
    depositTo === null || (await isDepositShared(context.database, { id, accountId, money, depositTo }))
  const isSent =
    !isShared &&
    (await sendTransfer(context, {
      authorizedBy,
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
  const reason = isShared && depositTo !== null ? 'ambiguous_deposit' : 'not_funded'
  // A payout that is not canceled at the provider stays open for the job, which tries again.
  const isCanceled = await context.bankingProvider.cancelPayout(providerId ?? '').then(
    () => true,
    (err: unknown) => {
      context.log.warn({ err, payoutId: id }, 'a payout that was not funded could not be canceled')
      return false
    },
  )
  if (isCanceled) await endPayout(context, { id }, { reason, at: context.now })
  throw rejectedPayout({ id, reason })
}
