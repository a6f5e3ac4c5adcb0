/** Text of a message to a channel: what happened, in lines that no stranger's text can turn into links or mentions. */
import { sql } from 'kysely'
import { z } from 'zod'
import { storedPolicy } from '../../../policies/policy.ts'
import { formatUsd, toUsdMicros } from '../../../policies/usd.ts'
import { readOwnerCap } from '../../books/spending/owner-cap.ts'
import { showUsage } from '../../books/spending/usage.ts'
import type { Connection } from '../../storage/database.ts'
import { operations, readFacts } from './approval-mail.ts'
import { describeEvent } from './event-mail.ts'
import { pages } from './push-message.ts'
import type { ToldEvent } from './queue.ts'
import { quoteText } from './quote-text.ts'

/** @property path page of the console. */
export interface AnnouncementText {
  readonly title: string
  readonly lines: readonly string[]
  readonly path: string
}

/** @param now of the calendar. @returns null if the request for approval is not open any more. */
export async function writeAnnouncement(
  database: Connection,
  told: ToldEvent,
  now: Date,
): Promise<AnnouncementText | null> {
  if (told.type === 'approval.requested') return announceApproval(database, told, now)
  if (told.type === 'budget.used') return announceBudget(database, told)
  const { title, body } = await describeEvent(database, told)
  return { title, lines: [body], path: pages[told.type] ?? '/' }
}

const worth = z.looseObject({ usdMicros: z.string().nullish() }).catch({})

async function announceApproval(
  database: Connection,
  { account_id: accountId, object_id: id }: ToldEvent,
  now: Date,
): Promise<AnnouncementText | null> {
  const row = await database.kysely
    .selectFrom('approval')
    .leftJoin('decision', 'decision.id', 'approval.decision_id')
    .leftJoin('access_key', 'access_key.id', 'approval.key_id')
    .leftJoin('account as asker', 'asker.id', 'approval.asker_id')
    .select([
      'approval.operation',
      'approval.reason',
      'approval.expires_at as expiresAt',
      'approval.key_id as keyId',
      'decision.facts',
      'access_key.policy',
    ])
    .select(sql<string>`coalesce(access_key.name, asker.display_name, '')`.as('name'))
    .where('approval.id', '=', id)
    .where('approval.account_id', '=', accountId)
    .where('approval.status', '=', 'pending')
    .where('approval.expires_at', '>', now)
    .executeTakeFirst()
  if (row === undefined) return null
  const { operation, facts, reason, expiresAt } = row
  const spend = facts === null ? null : readFacts(operation, facts)
  const micros = BigInt(worth.parse(facts ?? {}).usdMicros ?? 0)
  const usd = spend?.usdMicros == null || spend.usdMicros === '0' ? '' : ` (${formatUsd(micros)} USD)`
  return {
    title:
      row.keyId === null ? 'A payment waits for the agreement of others' : 'An agent asks for your approval',
    lines: [
      `${row.keyId === null ? 'Person' : 'Agent'}: ${quoteText(row.name)}`,
      `Asks for: ${operations[operation] ?? operation}`,
      // A change spends nothing.
      ...(spend === null
        ? []
        : [
            `Amount: ${spend.amount} ${spend.asset}${usd}`,
            ...(spend.payee === null ? [] : [`To: ${quoteText(spend.payee)}`]),
            ...(row.keyId === null
              ? []
              : [
                  `Left afterwards: ${(await budgetsAfter(database, { ...row, keyId: row.keyId, accountId, micros }, now)).join(', ')}`,
                ]),
          ]),
      ...(reason === null ? [] : [`Its reason, in its own words: ${quoteText(reason)}`]),
      `Expires: ${expiresAt.toISOString()}`,
    ],
    path: `/approvals/${id}`,
  }
}

/** What is left of the agent's budgets and the owner's caps once the spend is made. */
async function budgetsAfter(
  database: Connection,
  { accountId, keyId, policy, micros }: { accountId: string; keyId: string; policy: unknown; micros: bigint },
  now: Date,
): Promise<readonly string[]> {
  const parsed = storedPolicy.nullable().parse(policy ?? null)
  const [usage, cap] = await Promise.all([
    showUsage(database, { keyId, policy: parsed }, now),
    readOwnerCap(database, { accountId, isLocked: false, now }),
  ])
  const own = [
    [usage.remaining, 'today'],
    [usage.week.remaining, 'this week'],
    [usage.month.remaining, 'this month'],
    [usage.total.remaining, 'in all'],
  ] as const
  const shared = [
    [cap.day, 'today'],
    [cap.week, 'this week'],
    [cap.month, 'this month'],
  ] as const
  const lines = [
    ...own.flatMap(([left, period]) =>
      left === null ? [] : [`${leftAfter(toUsdMicros(left), micros)} ${period}`],
    ),
    ...shared.flatMap(([{ maxMicros, usedMicros }, period]) =>
      maxMicros === null
        ? []
        : [`${leftAfter(maxMicros - usedMicros, micros)} ${period} for all agents together`],
    ),
  ]
  return lines.length > 0 ? lines : ['no budget, the agent has no policy']
}

function leftAfter(leftMicros: bigint, micros: bigint): string {
  const after = leftMicros - micros
  if (after >= 0n) return `${formatUsd(after)} USD`
  return `0 USD, ${formatUsd(-after)} USD over it,`
}

const budget = z.object({ period: z.string(), max: z.string(), used: z.string() })

const spans: Readonly<Record<string, string>> = {
  day: 'of today',
  week: 'of this week',
  month: 'of this month',
  life: 'in all',
}

async function announceBudget(
  { kysely }: Connection,
  { object_id: id, data }: ToldEvent,
): Promise<AnnouncementText> {
  const { period, max, used } = budget.parse(data)
  const key = await kysely
    .selectFrom('access_key')
    .select('name')
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  return {
    title: 'A budget is nearly used up',
    lines: [`“${quoteText(key.name)}” has used ${used} of its ${max} USD ${spans[period] ?? period}.`],
    path: `/agents/${id}`,
  }
}
