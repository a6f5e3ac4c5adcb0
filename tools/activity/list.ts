import { z } from 'zod'
import type { Scope } from '../../policies/scopes.ts'
import { nextCursor, pageMembers } from '../../src/core/base/page.ts'
import { taskLabel } from '../../src/core/base/task-label.ts'
import { type Context, requireCaller } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { latestOrDollars } from '../../src/providers/rates/port.ts'
import { payoutReferences, searchPayoutTexts } from '../../src/rails/banking/payout-texts.ts'
import { recipientNames } from '../../src/rails/banking/recipients.ts'
import {
  type ActivityEntry,
  type ActivityPosition,
  type ActivityRoom,
  activityDirections,
  activityEntry,
  activityKinds,
  activityRooms,
  activityStatuses,
  listActivity,
} from '../../src/records/activity/list-activity.ts'
import { nameContacts } from '../../src/records/contacts/names.ts'

const scopeByRoom = {
  wallet: 'wallets:read',
  bank: 'banking:read',
  cards: 'cards:read',
  investing: 'investing:read',
} as const satisfies Record<ActivityRoom, Scope>

const moment = z.iso.datetime().refine((text) => text >= '1970', 'must not be before 1970')

const position = z
  .string()
  .max(400)
  .transform((cursor, context): ActivityPosition => {
    const [at = '', id = ''] = Buffer.from(cursor, 'base64url').toString().split(' ')
    if (moment.safeParse(at).success && id !== '') return { at: new Date(at), id }
    context.addIssue({ code: 'custom', message: 'is not a valid cursor' })
    return z.NEVER
  })

export default defineTool({
  name: 'activity.list',
  title: 'Activity',
  summary: 'List what came into the account or left it, on every rail, newest first.',
  description:
    'Use it to see what happened, or whether a payment went through before you repeat it. Denied and failed calls have the amount 0. `notShown` names rooms that the key has no scope for.',
  restDescription:
    'Transfers, deposits, card purchases, orders, payouts, purchases, dividends and gasless relays.',
  route: 'GET /api/activity',
  who: 'account',
  scopes: [],
  role: 'accountant',
  effect: 'read',
  mcp: true,
  csv: 'entries',
  restOnly: ['status', 'task'],
  input: z.strictObject({
    limit: pageMembers.limit,
    cursor: position.optional().describe('From `nextCursor`.'),
    kind: z.enum(activityKinds).optional().describe('Its kind.'),
    direction: z.enum(activityDirections).optional().describe('Its direction.'),
    agentId: z.string().max(64).optional().describe('Key that spent: `key_…`.'),
    task: taskLabel.optional().describe('Label of its task.'),
    status: z.enum(activityStatuses).optional().describe('Its status.'),
    search: z.string().trim().min(1).max(100).optional().describe('Part of payee or memo.'),
    from: moment.optional().describe('ISO 8601 UTC, inclusive.'),
    to: moment.optional().describe('Exclusive.'),
  }),
  output: z.strictObject({
    entries: z.array(activityEntry).describe('Entries of this page, newest first.'),
    notShown: z.array(z.enum(activityRooms)).describe('Rooms that the key has no scope for.'),
    nextCursor,
  }),
  failures: [],
  example: { kind: 'transfer', limit: 20 },
  run: async (context, { limit = 50, cursor, kind, direction, agentId, task, status, search, from, to }) => {
    const caller = requireCaller(context)
    const isShown = (room: ActivityRoom) =>
      caller.kind !== 'key' || caller.key.scopes.includes(scopeByRoom[room])
    const accountId = caller.account.id
    const found = search === undefined ? [] : await searchPayoutTexts(context, { accountId, search })
    const table = await latestOrDollars(context.rates, context.now)
    const { entries, next } = await listActivity(context.database, table, {
      accountId,
      keyId: caller.kind === 'key' ? caller.key.id : null,
      rooms: activityRooms.filter(isShown),
      kinds: kind === undefined ? activityKinds : [kind],
      from: from === undefined ? null : new Date(from),
      to: to === undefined ? null : new Date(to),
      direction: direction ?? null,
      agentId: agentId ?? null,
      task: task ?? null,
      statuses: status === undefined ? activityStatuses : [status],
      search: search ?? null,
      found,
      after: cursor ?? null,
      limit,
    })
    return {
      entries: await withNames(context, { accountId, entries }),
      notShown: activityRooms.filter((room) => !isShown(room)),
      nextCursor:
        next === null ? null : Buffer.from(`${next.at.toISOString()} ${next.id}`).toString('base64url'),
    }
  },
})

/** Names contacts and the recipients of payouts, and adds their references. */
async function withNames(
  context: Context,
  { accountId, entries }: { accountId: string; entries: readonly ActivityEntry[] },
): Promise<ActivityEntry[]> {
  const named = await nameContacts(context, accountId, entries, ({ counterparty }) => counterparty)
  const payouts = entries.filter(({ kind }) => kind === 'payout')
  const collectIds = (ids: readonly (string | null)[]) => [...new Set(ids.filter((id) => id !== null))]
  const [names, references] = await Promise.all([
    recipientNames(context, { accountId, ids: collectIds(payouts.map(({ counterparty }) => counterparty)) }),
    payoutReferences(context, { accountId, ids: collectIds(payouts.map(({ object }) => object.id)) }),
  ])
  return named.map((entry) => ({
    ...entry,
    counterparty: names.get(entry.counterparty ?? '') ?? entry.counterparty,
    memo: [entry.memo, references.get(entry.object.id)].filter((text) => text != null).join(' · ') || null,
  }))
}
