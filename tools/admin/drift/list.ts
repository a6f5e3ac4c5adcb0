import { z } from 'zod'
import { stablecoins, toDecimal } from '../../../src/core/money/money.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { findDrifts } from '../../../src/rails/wallets/reconcile/reconcile.ts'
import { findShortfalls } from '../../../src/rails/wallets/reconcile/shortfall.ts'

const walletMembers = {
  accountId: z.string().describe('`acct_…`'),
  safeAddress: z.string().describe('EVM address of the wallet.'),
  chain: z.string().describe('Chain by name.'),
  token: z.enum(stablecoins).describe('Stablecoin by symbol.'),
}

export default defineTool({
  name: 'admin.drift.list',
  title: 'Drift',
  summary: 'List the wallets whose balance on the chain differs from the books.',
  description:
    'Wallets are compared in turn; pending transfers explain a difference up to their amounts. Deposits are credited from their logs within seconds. Money missing on the chain is frozen and listed under `shortfalls` until the chain holds it again. Returns the 200 latest of each.',
  route: 'GET /api/admin/drift',
  who: 'admin',
  effect: 'read',
  proof: 'step-up',
  input: z.strictObject({}),
  output: z.strictObject({
    drifts: z
      .array(
        z.strictObject({
          ...walletMembers,
          booked: z.string().describe('Booked balance, as a decimal string.'),
          onChain: z.string().describe('Balance on the chain, as a decimal string.'),
          firstSeenAt: z.string().describe('When the difference was first seen, ISO 8601 UTC.'),
          lastSeenAt: z.string().describe('When the difference was last seen, ISO 8601 UTC.'),
        }),
      )
      .describe('Open differences; empty while ledger and chain agree.'),
    shortfalls: z
      .array(
        z.strictObject({
          ...walletMembers,
          frozen: z.string().describe('Amount frozen out of the spendable balance, as a decimal string.'),
          uncovered: z
            .string()
            .describe('Amount held for pending spends but missing on the chain, as a decimal string.'),
          firstSeenAt: z.string().describe('When the shortfall was first seen, ISO 8601 UTC.'),
        }),
      )
      .describe('Booked money that the chain no longer holds.'),
  }),
  failures: [],
  example: {},
  run: async ({ database }) => ({
    drifts: (await findDrifts(database)).map(({ token, booked, onChain, ...drift }) => ({
      accountId: drift.accountId,
      safeAddress: drift.address,
      chain: drift.chain,
      token,
      booked: toDecimal({ asset: token, units: booked }),
      onChain: toDecimal({ asset: token, units: onChain }),
      firstSeenAt: drift.firstSeenAt.toISOString(),
      lastSeenAt: drift.lastSeenAt.toISOString(),
    })),
    shortfalls: (await findShortfalls(database)).map(({ token, frozen, uncovered, ...shortfall }) => ({
      accountId: shortfall.accountId,
      safeAddress: shortfall.address,
      chain: shortfall.chain,
      token,
      frozen: toDecimal({ asset: token, units: frozen }),
      uncovered: toDecimal({ asset: token, units: uncovered }),
      firstSeenAt: shortfall.firstSeenAt.toISOString(),
    })),
  }),
})
