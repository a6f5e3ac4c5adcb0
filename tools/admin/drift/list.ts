import { z } from 'zod'
import { defineTool } from '../../../src/kernel/tool.ts'
import { decimalOf, stablecoins } from '../../../src/money.ts'
import { findDrifts } from '../../../src/wallets/reconcile.ts'

export default defineTool({
  name: 'admin.drift.list',
  title: 'Drift',
  summary: 'Read which wallets have something else on the chain than in the books.',
  description:
    'Wallets are compared in turns, and those with a transfer under way are left out. A surplus that stays is credited as a deposit within seconds; what stays here is missing on the chain. The 200 that were seen last.',
  route: 'GET /api/admin/drift',
  who: 'admin',
  scopes: [],
  effect: 'read',
  stepUp: true,
  mcp: false,
  input: z.strictObject({}),
  output: z.strictObject({
    drifts: z
      .array(
        z.strictObject({
          accountId: z.string().describe('`acct_…`'),
          safeAddress: z.string().describe('EVM address of the wallet.'),
          token: z.enum(stablecoins).describe('Stablecoin by symbol.'),
          booked: z.string().describe('What the books say, as a decimal string.'),
          onChain: z.string().describe('What the chain says, as a decimal string.'),
          firstSeenAt: z.string().describe('Since when, ISO 8601 UTC.'),
          lastSeenAt: z.string().describe('When it was compared last, ISO 8601 UTC.'),
        }),
      )
      .describe('Empty while ledger and chain agree.'),
  }),
  failures: [],
  example: {},
  run: async ({ database }) => ({
    drifts: (await findDrifts(database)).map(({ token, booked, onChain, ...drift }) => ({
      accountId: drift.accountId,
      safeAddress: drift.address,
      token,
      booked: decimalOf({ asset: token, units: booked }),
      onChain: decimalOf({ asset: token, units: onChain }),
      firstSeenAt: drift.firstSeenAt.toISOString(),
      lastSeenAt: drift.lastSeenAt.toISOString(),
    })),
  }),
})
