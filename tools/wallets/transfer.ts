import { getAddress } from 'viem'
import { z } from 'zod'
import { findApprovalRequestedAt } from '../../src/books/approvals/approvals.ts'
import { fundingFacts, fundingView, viewFunding } from '../../src/books/spending/funding-view.ts'
import { noteMembers } from '../../src/books/spending/spend-note.ts'
import { untrustedTextOrNull } from '../../src/core/base/untrusted-text.ts'
import { Failure } from '../../src/core/failures/failure.ts'
import { stablecoins, toDecimal } from '../../src/core/money/money.ts'
import { type Context, requireCaller } from '../../src/kernel/context.ts'
import { hashSpendCall } from '../../src/kernel/fingerprint.ts'
import { findLeavable } from '../../src/kernel/gates/policy.ts'
import { type AllowedDecision, defineTool } from '../../src/kernel/tool.ts'
import { attachTravelRule } from '../../src/people/compliance/attach-travel-rule.ts'
import { complianceFactsFrom } from '../../src/people/compliance/transfer-facts.ts'
import { countSignature } from '../../src/people/identity/passkeys/count-signature.ts'
import { readAssertion } from '../../src/people/identity/passkeys/passkey-response.ts'
import { passkeySigners } from '../../src/people/identity/passkeys/passkey-signature.ts'
import { onChain } from '../../src/providers/chain/chains.ts'
import { FUNDING_WAIT_MS } from '../../src/rails/swaps/fundings.ts'
import { planFunding } from '../../src/rails/swaps/plan-funding.ts'
import { findWaitingTransfer, sendBurn, type WaitingPayment } from '../../src/rails/swaps/send-funding.ts'
import { signatureMember } from '../../src/rails/wallets/signing/signature-member.ts'
import { buildRejection } from '../../src/rails/wallets/signing/verify-signature.ts'
import { insertTransfer, lowerCase, walletWritten } from '../../src/rails/wallets/store.ts'
import { admitTransfer } from '../../src/rails/wallets/transfers/admit-transfer.ts'
import {
  type AuthorizedTransfer,
  authorizedTransfer,
  authorizeTransfer,
  buildAuthorization,
  sandboxAuthorization,
} from '../../src/rails/wallets/transfers/authorize-transfer.ts'
import { findRepeatedTransfer } from '../../src/rails/wallets/transfers/find-repeated-transfer.ts'
import { loadTransferFacts } from '../../src/rails/wallets/transfers/load-transfer-facts.ts'
import {
  planTransfer,
  type SentTransfer,
  sendWritten,
} from '../../src/rails/wallets/transfers/send-transfer.ts'
import {
  refineAmount,
  transferMembers,
  withParsedAmount,
} from '../../src/rails/wallets/transfers/transfer-members.ts'
import { nameContact } from '../../src/records/contacts/names.ts'

const NAME = 'wallets.transfer'

const transferRequest = z
  .strictObject({
    ...transferMembers,
    ...noteMembers,
    from: z
      .enum(['any', 'chain'])
      .optional()
      .describe('`any`: USDC that `chain` lacks is moved there first. Default: `chain`.'),
    intentId: z
      .string()
      .max(64)
      .optional()
      .describe('`int_…`: signed intent. Default: your newest open intent for the same transfer.'),
    signature: signatureMember(
      'Signature of the intent from POST /api/wallets/transfer/intent: a passkey’s assertion (base64url of its JSON), a registered EVM key’s EIP-712 signature (0x hex), or the calling agent’s Ed25519 signature of the hash (base64url). Required for a person; signed agent requests, OAuth grants and API keys need none. Sandbox accounts without a registered signer: any text.',
    ),
  })
  .superRefine(refineAmount)
  .transform(withParsedAmount)

const screening = z.strictObject({
  result: z.enum(['clear', 'review', 'blocked']).describe('AML result.'),
  lists: z.array(z.string()).describe('Lists and rules that were checked.'),
})

const transferResult = z.strictObject({
  transactionHash: z
    .string()
    .nullable()
    .describe('Hash of the transaction on the chain; null before it was broadcast.'),
  status: z
    .enum(['confirmed', 'settlement_pending', 'funding'])
    .describe(
      '`settlement_pending`: broadcast, not yet confirmed; `funding`: its money is on its way from another chain, and it is paid by itself once it is there. Do not send it again in either case.',
    ),
  transferId: z.string().describe('`tx_…`'),
  decisionId: z.string().describe('`dec_…`: the decision that allowed it.'),
  token: z.enum(stablecoins).describe('Stablecoin by symbol.'),
  amount: z.string().describe('Sent amount, decimal.'),
  destination: z.string().describe('EVM address of the payee.'),
  contact: untrustedTextOrNull('Name of the contact that was named; null: none was.'),
  chain: z.string().describe('Chain by name.'),
  gasSponsored: z.literal(true).describe('The gateway pays the gas.'),
  authorization: z
    .enum(['sandbox', 'passkey', 'eoa', 'agent'])
    .describe('Kind of signer; `sandbox` is the sandbox’s own key.'),
  screening: screening.describe('AML screening.'),
  funding: fundingView.nullable().describe('Move from another chain before it; null: none.'),
})

const transferFacts = z.strictObject({
  screening,
  travelRuleId: z.string().nullable().default(null),
  authorized: authorizedTransfer.default(sandboxAuthorization),
  /** Absent in decisions of earlier versions. */
  funding: fundingFacts.nullable().default(null),
})
type TransferFacts = z.output<typeof transferFacts>

export default defineTool({
  name: NAME,
  title: 'Send stablecoins',
  summary: 'Send stablecoins from the account’s wallet to an EVM address.',
  description:
    'Use it to pay an address that you were given for this payment, not shops that take cards or paid URLs. Irreversible. `settlement_pending`: sent, do not send it again, read GET /api/wallets/transfers/{id}. `approval_required`: tell your owner the `approvalUrl` and poll GET /api/approvals/{id}. `aml_blocked`: do not retry that address; for the rule `travel_rule` send POST /api/compliance/travel-rule first. After a timeout repeat with the same idempotency key.',
  restDescription:
    'The gateway pays the gas. `insufficient_funds`: nothing was sent. `signature_rejected`: the key’s allowance on chain does not suffice.',
  route: 'POST /api/wallets/transfer',
  who: 'account',
  scopes: ['wallets:transfer'],
  effect: 'spend',
  proof: 'signature',
  mcp: true,
  restOnly: ['signature', 'intentId', 'safeAddress'],
  rail: 'wallet-transfer',
  // Names of contacts are stored sealed in one place only.
  shownOnce: ['contact'],
  payee: 'destination',
  input: transferRequest,
  output: transferResult,
  failures: [
    'insufficient_funds',
    'aml_blocked',
    'signature_rejected',
    'policy_denied',
    'approval_required',
    'approval_rejected',
    'chain_not_supported',
    'screening_unavailable',
    'rates_unavailable',
    'provider_unavailable',
    'settlement_pending',
    'not_found',
    'conflict',
  ],
  example: {
    destination: '0x000000000000000000000000000000000000dEaD',
    amount: '1.25',
    token: 'USDC',
  },
  facts: transferFacts,
  chain: onSignedChain,
  spend: async (context, input) => {
    const caller = requireCaller(context)
    const { money, destination, safeAddress } = input
    const chain = context.chain.name
    const accountId = caller.account.id
    const key = caller.kind === 'key' ? caller.key : null
    if (key === null && context.scheduledFor === undefined) requireSignature(input)
    const fingerprint = hashSpendCall(context, NAME, input)
    const request = { accountId, keyId: key?.id ?? null, destination, chain, money }
    const known = await loadTransferFacts(context, request)
    const { authorized, intent } = await authorizeTransfer(
      {
        ...context,
        passkeys: passkeySigners(context),
        askedAt: async () =>
          key === null
            ? undefined
            : findApprovalRequestedAt(context.database, { accountId, keyId: key.id, fingerprint }),
      },
      {
        accountId,
        parties: known.parties,
        key,
        transfer: { token: money.asset, units: money.units, destination: lowerCase(destination), chain },
        signature: input.signature,
        intentId: input.intentId,
        scheduledFor: context.scheduledFor,
        at: context.now,
      },
    )
    // Some screening lists charge per query, so only authorized transfers are screened.
    const { travelRuleId, aml } = await admitTransfer(context, {
      ...known,
      ...request,
      facts: complianceFactsFrom(known.compliance, destination),
      safeAddress,
    })
    const { result, lists } = aml.screening
    const assertion =
      authorized.signer === 'passkey' ? readAssertion(input.signature ?? '')?.response : undefined
    const at = context.now
    const authorizedBy = buildAuthorization({ authorized, intent, signature: input.signature, assertion, at })
    const planned = { accountId, authorizedBy, token: money.asset, units: money.units, destination, at }
    const funding = canBeFunded(input, { authorized, travelRuleId })
      ? await planFunding(context, {
          ...{ accountId, chain, money, authorizedBy, at },
          wallet: known.parties.wallet?.address ?? null,
          mayLeave: findLeavable(caller),
        })
      : undefined
    return {
      category: 'transfer',
      money,
      place: chain,
      chain,
      counterparty: destination,
      aml,
      isSponsored: true,
      signedBy: authorized.signer === 'passkey' || authorized.signer === 'eoa' ? authorized.signerId : null,
      transfer: {
        buildRow: planTransfer(
          context,
          funding === undefined ? planned : { ...planned, waitMs: FUNDING_WAIT_MS },
        ),
        // A row is sent even if its process ends. It is written with the hold only where a repeat finds it and nothing else
        // must be used up first; where its money moves first, always.
        isWritten:
          funding !== undefined ||
          (context.idempotencyKey !== null && authorized.counter === null && travelRuleId === null),
      },
      ...(funding === undefined ? {} : { funding: funding.spend }),
      facts: {
        screening: { result, lists: [...lists] },
        travelRuleId,
        authorized,
        funding: funding?.facts ?? null,
      },
    }
  },
  run: async (context, input, decided) => {
    const { decisionId, transfer, written } = decided
    if (transfer === undefined) throw new Error('a transfer has no plan')
    const { authorized, travelRuleId } = decided.facts
    const accountId = requireCaller(context).account.id
    await countSignature(context, authorized, decisionId)
    await attachTravelRule(context, { id: travelRuleId, decisionId })
    const row = transfer.buildRow(decisionId)
    if (decided.funding !== undefined) {
      await sendBurn(context, { funding: decided.funding, accountId, decisionId, written })
      const waiting = { transferId: row.id, transactionHash: null, status: 'funding' as const }
      return toAnswer(context, waiting, input, decided)
    }
    const wallet = transfer.isWritten
      ? walletWritten(accountId, written)
      : await insertTransfer(context.database, { accountId, decisionId, row })
    return toAnswer(context, await sendWritten(context, { decisionId, row, wallet }), input, decided)
  },
  recall: async (context, input, decided) => {
    const { decisionId, facts } = decided
    const waiting =
      facts.funding === null ? undefined : await findWaitingTransfer(context.database, decisionId)
    const sent = waiting ?? (await findRepeatedTransfer(context, decisionId, facts.authorized))
    return sent === null ? null : toAnswer(context, sent, input, decided)
  },
})

/** A person signs every transfer. @throws Failure `invalid_request`. */
function requireSignature({ signature }: z.output<typeof transferRequest>): void {
  if (signature !== undefined) return
  throw new Failure('invalid_request', 'A transfer by a person needs a signature.', {
    issues: [{ path: 'signature', message: 'is required' }],
    hint: 'POST /api/wallets/transfer/intent answers what to sign. A sandbox account without a registered signer sends any text.',
  })
}

/** The call on its chain. A signature is for the chain of its intent: with any other, also an unknown one, it is false. */
function onSignedChain(given: Context, { chain, intentId }: z.output<typeof transferRequest>): Context {
  try {
    return onChain(given, chain)
  } catch (error) {
    const isUnknown = error instanceof Failure && error.code === 'chain_not_supported'
    if (!isUnknown || intentId === undefined) throw error
    const caller = requireCaller(given)
    throw buildRejection('The intent is for another chain.', caller.kind === 'key' ? caller.key : null)
  }
}

/** Builds the answer for a transfer, the same for every call while its contact keeps its name. */
async function toAnswer(
  context: Context,
  sent: SentTransfer | WaitingPayment,
  { money, destination, chain = context.chain.name }: z.output<typeof transferRequest>,
  { decisionId, facts }: AllowedDecision<TransferFacts>,
) {
  return {
    ...sent,
    decisionId,
    token: money.asset,
    amount: toDecimal(money),
    destination: getAddress(destination),
    // A payment that named no contact does not wait for their names.
    contact:
      context.payee === undefined
        ? null
        : await nameContact(context, requireCaller(context).account.id, destination),
    chain: context.chains.resolveName(chain),
    gasSponsored: true as const,
    authorization: facts.authorized.signer,
    screening: facts.screening,
    funding: facts.funding === null ? null : viewFunding(facts.funding),
  }
}

/**
 * Checks whether money of another chain may be moved for a transfer. The gateway authorizes the move as it does the transfer: what an
 * owner has signed is for one chain. Travel Rule data are attached before anything is sent.
 */
function canBeFunded(
  { from }: z.output<typeof transferRequest>,
  {
    authorized,
    travelRuleId,
  }: { readonly authorized: AuthorizedTransfer; readonly travelRuleId: string | null },
): boolean {
  const isByGateway = authorized.by === 'gateway' || authorized.by === 'allowance'
  return from === 'any' && isByGateway && authorized.intentId === null && travelRuleId === null
}
