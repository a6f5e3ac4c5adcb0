import { z } from 'zod'
import type { Scope } from '../../policies/scopes.ts'
import {
  type ActivityPosition,
  type ActivityRoom,
  activityDirections,
  activityEntry,
  activityKinds,
  activityRooms,
  listActivity,
} from '../../src/activity/list-activity.ts'
import { nextCursor, pageMembers } from '../../src/base/page.ts'
import { callerOf } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'

const scopeOf = {
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
  summary:
    'List everything that came into the account or left it, newest first: transfers, deposits, card purchases, orders, purchases and gasless relays.',
  description:
    'Use it to see what happened, or whether a payment went through before you repeat it. Free. One transfer, card or order is shown in more detail by its own tool. Rooms that the key has no scope for are left out and named in `notShown`.',
  route: 'GET /api/activity',
  who: 'account',
  scopes: [],
  effect: 'read',
  mcp: true,
  csv: 'entries',
  input: z.strictObject({
    limit: pageMembers.limit,
    cursor: position.optional().describe('`nextCursor` of the previous page.'),
    kind: z.enum(activityKinds).optional().describe('Filter by kind.'),
    direction: z.enum(activityDirections).optional().describe('Filter by direction.'),
    agentId: z.string().max(64).optional().describe('Filter by the key that spent: `key_…`.'),
    search: z
      .string()
      .trim()
      .min(1)
      .max(100)
      .optional()
      .describe('Part of the counterparty or the memo, in any letter case.'),
    from: moment.optional().describe('Start, inclusive, ISO 8601 UTC.'),
    to: moment.optional().describe('End, exclusive, ISO 8601 UTC.'),
  }),
  output: z.strictObject({
    entries: z.array(activityEntry).describe('Entries of this page, newest first.'),
    notShown: z.array(z.enum(activityRooms)).describe('Rooms that the key has no scope for.'),
    nextCursor,
  }),
  failures: [],
  example: { kind: 'transfer', limit: 20 },
  run: async (context, { limit = 50, cursor, kind, direction, agentId, search, from, to }) => {
    const caller = callerOf(context)
    const isShown = (room: ActivityRoom) => caller.kind !== 'key' || caller.key.scopes.includes(scopeOf[room])
    const { entries, next } = await listActivity(context.database, {
      accountId: caller.account.id,
      keyId: caller.kind === 'key' ? caller.key.id : null,
      rooms: activityRooms.filter(isShown),
      kinds: kind === undefined ? activityKinds : [kind],
      from: from === undefined ? null : new Date(from),
      to: to === undefined ? null : new Date(to),
      direction: direction ?? null,
      agentId: agentId ?? null,
      search: search ?? null,
      after: cursor ?? null,
      limit,
    })
    return {
      entries,
      notShown: activityRooms.filter((room) => !isShown(room)),
      nextCursor:
        next === null ? null : Buffer.from(`${next.at.toISOString()} ${next.id}`).toString('base64url'),
    }
  },
})
