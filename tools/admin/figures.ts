import { z } from 'zod'
import { usdOfMicros } from '../../policies/usd.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { railIds } from '../../src/providers/rail-controls/port.ts'
import { latestOrDollars } from '../../src/providers/rates/port.ts'
import {
  type Figures,
  MAX_COUNTED_DECISIONS,
  queueNames,
  readFigures,
  type Volume,
} from '../../src/records/gauges/read-figures.ts'

const volume = z.strictObject({
  usd: z.string().describe('USD that moved or is held to move.'),
  count: z.int().describe('Movements.'),
})

export default defineTool({
  name: 'admin.figures',
  title: 'Figures',
  summary: 'Read the volume of each rail, refusals by rule, the card float and the age of every queue.',
  description: `Spends that failed or came back are not counted. Volume and refusals count the newest ${MAX_COUNTED_DECISIONS.toLocaleString('en')} decisions at most.`,
  route: 'GET /api/admin/figures',
  who: 'admin',
  effect: 'read',
  proof: 'step-up',
  input: z.strictObject({}),
  output: z.strictObject({
    asOf: z.string().describe('Time of the figures, ISO 8601 UTC.'),
    volume: z
      .array(
        z.strictObject({
          rail: z.enum(railIds).describe('Rail.'),
          day: volume.describe('The last 24 hours.'),
          week: volume.describe('The last seven days.'),
        }),
      )
      .describe('Every rail with what it moved.'),
    refusals: z
      .array(
        z.strictObject({
          rule: z.string().describe('Violated rule, such as `daily_budget`, or `insufficient_funds`.'),
          day: z.int().describe('In the last 24 hours.'),
          week: z.int().describe('In the last seven days.'),
        }),
      )
      .describe('Rules that refused spends, the most first.'),
    cardFloat: z
      .strictObject({
        usd: z.string().describe('USD of all accounts.'),
        largest: z.string().describe('USD of the account with the most.'),
        limit: z.string().describe('USD that each account may have.'),
        accounts: z.int().describe('Accounts with such a promise.'),
      })
      .describe('Promises of cards on wallets that their owners can empty.'),
    queues: z
      .array(
        z.strictObject({
          queue: z.enum(queueNames).describe('Kind of the items.'),
          waiting: z.int().describe('Items that wait.'),
          oldestAt: z.string().nullable().describe('Start of the longest wait; null if nothing waits.'),
        }),
      )
      .describe('Queues: first those that wait for a person.'),
  }),
  failures: [],
  example: {},
  run: async ({ database, rates, settings, now }) => {
    const figures = await readFigures(database, await latestOrDollars(rates, now), now)
    return { asOf: now.toISOString(), ...viewFigures(figures, settings.cardFloatMicros) }
  },
})

function viewFigures({ volume: moved, refusals, float, queues }: Figures, floatLimit: bigint) {
  const viewVolume = ({ micros, count }: Volume) => ({ usd: usdOfMicros(micros), count })
  return {
    volume: moved.map(({ rail, day, week }) => ({ rail, day: viewVolume(day), week: viewVolume(week) })),
    refusals: [...refusals],
    cardFloat: {
      usd: usdOfMicros(float.micros),
      largest: usdOfMicros(float.largest),
      limit: usdOfMicros(floatLimit),
      accounts: float.accounts,
    },
    queues: queues.map(({ queue, waiting, oldestAt }) => ({
      queue,
      waiting,
      oldestAt: oldestAt?.toISOString() ?? null,
    })),
  }
}
