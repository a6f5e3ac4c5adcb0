import { z } from 'zod'
import { Failure } from '../../src/core/failures/failure.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { railIds } from '../../src/providers/rail-controls/port.ts'
import type { Rates } from '../../src/providers/rates/port.ts'
import { describeRails, describeUptoLimit, type RailStatus, readRailStatus } from '../../src/rails/rails.ts'
import { toAgeSeconds } from '../../src/rails/selling/payments/fx-quote.ts'

const rail = z.strictObject({
  id: z.enum(railIds).describe('Id of the rail.'),
  kind: z.enum(['onchain', 'x402', 'brokerage', 'card', 'bank']).describe('Network of the rail.'),
  directions: z.array(z.enum(['in', 'out'])).describe('Directions of money on the rail.'),
  currencies: z.array(z.string()).describe('Supported ISO 4217 currencies.'),
  tokens: z.array(z.string()).describe('Supported stablecoins, by symbol.'),
  chains: z.array(z.string()).describe('Supported chains, by name.'),
  status: z
    .enum(['enabled', 'disabled', 'unknown'])
    .describe('State of the rail; `unknown` while its control cannot be read, which stops all movements.'),
  mode: z.enum(['sandbox', 'live']).describe('`sandbox`: no real money.'),
  min: z.string().nullable().describe('Minimum amount, as a decimal; null: no limit of its own.'),
  max: z.string().nullable().describe('Maximum amount, as a decimal; null: no limit of its own.'),
  fees: z
    .array(
      z.strictObject({
        name: z.string(),
        amount: z.string(),
        asset: z.string(),
        currency: z.string().nullable().describe('Currency that arrives; null: any.'),
        spreadBps: z.int().describe('Besides, basis points of the conversion.'),
      }),
    )
    .describe('Fees of a payment; a payout’s is within its amount.'),
  settlementTime: z.string().describe('Usual settlement time, as an ISO 8601 duration.'),
  reason: z.string().nullable().describe('Why it is disabled, unknown or limited.'),
})
rail.register(z.globalRegistry, { id: 'Rail' })

export default defineTool({
  name: 'rails.list',
  title: 'Rails',
  summary: 'List the rails for moving money, with their state, limits and fees.',
  description:
    'Use it after `rail_disabled`, or for fees. Nothing moves on a rail that is `disabled` or `unknown`.',
  route: 'GET /api/rails',
  who: 'public',
  effect: 'read',
  mcp: true,
  rate: 'rails',
  input: z.strictObject({}),
  output: z.strictObject({
    rails: z.array(rail).describe('Every rail of this deployment.'),
    fxRates: z
      .strictObject({
        source: z.string().describe('Publisher of the reference rates.'),
        asOf: z.string().describe('When they were published, ISO 8601 UTC.'),
        ageSec: z.int().describe('Their age in seconds.'),
      })
      .nullable()
      .describe('Rates that the FX quote is made from; null while there are none.'),
    asOf: z.string().describe('Time of the answer, ISO 8601 UTC.'),
  }),
  failures: [],
  example: {},
  run: async ({ railControls, chains, settings, bankingProvider, rates, now }) => {
    const { payoutFees } = bankingProvider
    const rails = describeRails({ chains, fxPrice: settings.fxPrice, payoutFees })
    const mode = settings.mode === 'sandbox' ? ('sandbox' as const) : ('live' as const)
    const uptoLimit = await describeUptoLimit(chains.all)
    return {
      rails: await Promise.all(
        rails.map(async ({ directions, currencies, tokens, chains, fees, ...rail }) => ({
          ...rail,
          directions: [...directions],
          currencies: [...currencies],
          tokens: [...tokens],
          chains: [...chains],
          fees: [...fees],
          mode,
          ...withLimit(await readRailStatus(railControls, rail.id), rail.kind === 'x402' ? uptoLimit : null),
        })),
      ),
      fxRates: await showRates(rates, now),
      asOf: now.toISOString(),
    }
  },
})

function withLimit({ status, reason }: RailStatus, limit: string | null): RailStatus {
  return { status, reason: reason ?? (status === 'enabled' ? limit : null) }
}

async function showRates(rates: Rates, now: Date) {
  try {
    const table = await rates.latest(now)
    return { source: table.source, asOf: table.asOf.toISOString(), ageSec: toAgeSeconds(table, now) }
  } catch (error) {
    if (error instanceof Failure && error.code === 'rates_unavailable') return null
    throw error
  }
}
