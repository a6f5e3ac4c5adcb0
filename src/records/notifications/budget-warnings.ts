/** Warns an owner with channels that a key has used 80 % of a budget: once for each rule and period. */
import { type BudgetSpan, budgetRules, findPeriod } from '../../../policies/budget.ts'
import { storedPolicy } from '../../../policies/policy.ts'
import { formatUsd } from '../../../policies/usd.ts'
import { readUsages } from '../../books/spending/usage.ts'
import { utcDay } from '../../core/base/clock.ts'
import type { NewId } from '../../core/base/ids.ts'
import type { Connection } from '../../storage/database.ts'

/** Per cent of a budget from which on it is nearly used up. */
const WARN_PERCENT = 80n
/** Keys that are read at once. */
const BATCH = 500
const DAY_MS = 24 * 60 * 60 * 1000

type WarningParts = { readonly database: Connection; readonly newId: NewId }
type Moments = { readonly now: Date; readonly at: Date }

/** @param now of the calendar. @param at of the clock. @returns number of warnings. */
export async function writeBudgetWarnings(parts: WarningParts, moments: Moments): Promise<number> {
  let written = 0
  for (let after = '', isLast = false; !isLast; ) {
    const keys = await listSpenders(parts.database, { after, now: moments.now })
    if (keys.length > 0) written += await writeWarnings(parts, keys, moments)
    after = keys.at(-1)?.id ?? after
    isLast = keys.length < BATCH
  }
  return written
}

type Spender = Awaited<ReturnType<typeof listSpenders>>[number]

/** Lists keys that have spent today, by id: only they can have crossed a line. */
function listSpenders({ kysely }: Connection, { after, now }: { after: string; now: Date }) {
  return kysely
    .selectFrom('budget_usage')
    .innerJoin('access_key', 'access_key.id', 'budget_usage.key_id')
    .select(['access_key.id', 'access_key.account_id as accountId', 'access_key.policy'])
    .where('budget_usage.day', '=', utcDay(now))
    .where('access_key.id', '>', after)
    .where('access_key.status', '=', 'active')
    .where('access_key.policy', 'is not', null)
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('notification_channel')
          .select('notification_channel.id')
          .whereRef('notification_channel.account_id', '=', 'access_key.account_id'),
      ),
    )
    .orderBy('access_key.id')
    .limit(BATCH)
    .execute()
}

async function writeWarnings(
  { database, newId }: WarningParts,
  keys: readonly Spender[],
  { now, at }: Moments,
): Promise<number> {
  const usages = await readUsages(
    database,
    keys.map(({ id }) => id),
    now,
  )
  let written = 0
  for (const { id, accountId, policy } of keys)
    for (const { period, maxMicros } of budgetRules(storedPolicy.parse(policy))) {
      const used = usages.get(id)?.[period].usedMicros ?? 0n
      if (maxMicros === null || maxMicros === 0n || used * 100n < maxMicros * WARN_PERCENT) continue
      written += await warn(database, newId, {
        accountId,
        keyId: id,
        about: `budget ${id} ${period} ${findStart(period, now)} ${formatUsd(maxMicros)}`,
        data: { period, max: formatUsd(maxMicros), used: formatUsd(used) },
        at,
      })
    }
  return written
}

function findStart(period: BudgetSpan, now: Date): string {
  return period === 'life' ? '-' : utcDay(findPeriod(period, now).start)
}

async function warn(
  { kysely }: Connection,
  newId: NewId,
  warning: { accountId: string; keyId: string; about: string; data: Record<string, string>; at: Date },
): Promise<number> {
  const { accountId, keyId, about, data, at } = warning
  const channels = await kysely
    .selectFrom('notification_channel')
    .select(['id', 'type'])
    .where('account_id', '=', accountId)
    .execute()
  if (channels.length === 0) return 0
  const { numInsertedOrUpdatedRows } = await kysely
    .insertInto('owner_message')
    .values(
      channels.map(({ id, type }) => ({
        id: newId('msg', at),
        account_id: accountId,
        channel_id: id,
        channel_type: type,
        about,
        type: 'budget.used',
        object_id: keyId,
        data: JSON.stringify(data),
        at,
        held_until: at,
        expires_at: new Date(at.getTime() + DAY_MS),
      })),
    )
    .onConflict((conflict) => conflict.columns(['channel_id', 'about']).doNothing())
    .executeTakeFirstOrThrow()
  return Number(numInsertedOrUpdatedRows ?? 0)
}
