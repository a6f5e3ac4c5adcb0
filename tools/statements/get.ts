import { z } from 'zod'
import { requireCaller } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { payoutReferences } from '../../src/rails/banking/payout-texts.ts'
import { recipientNames } from '../../src/rails/banking/recipients.ts'
import { nameContacts } from '../../src/records/contacts/names.ts'
import { showDecisionsById } from '../../src/records/decisions/show-decisions.ts'
import { documents } from '../../src/records/statements/documents.ts'
import { plainCalendar, readPastCalendar } from '../../src/records/statements/past-calendar.ts'
import { period } from '../../src/records/statements/period.ts'
import { readPayments } from '../../src/records/statements/read-payments.ts'
import { readStatement, statementView } from '../../src/records/statements/read-statement.ts'

export default defineTool({
  name: 'statements.get',
  title: 'Statement',
  summary: 'Read what an account had, what came and left, and what it has then.',
  description: 'A month, such as `2026-11`, or days, such as `2026-11-01..2026-11-15`, in UTC.',
  restDescription:
    'Every movement once, with its rate in USD at the time, its task, agent and category; what came back names its payment. Opening balance and movements add up to the closing balance. `Accept` chooses JSON, CSV, PDF, OFX 2.2, camt.053.001.08 or a journal for hledger.',
  route: 'GET /api/statements/{period}',
  who: 'person',
  role: 'accountant',
  effect: 'read',
  csv: 'movements',
  documents,
  input: z.strictObject({
    period: period.describe('Month or days.'),
    pages: z
      .enum(['each'])
      .optional()
      .describe(
        '`each`: who made each payment, what for, its evidence and the decision on it; in a PDF a page of its own. At most 500 payments. Default: none of it.',
      ),
  }),
  output: statementView,
  failures: [],
  example: { period: '2026-11' },
  run: async (context, input) => {
    const accountId = requireCaller(context).account.id
    const calendar =
      context.advanceCalendar === null ? plainCalendar : await readPastCalendar(context.database)
    const statement = await readStatement(context.database, { accountId, period: input.period, calendar })
    const showDecisions = (ids: readonly string[]) => showDecisionsById(context, { accountId, ids })
    const payouts = statement.movements.filter(({ object }) => object.kind === 'payout')
    const [names, references] = await Promise.all([
      recipientNames(context, { accountId, ids: unique(payouts.map(({ counterparty }) => counterparty)) }),
      payoutReferences(context, { accountId, ids: unique(payouts.map(({ object }) => object.id)) }),
    ])
    const named = await nameContacts(
      context,
      accountId,
      statement.movements,
      ({ counterparty }) => counterparty,
    )
    return {
      ...statement,
      ...(input.pages === undefined
        ? {}
        : { payments: await readPayments({ database: context.database, showDecisions }, statement) }),
      movements: named.map((movement) => ({
        ...movement,
        counterparty: names.get(movement.counterparty ?? '') ?? movement.counterparty,
        memo: movement.memo ?? references.get(movement.object.id) ?? null,
      })),
    }
  },
})

function unique(ids: readonly (string | null)[]): readonly string[] {
  return [...new Set(ids.filter((id) => id !== null))]
}
