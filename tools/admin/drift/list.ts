import { z } from 'zod'
import { defineTool } from '../../../src/kernel/tool.ts'
import { decimalOf, stablecoins } from '../../../src/money/money.ts'
import { findDrifts } from '../../../src/wallets/reconcile/reconcile.ts'
import { findShortfalls } from '../../../src/wallets/reconcile/shortfall.ts'

export default defineTool({
  name: 'admin.drift.list',
  title: 'Drift',
  summary: 'Read which wallets have something else on the chain than in the books.',
  description:
    'Wallets are compared in turns; pending transfers explain a difference as far as their amounts go. Deposits are credited from their logs within seconds. What the chain lacks is frozen and listed under `shortfalls` until the chain holds it again. The 200 latest of each.',
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
    shortfalls: z
      .array(
        z.strictObject({
          accountId: z.string().describe('`acct_…`'),
          safeAddress: z.string().describe('EVM address of the wallet.'),
          token: z.enum(stablecoins).describe('Stablecoin by symbol.'),
          frozen: z.string().describe('Taken out of the spendable balance, as a decimal string.'),
          uncovered: z
            .string()
            .describe('Held for pending spends without being on the chain, as a decimal string.'),
          firstSeenAt: z.string().describe('Since when, ISO 8601 UTC.'),
        }),
      )
      .describe('Money in the books that the chain no longer holds.'),
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
    shortfalls: (await findShortfalls(database)).map(({ token, frozen, uncovered, ...shortfall }) => ({
      accountId: shortfall.accountId,
      safeAddress: shortfall.address,
      token,
      frozen: decimalOf({ asset: token, units: frozen }),
      uncovered: decimalOf({ asset: token, units: uncovered }),
      firstSeenAt: shortfall.firstSeenAt.toISOString(),
    })),
  }),
})
