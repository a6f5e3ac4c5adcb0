import { isAddress, zeroAddress } from 'viem'
import { z } from 'zod'
import { attachTravelRule } from '../../src/compliance/attach-travel-rule.ts'
import { complianceFactsOn } from '../../src/compliance/transfer-facts.ts'
import { callerOf } from '../../src/kernel/context.ts'
import { type Decided, defineTool } from '../../src/kernel/tool.ts'
import { decimalAmount, decimalOf, misfitOf, moneyOf, stablecoins } from '../../src/money.ts'
import type { Address } from '../../src/providers/chain.ts'
import { admitTransfer } from '../../src/wallets/admit-transfer.ts'
import { recallTransfer } from '../../src/wallets/recall-transfer.ts'
import { type SentTransfer, sendTransfer } from '../../src/wallets/send-transfer.ts'

const evmAddress = z.string().refine((text): text is Address => isAddress(text) && text !== zeroAddress, {
  error:
    'must be an EVM address: 0x and 40 hex digits, with a right checksum where its case is mixed, and not the zero address',
})

const transferRequest = z
  .strictObject({
    safeAddress: evmAddress
      .optional()
      .describe('The wallet that pays. Absent: the account’s own, the only one it can be.'),
    destination: evmAddress.describe('EVM address that is paid.'),
    amount: decimalAmount.describe(
      'How much, as a decimal string or number of the token; at most 6 fraction digits.',
    ),
    token: z.enum(stablecoins).default('USDC').describe('Stablecoin by symbol.'),
    chain: z.string().min(1).max(40).default('base-sepolia').describe('Chain by name.'),
    signature: z
      .string()
      .min(1)
      .max(8192)
      .describe(
        'Authorizes this very transfer. Sandbox accounts without a registered signer: any non-empty text.',
      ),
  })
  .superRefine(({ amount, token }, context) => {
    const misfit = misfitOf(amount, token)
    if (misfit !== undefined) context.addIssue({ code: 'custom', path: ['amount'], message: misfit })
  })
  .transform((request) => ({
    ...request,
    money: { asset: request.token, units: moneyOf(request.token, request.amount).units },
  }))

const screening = z.strictObject({
  result: z.enum(['clear', 'review', 'blocked']).describe('What the AML policy says of the transfer.'),
  lists: z.array(z.string()).describe('The lists and rules that were consulted.'),
})

const transferResult = z.strictObject({
  transactionHash: z.string().describe('Hash of the transaction on the chain.'),
  status: z
    .enum(['confirmed', 'settlement_pending'])
    .describe('`settlement_pending`: broadcast, not yet confirmed; do not send it again.'),
  transferId: z.string().describe('`tx_…`'),
  decisionId: z.string().describe('`dec_…`: the policy decision that allowed it.'),
  token: z.enum(stablecoins).describe('Stablecoin by symbol.'),
  amount: z.string().describe('What was sent, as a decimal string of the token.'),
  destination: z.string().describe('EVM address that was paid.'),
  chain: z.string().describe('Chain by name.'),
  gasSponsored: z.literal(true).describe('The gateway paid the gas.'),
  authorization: z.literal('sandbox').describe('Who signed for the transfer: the sandbox’s own key.'),
  screening: screening.describe('The AML screening of the transfer.'),
})

const transferFacts = z.strictObject({ screening, travelRuleId: z.string().nullable().default(null) })
type TransferFacts = z.output<typeof transferFacts>

export default defineTool({
  name: 'wallets.transfer',
  title: 'Send stablecoins',
  summary: 'Send stablecoins from the wallet to an on-chain address, gas paid by the sponsor.',
  description:
    'Moves money for good. Needs room in the spend policy; a denial (`policy_denied`) lists every violated rule with what remains and when it resets. Read your limits with `context` first. After a timeout repeat the call with the same idempotency key: it never pays twice.',
  route: 'POST /api/wallets/transfer',
  who: 'account',
  scopes: ['wallets:transfer'],
  effect: 'spend',
  mcp: true,
  rail: 'wallet-transfer',
  input: transferRequest,
  output: transferResult,
  failures: [
    'insufficient_funds',
    'aml_blocked',
    'policy_denied',
    'approval_required',
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
    signature: 'sandbox',
  },
  facts: transferFacts,
  spend: async (context, { money, destination, chain, safeAddress }) => {
    const { account } = callerOf(context)
    const { result, lists, travelRuleId } = await admitTransfer(
      { ...context, complianceFacts: complianceFactsOn(context.database) },
      { accountId: account.id, destination, chain, safeAddress, money },
    )
    return {
      category: 'transfer',
      money,
      place: chain,
      chain,
      counterparty: destination,
      facts: { screening: { result, lists: [...lists] }, travelRuleId },
    }
  },
  run: async (context, input, decided) => {
    const { money, destination } = input
    await attachTravelRule(context, { id: decided.facts.travelRuleId, decisionId: decided.decisionId })
    const sent = await sendTransfer(context, {
      word: { signer: 'sandbox', authorization: { kind: 'gateway' } },
      accountId: callerOf(context).account.id,
      decisionId: decided.decisionId,
      token: money.asset,
      units: money.units,
      destination,
      at: context.now,
    })
    return told(sent, input, decided)
  },
  recall: async (context, input, decided) => {
    const sent = await recallTransfer(context, decided.decisionId)
    return sent === null ? null : told(sent, input, decided)
  },
})

/** A transfer as the caller is told of it, the first time and every time after. */
function told(
  sent: SentTransfer,
  { money, destination, chain }: z.output<typeof transferRequest>,
  { decisionId, facts }: Decided<TransferFacts>,
) {
  return {
    ...sent,
    decisionId,
    token: money.asset,
    amount: decimalOf(money),
    destination,
    chain,
    gasSponsored: true as const,
    authorization: 'sandbox' as const,
    screening: facts.screening,
  }
}
