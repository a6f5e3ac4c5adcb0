import { z } from 'zod'
import { defineTool } from '../../../src/kernel/tool.ts'
import { decimalOf } from '../../../src/money/money.ts'
import { openDebts } from '../../../src/spending/debts.ts'

/** How many are shown. */
const LIMIT = 200

export default defineTool({
  name: 'admin.debts.list',
  title: 'Debts',
  summary: 'Read what accounts owe because the gateway has paid for them, the oldest debt first.',
  description:
    'Debts are collected by themselves from whatever their account has or receives. One of kind `settlement` stands for stablecoins that a card has spent and that the chain goes on refusing to send to the treasury: they stay held, and are tried again at `nextTryAt`. The 200 oldest.',
  route: 'GET /api/admin/debts',
  who: 'admin',
  scopes: [],
  effect: 'read',
  stepUp: true,
  mcp: false,
  input: z.strictObject({}),
  output: z.strictObject({
    debts: z
      .array(
        z.strictObject({
          id: z.string().describe('Name of the debt.'),
          accountId: z.string().describe('`acct_…`'),
          kind: z
            .enum(['card', 'settlement', 'deposit'])
            .describe(
              'What it comes from: a clearing, a refused settlement, or a deposit that was taken back.',
            ),
          reference: z.string().describe('The card transaction, settlement or deposit.'),
          asset: z.string().describe('Currency of the debt.'),
          amount: z.string().describe('What the gateway has paid, as a decimal string.'),
          owed: z.string().describe('What of it is still owed, as a decimal string.'),
          createdAt: z.string().describe('When it was booked, ISO 8601 UTC.'),
          tries: z.int().nullable().describe('How often its settlement was tried; null: it has none.'),
          nextTryAt: z
            .string()
            .nullable()
            .describe(
              'When its settlement is tried again, ISO 8601 UTC; null: it has none, or is under way.',
            ),
        }),
      )
      .describe('Empty while nobody owes anything.'),
  }),
  failures: [],
  example: {},
  run: async ({ database }) => ({
    debts: (await openDebts(database, LIMIT)).map(
      ({ asset, units, owed, createdAt, nextTryAt, ...debt }) => ({
        ...debt,
        asset,
        amount: decimalOf({ asset, units }),
        owed: decimalOf({ asset, units: owed }),
        createdAt: createdAt.toISOString(),
        nextTryAt: nextTryAt?.toISOString() ?? null,
      }),
    ),
  }),
})
