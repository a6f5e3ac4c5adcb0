import { z } from 'zod'
import { stablecoins, toDecimal } from '../../src/core/money/money.ts'
import { requireCaller } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { latestOrDollars } from '../../src/providers/rates/port.ts'
import { type PurseBalance, readPurseBalances } from '../../src/rails/buying/purse-books.ts'
import { formatWorth, showWallet } from '../../src/rails/wallets/show-wallet.ts'

const walletModule = z.strictObject({
  name: z.string().describe('Name of the module.'),
  address: z.string().describe('EVM address of the module.'),
  type: z.string().describe('Type of the module, such as `erc4337`.'),
  version: z.string().describe('Version of the module.'),
  chain: z.string().describe('Chain by name.'),
  status: z
    .enum(['active', 'pending_deployment'])
    .describe('`pending_deployment` until the first operation deploys the wallet.'),
})
walletModule.register(z.globalRegistry, { id: 'WalletModule' })

const balance = z.strictObject({
  token: z.enum(stablecoins).describe('Stablecoin by symbol.'),
  amount: z.string().describe('Spendable amount, as a decimal string of the token.'),
  held: z.string().describe('Amount reserved for pending operations, as a decimal string of the token.'),
  usd: z.string().nullable().describe('Worth of both in USD.'),
  shortfall: z
    .string()
    .optional()
    .describe(
      'Amount that is booked but missing on the chain and cannot be spent, as a decimal string; absent if zero.',
    ),
  chain: z.string().describe('Chain by name.'),
})
balance.register(z.globalRegistry, { id: 'Balance' })

export default defineTool({
  name: 'wallets.get',
  title: 'Wallet',
  summary: 'Read the wallet: its address, modules and stablecoin balances.',
  description:
    'Use it before a transfer, or for the address that others pay to. `amount` can be spent now; `held` is reserved for pending payments.',
  restDescription: 'Amounts are decimal strings of the token ("12.5" USDC is twelve and a half).',
  route: 'GET /api/wallets',
  who: 'account',
  scopes: ['wallets:read'],
  role: 'accountant',
  effect: 'read',
  mcp: true,
  input: z.strictObject({}),
  output: z.strictObject({
    safeAddress: z.string().describe('EVM address of the wallet (a Safe), the same on every chain.'),
    modules: z
      .array(walletModule)
      .describe('Modules of the wallet on each chain that answers, read from the Safe itself.'),
    balances: z.array(balance).describe('One entry per stablecoin and chain.'),
    purse: z
      .array(
        z.strictObject({
          agentId: z.string().nullable().describe('`key_…`; null for people.'),
          asset: z.string().describe('Stablecoin by symbol.'),
          amount: z.string().describe('Amount, including what is held.'),
          usd: z.string().nullable().describe('Worth in USD.'),
        }),
      )
      .describe('Money set aside for purchases of paid URLs.'),
    escrow: z
      .array(
        z.strictObject({
          asset: z.string().describe('Stablecoin by symbol.'),
          amount: z.string().describe('Amount, including what is held.'),
          usd: z.string().nullable().describe('Worth in USD.'),
        }),
      )
      .describe('Money behind card purchases; the rest returns.'),
  }),
  failures: ['not_found'],
  run: async (context) => {
    const accountId = requireCaller(context).account.id
    const [{ safeAddress, modules, balances, escrow }, purses, table] = await Promise.all([
      showWallet(context, accountId),
      readPurseBalances(context.database, accountId),
      latestOrDollars(context.rates, context.now),
    ])
    const purse = sumPurses(purses).map(({ agentId, ...money }) => ({
      agentId,
      asset: money.asset,
      amount: toDecimal(money),
      usd: formatWorth(table, money),
    }))
    return { safeAddress, modules: [...modules], balances: [...balances], purse, escrow: [...escrow] }
  },
})

/** Sums the purses of each agent by asset: some of its purchases have one of their own. */
function sumPurses(purses: readonly PurseBalance[]) {
  const sums = new Map<string, Pick<PurseBalance, 'agentId' | 'asset'> & { units: bigint }>()
  for (const { agentId, asset, available, held } of purses) {
    const name = `${agentId} ${asset}`
    const units = (sums.get(name)?.units ?? 0n) + available + held
    sums.set(name, { agentId, asset, units })
  }
  return [...sums.values()]
}
