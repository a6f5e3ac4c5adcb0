import { z } from 'zod'
import { type Policy, type SpendCategory, spendCategories, spendPolicy } from '../../policies/policy.ts'
import { replay } from '../../policies/replay.ts'
import { usdOfMicros } from '../../policies/usd.ts'
import type { AccessKey } from '../../src/base/principal.ts'
import { Failure } from '../../src/failures/failure.ts'
import { policyHashOf } from '../../src/identity/keys/agent-keys.ts'
import { agentKinds, developerKinds, findOwnKey } from '../../src/identity/keys/owned-keys.ts'
import { type Context, callerOf } from '../../src/kernel/context.ts'
import { simulateSpend } from '../../src/kernel/simulate.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { type Asset, amountMismatch, assetDecimals, decimalAmount, moneyOf } from '../../src/money/money.ts'
import { pastSpends } from '../../src/spending/past-spends.ts'

/** How many of a key's decisions are replayed at most. */
const MOST_REPLAYED = 1000

/** What is spent on a chain: its own, where none is named. */
const onChain: ReadonlySet<string> = new Set(['transfer', 'gasless', 'x402'])

const assets = Object.keys(assetDecimals).filter((name): name is Asset => name in assetDecimals)

const spend = z
  .strictObject({
    category: z.enum(spendCategories).describe('What it would be spent on.'),
    amount: decimalAmount.describe('How much, as a decimal string or number of the asset.'),
    asset: z.enum(assets).default('USDC').describe('What would be spent.'),
    chain: z.string().max(40).nullish().describe('Chain by name.'),
    counterparty: z
      .string()
      .regex(/^0x[0-9a-fA-F]{40}$/, 'must be an EVM address')
      .nullish()
      .describe('Who would be paid: an EVM address.'),
    mcc: z
      .string()
      .regex(/^\d{4}$/, 'must be four digits')
      .nullish()
      .describe('The merchant’s category code, of card purchases.'),
    symbol: z.string().max(12).nullish().describe('The ticker, of investments.'),
  })
  .superRefine(({ amount, asset }, context) => {
    const misfit = amountMismatch(amount, asset)
    if (misfit !== undefined) context.addIssue({ code: 'custom', path: ['amount'], message: misfit })
  })

const request = z
  .strictObject({
    keyId: z.string().max(64).optional().describe('`agentId` of one of your keys. A key asks about itself.'),
    policy: spendPolicy
      .optional()
      .describe('A draft to judge by, in place of the key’s own policy. For owners.'),
    spend: spend.optional().describe('The spend to judge. Not needed with `replay`.'),
    replay: z
      .boolean()
      .optional()
      .describe('Judge the key’s past decisions (the newest 1,000) by the draft policy. For owners.'),
  })
  .superRefine(({ replay: isReplay = false, spend: asked, keyId, policy }, context) => {
    const need = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message })
    if (!isReplay && asked === undefined) need('spend', 'is required')
    if (isReplay && asked !== undefined) need('spend', 'is not for a replay')
    if (isReplay && keyId === undefined) need('keyId', 'is required for a replay')
    if (isReplay && policy === undefined) need('policy', 'is required for a replay')
  })

const verdict = z.enum(['allow', 'deny', 'approval_required', 'insufficient_funds'])
const violation = z.strictObject({
  rule: z.string().describe('The rule.'),
  limit: z.string().nullable().describe('What the policy allows.'),
  used: z.string().nullable().describe('What the period has already counted.'),
  requested: z.string().nullable().describe('What was asked for.'),
  remaining: z.string().nullable().describe('What is left to ask for.'),
  resetsAt: z.string().nullable().describe('When the same spend may be asked for again.'),
})

export default defineTool({
  name: 'policy.simulate',
  title: 'Would this spend be allowed',
  summary: 'Ask what would be decided on a spend, without reserving or moving anything.',
  description:
    'Judged by the same functions as a real spend: static rules, today’s counters, the owner’s cap and the balance. A key asks about itself with {spend}. An owner may name a key, a draft policy, or both; with {keyId, policy, replay: true} past decisions are judged by the draft and those that would change are listed.',
  route: 'POST /api/agents/policies/simulate',
  who: 'account',
  scopes: [],
  effect: 'read',
  mcp: true,
  input: request,
  output: z.strictObject({
    verdict: verdict.nullable().describe('What would be decided; null for a replay.'),
    violations: z.array(violation).describe('Every rule that would be violated.'),
    usd: z.string().nullable().describe('What the spend is worth in USD, as it would count.'),
    available: z.string().nullable().describe('What is available, where that is too little.'),
    policyHash: z.string().nullable().describe('SHA-256 of the policy that was judged by; null without one.'),
    replayed: z.int().nullable().describe('How many past decisions were judged.'),
    changed: z
      .array(
        z.strictObject({
          decisionId: z.string().describe('`dec_…`'),
          at: z.string().describe('ISO 8601 UTC.'),
          operation: z.string().describe('What was asked for.'),
          amount: z.string().describe('How much.'),
          asset: z.string().describe('Of what.'),
          was: verdict.describe('What was decided.'),
          now: verdict.describe('What would be.'),
          violations: z.array(violation).describe('Why.'),
        }),
      )
      .nullable()
      .describe('Past decisions that would change, oldest first; null without a replay.'),
  }),
  failures: ['not_found', 'rates_unavailable', 'conflict'],
  example: { spend: { category: 'transfer', amount: '25' } },
  run: async (context, input) => {
    const { accountId, key, policy } = await judgeOf(context, input)
    const shared = { policyHash: policyHashOf(policy), usd: null, available: null }
    if (input.replay === true && key !== null && policy !== null)
      return {
        ...shared,
        ...(await replayed(context, { accountId, keyId: key.id, policy })),
        verdict: null,
        violations: [],
      }
    if (input.spend === undefined) throw new Error('the schema lets no such request through')
    const { category, amount, asset, chain, counterparty, mcc, symbol } = input.spend
    const simulated = await simulateSpend(context, {
      accountId,
      key,
      policy,
      spending: {
        category,
        money: moneyOf(asset, amount),
        place: placeOf(category, chain ?? context.chain.name),
        chain: chain ?? (onChain.has(category) ? context.chain.name : null),
        counterparty: counterparty?.toLowerCase() ?? null,
        mcc: mcc ?? null,
        symbol: symbol ?? null,
        facts: null,
      },
    })
    return {
      ...shared,
      verdict: simulated.verdict,
      violations: [...simulated.violations],
      usd: usdOfMicros(simulated.usdMicros),
      available: simulated.available,
      replayed: null,
      changed: null,
    }
  },
})

/** Whose budgets and which policy. @throws Failure `not_found`, `invalid_request`. */
async function judgeOf(
  context: Context,
  { keyId, policy, replay: isReplay = false }: z.output<typeof request>,
): Promise<{ accountId: string; key: AccessKey | null; policy: Policy | null }> {
  const caller = callerOf(context)
  const accountId = caller.account.id
  if (caller.kind === 'key') {
    if (policy !== undefined || isReplay) throw invalid('policy', 'is for the owner: a key asks about itself')
    if (keyId !== undefined && keyId !== caller.key.id) throw unknownKey()
    return { accountId, key: caller.key, policy: ownPolicy(caller.key) }
  }
  if (keyId === undefined) {
    if (policy === undefined) throw invalid('keyId', 'or policy is required')
    return { accountId, key: null, policy }
  }
  const kinds = [...agentKinds, ...developerKinds]
  const key = await findOwnKey(context.database, { accountId, kinds, id: keyId, isLocked: false })
  if (key === undefined) throw unknownKey()
  return { accountId, key, policy: policy ?? ownPolicy(key) }
}

function ownPolicy(key: AccessKey): Policy | null {
  return spendPolicy.nullable().parse(key.policy ?? null)
}

async function replayed(
  { database }: Context,
  { accountId, keyId, policy }: { accountId: string; keyId: string; policy: Policy },
) {
  const past = await pastSpends(database, { accountId, keyId, limit: MOST_REPLAYED })
  const outcomes = new Map(replay(policy, past).map((outcome) => [outcome.id, outcome]))
  const changed = past.flatMap(({ id, at, operation, amount, spend: { asset } }) => {
    const outcome = outcomes.get(id)
    if (outcome === undefined || outcome.was === outcome.now) return []
    const { was, now, violations } = outcome
    return [
      {
        decisionId: id,
        at: at.toISOString(),
        operation,
        amount,
        asset,
        was,
        now,
        violations: [...violations],
      },
    ]
  })
  return { replayed: past.length, changed }
}

function unknownKey(): Failure {
  return new Failure('not_found', 'There is no such key of yours.')
}

function invalid(path: string, message: string): Failure {
  return new Failure('invalid_request', `${path}: ${message}`, { issues: [{ path, message }] })
}

/** Where the money of a category lies; null: it is somebody else's. */
function placeOf(category: SpendCategory, chain: string): string | null {
  if (category === 'gasless') return null
  return category === 'invest' ? 'bank' : chain
}
