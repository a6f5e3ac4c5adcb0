/** Members shared by transfer requests and transfer intents. */
import { isAddress, zeroAddress } from 'viem'
import { z } from 'zod'
import {
  amountMismatch,
  decimalAmount,
  decimalOf,
  type Money,
  moneyOf,
  type Stablecoin,
  stablecoins,
} from '../../money/money.ts'
import type { Address } from '../../providers/chain.ts'

export const evmAddress = z
  .string()
  .refine((text): text is Address => isAddress(text) && text !== zeroAddress, {
    error:
      'must be an EVM address: 0x and 40 hex digits, with a valid checksum if in mixed case, and not the zero address',
  })

/** Spec 2.4 without the signature. */
export const transferMembers = {
  safeAddress: evmAddress
    .optional()
    .describe('Paying wallet. Default: the account’s own wallet, which is the only accepted value.'),
  destination: evmAddress.describe('EVM address of the payee.'),
  amount: decimalAmount.describe(
    'Amount of the token as a decimal string or number; at most 6 fraction digits.',
  ),
  token: z.enum(stablecoins).default('USDC').describe('Stablecoin by symbol.'),
  chain: z.string().min(1).max(40).default('base-sepolia').describe('Chain by name.'),
}

/** Adds an issue when the amount does not fit the token. */
export function refineAmount(
  { amount, token }: { amount: string; token: Stablecoin },
  context: z.core.$RefinementCtx,
): void {
  const misfit = amountMismatch(amount, token)
  if (misfit !== undefined) context.addIssue({ code: 'custom', path: ['amount'], message: misfit })
}

/** Adds the amount as money and normalizes it to its shortest decimal: `1.0` equals `1`. */
export function withParsedAmount<Request extends { amount: string; token: Stablecoin }>(
  request: Request,
): Request & { readonly money: Money & { readonly asset: Stablecoin } } {
  const money = { asset: request.token, units: moneyOf(request.token, request.amount).units }
  return { ...request, amount: decimalOf(money), money }
}
