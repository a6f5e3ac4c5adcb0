import { z } from 'zod'
import {
  type Policy,
  type SpendCategory,
  spendCategories,
  spendPolicy,
  storedPolicy,
} from '../../policies/policy.ts'
import { replay } from '../../policies/replay.ts'
import { formatUsd } from '../../policies/usd.ts'
import { fundingView, viewFunding } from '../../src/books/spending/funding-view.ts'
import { pastSpends } from '../../src/books/spending/past-spends.ts'
import { violationView } from '../../src/books/spending/violation-view.ts'
import type { AccessKey } from '../../src/core/base/principal.ts'
import { Failure } from '../../src/core/failures/failure.ts'
import { chainInput } from '../../src/core/money/chains.ts'
import {
  type Asset,
  amountMismatch,
  assetDecimals,
  decimalAmount,
  type Money,
  stablecoins,
  toDecimal,
  toMoney,
} from '../../src/core/money/money.ts'
import { type Context, requireCaller } from '../../src/kernel/context.ts'
import { mayLeave, parseAncestors } from '../../src/kernel/gates/policy.ts'
import { resolvePolicy } from '../../src/kernel/resolve-payee.ts'
import { simulateSpends } from '../../src/kernel/simulate.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { complianceFactsFrom } from '../../src/people/compliance/transfer-facts.ts'
import { hashPolicy } from '../../src/people/identity/keys/agent-keys.ts'
import { agentKinds, developerKinds, findOwnKey } from '../../src/people/identity/keys/owned-keys.ts'
import { onChain } from '../../src/providers/chain/chains.ts'
import { agreeTerms } from '../../src/rails/banking/payout-quote.ts'
import { payoutAssets } from '../../src/rails/banking/payout-request.ts'
import { requireRecipient } from '../../src/rails/banking/recipients.ts'
import { planFunding } from '../../src/rails/swaps/plan-funding.ts'
import { findWallet } from '../../src/rails/wallets/store.ts'
import { admitTransfer } from '../../src/rails/wallets/transfers/admit-transfer.ts'
import { loadTransferFacts } from '../../src/rails/wallets/transfers/load-transfer-facts.ts'
import { payeeAddress } from '../../src/rails/wallets/transfers/transfer-members.ts'

/** Maximum number of a key's decisions to replay. */
const MAX_REPLAYED = 1000

/** Categories spent on a chain, by default the deployment's own. */
const onChainCategories: ReadonlySet<string> = new Set(['transfer', 'gasless', 'x402'])

const assets = Object.keys(assetDecimals).filter((name): name is Asset => name in assetDecimals)

/** Currencies that arrive, but that no account pays in. */
const foreignCurrencies: ReadonlySet<string> = new Set(['EUR', 'GBP', 'INR'])

function isPayoutAsset(asset: Asset): asset is (typeof payoutAssets)[number] {
  return payoutAssets.some((one) => one === asset)
}

const spend = z
  .strictObject({
    category: z.enum(spendCategories).describe('Its category.'),
    amount: decimalAmount.optional().describe('Amount including fees.'),
    asset: z.enum(assets).default('USDC').describe('Asset to spend.'),
    chain: chainInput.nullish().describe('Default: the first of this deployment.'),
    counterparty: payeeAddress.nullish().describe('Payee.'),
    recipientId: z
      .string()
      .regex(/^rcp_[0-9a-z]{26}$/, 'must be the id of a recipient')
      .nullish()
      .describe('`rcp_…`, for a payout.'),
    recipientAmount: decimalAmount
      .optional()
      .describe('With `recipientId`, in place of `amount`: what arrives.'),
    mcc: z
      .string()
      .regex(/^\d{4}$/, 'must be four digits')
      .nullish()
      .describe('Of a card purchase.'),
    symbol: z.string().max(12).nullish().describe('Ticker.'),
    from: z.enum(['any', 'chain']).optional().describe('See `funding`.'),
  })
  .superRefine(({ category, amount, asset, recipientId, recipientAmount, from }, context) => {
    const refuse = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message })
    const isPayout = category === 'payout'
    if (from === 'any' && category !== 'transfer' && category !== 'x402' && !(isPayout && asset === 'USDC'))
      refuse('from', 'is for transfers, purchases and payouts of USDC')
    if (isPayout ? !isPayoutAsset(asset) : foreignCurrencies.has(asset))
      return refuse(
        'asset',
        isPayout
          ? `a payout leaves in USD or USDC, not ${asset}; for what arrives send recipientId and recipientAmount`
          : `no payment leaves in ${asset}: simulate it in USD or a stablecoin`,
      )
    if ((amount === undefined) === (recipientAmount === undefined))
      return refuse('amount', 'send exactly one of amount or, for a payout, recipientAmount')
    if (recipientAmount !== undefined && (!isPayout || recipientId == null))
      refuse('recipientAmount', 'is for payouts with recipientId')
    const misfit = amountMismatch(amount ?? recipientAmount ?? '', amount === undefined ? 'USD' : asset)
    if (misfit !== undefined) refuse(amount === undefined ? 'recipientAmount' : 'amount', misfit)
  })

const request = z
  .strictObject({
    keyId: z
      .string()
      .max(64)
      .optional()
      .describe('`agentId` of one of your keys. A key can only simulate itself.'),
    policy: spendPolicy
      .optional()
      .describe('Draft policy to evaluate instead of the key’s own, with or without `keyId`. Owners only.'),
    spend: spend.optional().describe('The spend.'),
    count: z.int().min(1).max(1000).default(1).describe('Number of equal spends, one after the other.'),
    replay: z
      .boolean()
      .optional()
      .describe(
        'With `keyId` and `policy`, without `spend`: list which of the key’s newest 1,000 decisions the draft would change. Owners only. Default: false.',
      ),
  })
  .superRefine(({ replay: isReplay = false, spend: requested, keyId, policy, count }, context) => {
    const need = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message })
    if (!isReplay && requested === undefined) need('spend', 'is required')
    if (requested?.from === 'any' && count > 1) need('count', 'is 1 for a spend from any chain')
    if (isReplay && requested !== undefined) need('spend', 'is not allowed with replay')
    if (isReplay && keyId === undefined) need('keyId', 'is required for a replay')
    if (isReplay && policy === undefined) need('policy', 'is required for a replay')
  })

const verdict = z.enum(['allow', 'deny', 'approval_required', 'insufficient_funds'])
export default defineTool({
  name: 'policy.simulate',
  title: 'Simulate a spend',
  summary: 'Ask whether a spend would be allowed, without spending, holding or counting anything.',
  description:
    'Use it before a spend that may not fit, and to explain limits; a denied spend costs nothing either. The answer is the decision that the spend would get now, with every violated rule; with `counterparty` also of sanctions, velocity and the Travel Rule, with `recipientId` the fee of a payout.',
  restDescription:
    'It is made by the same functions. `count` evaluates a series. A later spend may still differ, because others use the same budget.',
  route: 'POST /api/agents/policies/simulate',
  who: 'account',
  scopes: [],
  effect: 'read',
  mcp: true,
  restOnly: ['keyId', 'policy', 'replay'],
  requiredOverMcp: ['spend'],
  payee: 'spend.counterparty',
  policies: 'both',
  input: request,
  output: z.strictObject({
    decision: verdict.nullable().describe('Simulated decision; null for a replay.'),
    violations: z.array(violationView).describe('All rules that would be violated.'),
    usd: z
      .string()
      .nullable()
      .describe('Value of the spend in USD, as it would be counted; null for a replay.'),
    fee: z.string().nullable().describe('Fee within the amount of a payout; null if there is none to tell.'),
    funding: fundingView
      .nullable()
      .describe('Move from another chain before it, whose cost `usd` contains; null: none.'),
    available: z.string().nullable().describe('Available amount if insufficient; null otherwise.'),
    allowed: z
      .int()
      .nullable()
      .describe('Number of spends of the series allowed before the first that is not; null for a replay.'),
    firstDenied: z
      .strictObject({
        number: z.int().describe('Its position in the series, from 1.'),
        decision: verdict.describe('Its decision.'),
        violations: z.array(violationView).describe('All rules that it would violate.'),
        available: z.string().nullable().describe('Available amount if insufficient; null otherwise.'),
      })
      .nullable()
      .describe('First spend of the series that is not allowed; null if all are.'),
    threshold: z
      .string()
      .nullable()
      .describe('USD amount above which the owner must approve, for `approval_required`; null otherwise.'),
    policyHash: z.string().nullable().describe('SHA-256 of the evaluated policy, hex; null without one.'),
    replayed: z.int().nullable().describe('Number of past decisions evaluated; null without a replay.'),
    changed: z
      .array(
        z.strictObject({
          decisionId: z.string().describe('`dec_…`'),
          at: z.string().describe('ISO 8601 UTC.'),
          operation: z.string().describe('Requested operation.'),
          amount: z.string().describe('Amount as a decimal string.'),
          asset: z.string().describe('Asset by symbol.'),
          was: verdict.describe('Original decision.'),
          now: verdict.describe('Simulated decision.'),
          violations: z.array(violationView).describe('Violations under the draft policy.'),
        }),
      )
      .nullable()
      .describe('Past decisions that would change, oldest first; null without a replay.'),
  }),
  failures: [
    'insufficient_scope',
    'not_found',
    'chain_not_supported',
    'payout_rejected',
    'screening_unavailable',
    'rates_unavailable',
    'provider_unavailable',
    'conflict',
  ],
  example: { spend: { category: 'transfer', amount: '25' } },
  run: async (context, input) => {
    const { accountId, key, policy } = await resolveSubject(context, input)
    const shared = {
      policyHash: hashPolicy(policy),
      usd: null,
      fee: null,
      funding: null,
      available: null,
      allowed: null,
      firstDenied: null,
      threshold: null,
    }
    if (input.replay === true && key !== null && policy !== null)
      return {
        ...shared,
        ...(await replayPast(context, { accountId, keyId: key.id, policy })),
        decision: null,
        violations: [],
      }
    if (input.spend === undefined) throw new Error('the schema requires a spend')
    const { category, asset, counterparty, recipientId, mcc, symbol } = input.spend
    const chain = input.spend.chain == null ? null : context.chains.resolveName(input.spend.chain)
    const { money, fee } = await plan(context, { accountId, spend: input.spend })
    const aml = await screen(context, { accountId, keyId: key?.id ?? null, money, spend: input.spend })
    const funding =
      input.spend.from === 'any'
        ? await planMove(context, {
            accountId,
            policies: [policy, ...parseAncestorPolicies(key)],
            money,
            chain,
          })
        : undefined
    const { firstDenied, ...simulated } = await simulateSpends(context, {
      accountId,
      key,
      policy,
      count: input.count,
      spending: {
        ...(aml === null ? {} : { aml }),
        ...(funding === undefined ? {} : { funding: funding.spend }),
        category,
        money,
        place: choosePlace(category, asset, chain ?? context.chain.name),
        chain: chain ?? (onChainCategories.has(category) ? context.chain.name : null),
        counterparty: recipientId ?? counterparty?.toLowerCase() ?? null,
        mcc: mcc ?? null,
        symbol: symbol ?? null,
        facts: null,
      },
    })
    return {
      ...shared,
      decision: simulated.verdict,
      violations: [...simulated.violations],
      usd: formatUsd(simulated.usdMicros),
      fee: fee === null ? null : toDecimal({ asset, units: fee }),
      funding: funding === undefined ? null : viewFunding(funding.facts),
      available: simulated.available,
      allowed: simulated.allowed,
      firstDenied:
        firstDenied === null
          ? null
          : {
              number: firstDenied.number,
              decision: firstDenied.verdict,
              violations: [...firstDenied.violations],
              available: firstDenied.available,
            },
      threshold: firstDenied?.verdict === 'approval_required' ? (policy?.approval?.above ?? null) : null,
      replayed: null,
      changed: null,
    }
  },
})

/** Resolves the key and policy to evaluate. @throws Failure `not_found`, `invalid_request`. */
async function resolveSubject(
  context: Context,
  { keyId, policy, replay: isReplay = false }: z.output<typeof request>,
): Promise<{ accountId: string; key: AccessKey | null; policy: Policy | null }> {
  const caller = requireCaller(context)
  const accountId = caller.account.id
  if (caller.kind === 'key') {
    if (policy !== undefined || isReplay)
      throw invalid('policy', 'is for owners only: a key can only simulate itself')
    if (keyId !== undefined && keyId !== caller.key.id) throw unknownKey()
    return { accountId, key: caller.key, policy: ownPolicy(caller.key) }
  }
  if (keyId === undefined) {
    if (policy === undefined) throw invalid('keyId', 'is required without policy')
    return { accountId, key: null, policy }
  }
  const kinds = [...agentKinds, ...developerKinds]
  const key = await findOwnKey(context.database, { accountId, kinds, id: keyId, isLocked: false })
  if (key === undefined) throw unknownKey()
  return { accountId, key, policy: policy ?? ownPolicy(key) }
}

function ownPolicy(key: AccessKey): Policy | null {
  return storedPolicy.nullable().parse(key.policy ?? null)
}

async function replayPast(
  context: Context,
  { accountId, keyId, policy }: { accountId: string; keyId: string; policy: Policy },
) {
  const resolved = (await resolvePolicy(context, { accountId, policy, chain: null })) ?? policy
  const past = await pastSpends(context.database, { accountId, keyId, limit: MAX_REPLAYED })
  const outcomes = new Map(replay(resolved, past).map((outcome) => [outcome.id, outcome]))
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
  return new Failure('not_found', 'You have no such key.')
}

function invalid(path: string, message: string): Failure {
  return new Failure('invalid_request', `${path}: ${message}`, { issues: [{ path, message }] })
}

/** Computes the amount that leaves, and the fee within it; null: none, or unknown. @throws Failure `not_found`, `payout_rejected`. */
async function plan(
  context: Context,
  {
    accountId,
    spend: { asset, amount, recipientId, recipientAmount },
  }: { accountId: string; spend: z.output<typeof spend> },
): Promise<{ money: Money; fee: bigint | null }> {
  if (recipientId == null || !isPayoutAsset(asset)) return { money: toMoney(asset, amount ?? ''), fee: null }
  const recipient = await requireRecipient(context, { id: recipientId, accountId })
  return agreeTerms(context, { accountId, recipient, said: { asset, amount, recipientAmount } })
}

/** Plans the move of money that a payment would wait for. */
async function planMove(
  context: Context,
  {
    accountId,
    policies,
    money: { asset, units },
    chain,
  }: {
    readonly accountId: string
    readonly policies: readonly (Policy | null)[]
    readonly money: Money
    readonly chain: string | null
  },
) {
  const token = stablecoins.find((one) => one === asset)
  if (token === undefined) return undefined
  return planFunding(context, {
    ...{ accountId, authorizedBy: null, at: context.now },
    chain: onChain(context, chain ?? undefined).chain.name,
    money: { asset: token, units },
    wallet: (await findWallet(context.database, accountId)) ?? null,
    mayLeave: mayLeave(policies),
  })
}

function parseAncestorPolicies(key: AccessKey | null): readonly (Policy | null)[] {
  return key === null ? [] : parseAncestors(key).map(({ policy }) => policy)
}

/** Screens a transfer to a named payee as the real call does; null for other spends. */
async function screen(
  given: Context,
  {
    accountId,
    keyId,
    money: { asset, units },
    spend: { category, chain, counterparty },
  }: { accountId: string; keyId: string | null; money: Money; spend: z.output<typeof spend> },
) {
  const token = stablecoins.find((one) => one === asset)
  if (category !== 'transfer' || token === undefined || counterparty == null) return null
  const context = onChain(given, chain ?? undefined)
  const request = {
    accountId,
    keyId,
    destination: counterparty,
    chain: context.chain.name,
    money: { asset: token, units },
  }
  const known = await loadTransferFacts(context, request)
  const { aml } = await admitTransfer(context, {
    ...known,
    ...request,
    facts: complianceFactsFrom(known.compliance, counterparty),
    safeAddress: undefined,
  })
  return aml
}

/** Returns the place of the money for a category; null if the money is not the account's. */
function choosePlace(category: SpendCategory, asset: Asset, chain: string): string | null {
  if (category === 'gasless') return null
  return category === 'invest' || (category === 'payout' && asset === 'USD') ? 'bank' : chain
}
