import { z } from 'zod'
import { openDebts } from '../../../src/books/debts/debts.ts'
import { toDecimal } from '../../../src/core/money/money.ts'
import { defineTool } from '../../../src/kernel/tool.ts'

const LIMIT = 200

export default defineTool({
  name: 'admin.debts.list',
  title: 'Debts',
  summary: 'List what accounts owe because the gateway paid for them, oldest debt first.',
  description:
    'Debts are collected automatically from whatever their account has or receives. A debt of kind `settlement` stands for stablecoins spent by a card whose transfer to the treasury the chain keeps refusing: they stay held, and the transfer is retried at `nextTryAt`. Returns the 200 oldest.',
  route: 'GET /api/admin/debts',
  who: 'admin',
  effect: 'read',
  proof: 'step-up',
  input: z.strictObject({}),
  output: z.strictObject({
    debts: z
      .array(
        z.strictObject({
          id: z.string().describe('Id of the debt.'),
          accountId: z.string().describe('`acct_…`'),
          kind: z
            .enum(['card', 'settlement', 'deposit'])
            .describe('Origin: a card clearing, a refused settlement, or a reversed deposit.'),
          reference: z.string().describe('The card transaction, settlement or deposit.'),
          asset: z.string().describe('Currency of the debt.'),
          amount: z.string().describe('Amount the gateway paid, as a decimal string.'),
          owed: z.string().describe('Amount still owed, as a decimal string.'),
          createdAt: z.string().describe('When it was booked, ISO 8601 UTC.'),
          tries: z.int().nullable().describe('Attempts of its settlement; null without one.'),
          nextTryAt: z
            .string()
            .nullable()
            .describe(
              'When its settlement is retried, ISO 8601 UTC; null without one, or while an attempt is pending.',
            ),
        }),
      )
      .describe('Open debts; empty if there are none.'),
  }),
  failures: [],
  example: {},
  run: async ({ database }) => ({
    debts: (await openDebts(database, LIMIT)).map(
      ({ asset, units, owed, createdAt, nextTryAt, ...debt }) => ({
        ...debt,
        asset,
        amount: toDecimal({ asset, units }),
        owed: toDecimal({ asset, units: owed }),
        createdAt: createdAt.toISOString(),
        nextTryAt: nextTryAt?.toISOString() ?? null,
      }),
    ),
  }),
})
