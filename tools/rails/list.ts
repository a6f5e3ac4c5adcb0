import { z } from 'zod'
import { defineTool } from '../../src/kernel/tool.ts'
import { railIds } from '../../src/providers/rail-controls.ts'
import { describeRails, readRailStatus } from '../../src/rails/rails.ts'

const rail = z.strictObject({
  id: z.enum(railIds).describe('The rail.'),
  kind: z.enum(['onchain', 'x402', 'brokerage', 'card', 'bank']).describe('What it runs on.'),
  directions: z.array(z.enum(['in', 'out'])).describe('Whether money comes in by it or goes out.'),
  currencies: z.array(z.string()).describe('ISO 4217 currencies that it moves.'),
  tokens: z.array(z.string()).describe('Stablecoins that it moves, by symbol.'),
  chains: z.array(z.string()).describe('Chains that it runs on, by name.'),
  status: z
    .enum(['enabled', 'disabled', 'unknown'])
    .describe('`unknown` while its control cannot be read; nothing moves then.'),
  mode: z.enum(['sandbox', 'live']).describe('`sandbox`: no real money.'),
  min: z.string().nullable().describe('Smallest amount, as a decimal; null: none of its own.'),
  max: z.string().nullable().describe('Largest amount, as a decimal; null: none of its own.'),
  fees: z
    .array(z.strictObject({ name: z.string(), amount: z.string(), asset: z.string() }))
    .describe('What is taken above the amount.'),
  settlementTime: z.string().describe('How long it usually takes, as an ISO 8601 duration.'),
  reason: z.string().nullable().describe('Why it is off or not known, for people.'),
})

export default defineTool({
  name: 'rails.list',
  title: 'Rails',
  summary: 'Read which ways of moving money there are, and which are on.',
  route: 'GET /api/rails',
  who: 'public',
  scopes: [],
  effect: 'read',
  mcp: true,
  rate: 'rails',
  input: z.strictObject({}),
  output: z.strictObject({
    rails: z.array(rail).describe('Every rail of this deployment.'),
    asOf: z.string().describe('When this was read, ISO 8601 UTC.'),
  }),
  failures: [],
  example: {},
  run: async ({ railControls, chain, settings, now }) => {
    const rails = describeRails({ chain: chain.name, fxPrice: settings.fxPrice })
    const mode = settings.mode === 'sandbox' ? ('sandbox' as const) : ('live' as const)
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
          ...(await readRailStatus(railControls, rail.id)),
        })),
      ),
      asOf: now.toISOString(),
    }
  },
})
