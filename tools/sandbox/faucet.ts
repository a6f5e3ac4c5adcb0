import { isAddress } from 'viem'
import { z } from 'zod'
import { chainInput } from '../../src/core/money/chains.ts'
import {
  amountMismatch,
  decimalAmount,
  decimalOf,
  type Money,
  moneyOf,
  stablecoins,
} from '../../src/core/money/money.ts'
import { type Context, requirePerson } from '../../src/kernel/context.ts'
import { countRequest, requireWithinLimit } from '../../src/kernel/gates/rate.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { onChain } from '../../src/providers/chain/chains.ts'
import { type Address, type Mint, tokenAddress } from '../../src/providers/chain/port.ts'
import { bookDeposit, demoFunds } from '../../src/rails/wallets/open-wallet.ts'
import { mintOwed, type OwedMint, recordOwedMints } from '../../src/rails/wallets/reconcile/owed-mints.ts'
import { findWallet, findWalletOwner } from '../../src/rails/wallets/store.ts'

/** Maximum amount in whole tokens, far below what a database column holds. */
const MAX_AMOUNT = 1_000_000n

export default defineTool({
  name: 'sandbox.faucet',
  title: 'Faucet',
  summary: 'Mint sandbox stablecoins to any address; wallets of the gateway are credited at once.',
  description:
    'Send `address` and `amount`; or, with a session, an empty object, which funds your own wallet like a guest’s, once an hour.',
  route: 'POST /sandbox/faucet',
  who: 'public',
  effect: 'write',
  proof: 'none',
  only: 'sandbox',
  ownTransactions: true,
  input: z
    .strictObject({
      address: z
        .string()
        .max(42)
        .refine((text): text is Address => isAddress(text), { error: 'must be an EVM address' })
        .optional()
        .describe('EVM address that receives the tokens; by default the wallet of the session.'),
      token: z.enum(stablecoins).optional().describe('Stablecoin by symbol; `USDC` by default.'),
      amount: decimalAmount.optional().describe('Amount as a decimal of the token; at most 1000000.'),
      chain: chainInput.optional().describe('Default: the first of this deployment.'),
    })
    .superRefine(({ address, amount, token = 'USDC' }, context) => {
      if (amount === undefined) {
        if (address !== undefined || token !== 'USDC')
          context.addIssue({
            code: 'custom',
            path: ['amount'],
            message: 'is required with an address or a token',
          })
        return
      }
      if (address === undefined)
        context.addIssue({ code: 'custom', path: ['address'], message: 'is required with an amount' })
      const misfit = amountMismatch(amount, token)
      if (misfit !== undefined) context.addIssue({ code: 'custom', path: ['amount'], message: misfit })
      else if (moneyOf(token, amount).units > MAX_AMOUNT * 1_000_000n)
        context.addIssue({ code: 'custom', path: ['amount'], message: `must not be over ${MAX_AMOUNT}` })
    }),
  output: z.strictObject({
    address: z.string().describe('EVM address that received the tokens.'),
    chain: z.string().describe('Chain by name.'),
    token: z.enum(stablecoins).describe('Stablecoin by symbol; of several the first.'),
    amount: z.string().describe('Minted amount of `token`, as a decimal string.'),
    funds: z
      .array(
        z.strictObject({
          token: z.enum(stablecoins).describe('Stablecoin by symbol.'),
          amount: z.string().describe('Minted amount, as a decimal string.'),
        }),
      )
      .describe('Everything that was minted.'),
  }),
  failures: ['unauthenticated', 'rate_limited', 'chain_not_supported', 'provider_unavailable'],
  example: { address: '0x000000000000000000000000000000000000dEaD', token: 'USDC', amount: '25' },
  chain: (context, { chain }) => onChain(context, chain),
  run: async (context, { address, token = 'USDC', amount }) => {
    tokenAddress(context.chain, token)
    const funds =
      amount === undefined
        ? demoFunds.filter(({ asset }) => context.chain.tokens[asset] !== undefined)
        : [{ asset: token, units: moneyOf(token, amount).units }]
    const to = address ?? (await ownWallet(context))
    const mints = funds.map(({ asset, units }) => ({ token: asset, to, units }))
    const accountId = await findWalletOwner(context.database, to)
    if (accountId === undefined) context.afterCommit(() => context.chain.mint(mints))
    else {
      const owed = await credit(context, { accountId, funds, mints })
      context.afterCommit(() => mintOwed(context, owed))
    }
    const minted = funds.map((money) => ({ token: money.asset, amount: decimalOf(money) }))
    return {
      address: to,
      chain: context.chain.name,
      token: funds[0]?.asset ?? token,
      amount: minted[0]?.amount ?? '0',
      funds: minted,
    }
  },
})

/** Wallet of the session, once in the window. @throws Failure `unauthenticated`, `rate_limited`, `provider_unavailable`. */
async function ownWallet(context: Context): Promise<Address> {
  if (context.refusal) throw context.refusal
  const { id } = requirePerson(context).account
  const address = await findWallet(context.database, id)
  if (address === undefined) throw new Error(`account ${id} has no wallet`)
  const reading = await countRequest(context, {
    rateClass: 'funding',
    client: id,
    now: context.now,
    failClosed: true,
    restarts: false,
  })
  if (reading !== null) requireWithinLimit(reading)
  return address
}

/** Books the funds as a deposit, with the mints that are owed for it. */
function credit(
  context: Context,
  { accountId, funds, mints }: { accountId: string; funds: readonly Money[]; mints: readonly Mint[] },
): Promise<OwedMint[]> {
  return context.database.transaction(async (database) => {
    const inside = { ...context, database }
    await bookDeposit(inside, { accountId, funds, reference: 'faucet', at: context.now })
    return recordOwedMints(inside, { accountId, mints, at: context.now })
  })
}
