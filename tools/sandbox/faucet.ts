import { isAddress } from 'viem'
import { z } from 'zod'
import { defineTool } from '../../src/kernel/tool.ts'
import { amountMismatch, decimalAmount, decimalOf, moneyOf, stablecoins } from '../../src/money/money.ts'
import type { Address } from '../../src/providers/chain.ts'
import { bookDeposit } from '../../src/wallets/open-wallet.ts'
import { mintOwed, recordOwedMints } from '../../src/wallets/reconcile/owed-mints.ts'
import { findWalletOwner } from '../../src/wallets/store.ts'

/** Maximum amount in whole tokens, far below what a database column holds. */
const MAX_AMOUNT = 1_000_000n

export default defineTool({
  name: 'sandbox.faucet',
  title: 'Faucet',
  summary: 'Mint sandbox stablecoins to any address; wallets of the gateway are credited at once.',
  route: 'POST /sandbox/faucet',
  who: 'public',
  scopes: [],
  effect: 'write',
  mcp: false,
  only: 'sandbox',
  input: z
    .strictObject({
      address: z
        .string()
        .refine((text): text is Address => isAddress(text), { error: 'must be an EVM address' })
        .describe('EVM address that receives the tokens.'),
      token: z.enum(stablecoins).default('USDC').describe('Stablecoin by symbol.'),
      amount: decimalAmount.describe('Amount as a decimal of the token; at most 1000000.'),
    })
    .superRefine(({ amount, token }, context) => {
      const misfit = amountMismatch(amount, token)
      if (misfit !== undefined) context.addIssue({ code: 'custom', path: ['amount'], message: misfit })
      else if (moneyOf(token, amount).units > MAX_AMOUNT * 1_000_000n)
        context.addIssue({ code: 'custom', path: ['amount'], message: `must not be over ${MAX_AMOUNT}` })
    }),
  output: z.strictObject({
    address: z.string().describe('EVM address that received the tokens.'),
    token: z.enum(stablecoins).describe('Stablecoin by symbol.'),
    amount: z.string().describe('Minted amount, as a decimal string.'),
  }),
  failures: ['provider_unavailable'],
  example: { address: '0x000000000000000000000000000000000000dEaD', token: 'USDC', amount: '25' },
  run: async (context, { address, token, amount }) => {
    const money = { asset: token, units: moneyOf(token, amount).units }
    const owner = await findWalletOwner(context.database, address)
    const mint = { token, to: address, units: money.units }
    if (owner === undefined) context.afterCommit(() => context.chain.mint([mint]))
    else {
      const credit = { accountId: owner, at: context.now }
      await bookDeposit(context, { ...credit, funds: [money], reference: 'faucet' })
      const owed = await recordOwedMints(context, { ...credit, mints: [mint] })
      context.afterCommit(() => mintOwed(context, owed))
    }
    return { address, token, amount: decimalOf(money) }
  },
})
