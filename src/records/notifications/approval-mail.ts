/** The mail about requests for approval that are open. */
import { sql } from 'kysely'
import { z } from 'zod'
import { storedPolicy } from '../../../policies/policy.ts'
import { formatUsd } from '../../../policies/usd.ts'
import { readOwnerCap } from '../../books/spending/owner-cap.ts'
import { showUsage } from '../../books/spending/usage.ts'
import type { Connection } from '../../storage/database.ts'
import { quoteText } from './quote-text.ts'

/** Requests that one mail describes. */
const MAX_DESCRIBED = 25

/** Text of a mail. @property subject contains no text of others. */
export interface MailText {
  readonly subject: string
  readonly text: string
}

/** Spending operations in words. */
export const operations: Readonly<Record<string, string>> = {
  'wallets.transfer': 'transfer from the wallet',
  'transfers.gasless': 'gasless payment',
  'purchases.buy': 'purchase of a paid URL',
  'investing.order': 'order of a security',
  'x402.fx': 'purchase of an exchange rate',
  'cards.authorize': 'declined card purchase, to be tried again',
  'banking.payouts.create': 'payout to a bank account',
  'cards.issue': 'card for one purchase',
  'cards.update': 'change of a card',
  'agents.policy': 'another policy for itself',
  'schedules.create': 'schedule of payments',
  'schedules.update': 'a paused schedule to go on',
  'schedules.resume': 'a schedule to go on, after three runs failed',
  'agents.resume': 'to go on, after it made the same payment again and again',
}

const facts = z.looseObject({
  asset: z.string(),
  amount: z.string(),
  usdMicros: z.string().nullish(),
  counterparty: z.string().nullish(),
  symbol: z.string().nullish(),
  seller: z.looseObject({ origin: z.string() }).nullish(),
  found: z
    .looseObject({ merchant: z.string().optional().catch(undefined) })
    .nullish()
    .catch(null),
})

/**
 * Writes the mail about all requests of an account that are open, the told ones too, with one link.
 * @param asked ids of the requests that cause the mail. @param buildPageUrl page of a request; null: of all requests.
 * @returns null if none of the requests that cause it is open any more.
 */
export async function writeApprovalMail(
  database: Connection,
  {
    accountId,
    asked,
    now,
    buildPageUrl,
  }: {
    accountId: string
    asked: ReadonlySet<string>
    now: Date
    buildPageUrl: (approvalId: string | null) => string
  },
): Promise<MailText | null> {
  const open = await database.kysely
    .selectFrom('approval')
    .leftJoin('decision', 'decision.id', 'approval.decision_id')
    .leftJoin('access_key', 'access_key.id', 'approval.key_id')
    .leftJoin('account as asker', 'asker.id', 'approval.asker_id')
    .select([
      'approval.id',
      'approval.operation',
      'approval.reason',
      'approval.expires_at as expiresAt',
      'approval.key_id as keyId',
      'decision.facts',
      'access_key.policy',
    ])
    .select(sql<string>`coalesce(access_key.name, asker.display_name, '')`.as('name'))
    .select(sql<bigint>`count(*) over ()`.as('total'))
    .where('approval.account_id', '=', accountId)
    .where('approval.status', '=', 'pending')
    .where('approval.expires_at', '>', now)
    // Those that cause the mail first, then the newest.
    .orderBy(({ eb }) => eb('approval.id', 'in', [...asked]), 'desc')
    .orderBy('approval.id', 'desc')
    .limit(MAX_DESCRIBED)
    .execute()
  const [first] = open
  if (first === undefined || !asked.has(first.id)) return null
  const shared = await sharedBudgetLeft(database, accountId, now)
  const budgets = new Map<string, string>()
  for (const { keyId, policy } of open)
    if (keyId !== null && !budgets.has(keyId))
      budgets.set(keyId, await budgetLeft(database, { keyId, policy }, now))
  const total = Number(first.total)
  const described = open.map((approval) =>
    describeApproval({
      ...approval,
      budget: approval.keyId === null ? null : [budgets.get(approval.keyId), ...shared].join(', '),
    }),
  )
  if (total === 1)
    return {
      subject:
        first.keyId === null ? 'A payment waits for your agreement' : 'An agent asks for your approval',
      text: `${described.join('')}\n\nApprove or reject it: ${buildPageUrl(first.id)}\n`,
    }
  const more = total > open.length ? `\n\n… and ${total - open.length} more.` : ''
  return {
    subject: `${total} requests wait for your approval`,
    text: `${described.map((text, index) => `${index + 1}. ${text}`).join('\n\n')}${more}\n\nApprove or reject them: ${buildPageUrl(null)}\n`,
  }
}

function describeApproval(approval: {
  readonly name: string
  readonly operation: string
  readonly facts: unknown
  /** Null for a person, who has none. */
  readonly budget: string | null
  readonly reason: string | null
  readonly expiresAt: Date
}): string {
  const { name, operation, budget, reason, expiresAt } = approval
  return [
    `${budget === null ? '' : 'Agent '}“${quoteText(name)}” asks for your approval: ${operations[operation] ?? operation}.`,
    // A change spends nothing.
    ...(approval.facts === null ? [] : describeSpend(operation, approval.facts, budget)),
    ...(reason === null ? [] : [`The agent’s reason, in its own words: “${quoteText(reason)}”`]),
    `Expires: ${expiresAt.toISOString()}`,
  ].join('\n')
}

function describeSpend(operation: string, stored: unknown, budget: string | null): string[] {
  const { asset, amount, usdMicros, payee } = readFacts(operation, stored)
  // Valued at zero only before the terms of a seller are known.
  const usd = usdMicros == null || usdMicros === '0' ? '' : ` (${formatUsd(BigInt(usdMicros))} USD)`
  return [
    `Amount: ${amount} ${asset}${usd}`,
    ...(payee === null ? [] : [`To: ${quoteText(payee)}`]),
    ...(budget === null ? [] : [`Budget left: ${budget}`]),
  ]
}

/** Amount and payee of a decision. A card purchase is shown as the merchant states it, whatever asset pays. */
export function readFacts(operation: string, stored: unknown) {
  const { asset, amount, usdMicros, counterparty, symbol, seller, found } = facts.parse(stored)
  if (operation === 'cards.authorize' || operation === 'cards.issue')
    return { asset: 'USD', amount, usdMicros: null, payee: found?.merchant ?? counterparty ?? null }
  return { asset, amount, usdMicros, payee: seller?.origin ?? counterparty ?? symbol ?? null }
}

/** One line about a request for approval. */
export function summarizeApproval(approval: {
  readonly name: string
  readonly operation: string
  readonly facts: unknown
}): string {
  const operation = operations[approval.operation] ?? approval.operation
  if (approval.facts === null) return `“${quoteText(approval.name)}”: ${operation}.`
  const { asset, amount, payee } = readFacts(approval.operation, approval.facts)
  const to = payee === null ? '' : ` to ${quoteText(payee)}`
  return `“${quoteText(approval.name)}”: ${operation}, ${amount} ${asset}${to}.`
}

async function budgetLeft(
  database: Connection,
  { keyId, policy }: { keyId: string; policy: unknown },
  now: Date,
): Promise<string> {
  if (policy === null) return 'none, the agent has no policy'
  const { remaining, week, month } = await showUsage(
    database,
    { keyId, policy: storedPolicy.parse(policy) },
    now,
  )
  return [
    `${remaining ?? '0'} USD today`,
    ...(week.remaining === null ? [] : [`${week.remaining} USD this week`]),
    ...(month.remaining === null ? [] : [`${month.remaining} USD this month`]),
  ].join(', ')
}

/** Amounts left of the owner's caps over all keys. */
async function sharedBudgetLeft(database: Connection, accountId: string, now: Date): Promise<string[]> {
  const cap = await readOwnerCap(database, { accountId, isLocked: false, now })
  const periods = [
    [cap.day, 'today'],
    [cap.week, 'this week'],
    [cap.month, 'this month'],
  ] as const
  return periods.flatMap(([{ maxMicros, usedMicros }, period]) => {
    if (maxMicros === null) return []
    const left = maxMicros > usedMicros ? maxMicros - usedMicros : 0n
    return [`${formatUsd(left)} USD ${period} for all agents together`]
  })
}
