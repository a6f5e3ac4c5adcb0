/** The members of a request for a transfer: the same for the transfer and for the intent that is signed first. */
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

/** An EVM address other than zero. */
export const evmAddress = z
  .string()
  .refine((text): text is Address => isAddress(text) && text !== zeroAddress, {
    error:
      'must be an EVM address: 0x and 40 hex digits, with a right checksum where its case is mixed, and not the zero address',
  })

/** Spec 2.4 without the signature. */
export const transferMembers = {
  safeAddress: evmAddress
    .optional()
    .describe('The wallet that pays. Absent: the account’s own, the only one it can be.'),
  destination: evmAddress.describe('EVM address that is paid.'),
  amount: decimalAmount.describe(
    'How much, as a decimal string or number of the token; at most 6 fraction digits.',
  ),
  token: z.enum(stablecoins).default('USDC').describe('Stablecoin by symbol.'),
  chain: z.string().min(1).max(40).default('base-sepolia').describe('Chain by name.'),
}

/** Adds an issue where the amount does not fit the token. */
export function refineAmount(
  { amount, token }: { amount: string; token: Stablecoin },
  context: z.core.$RefinementCtx,
): void {
  const misfit = amountMismatch(amount, token)
  if (misfit !== undefined) context.addIssue({ code: 'custom', path: ['amount'], message: misfit })
}

/** The request with its amount as money, and as that money's shortest decimal: `1.0` asks for the same as `1`. */
export function withParsedAmount<Request extends { amount: string; token: Stablecoin }>(
  request: Request,
): Request & { readonly money: Money & { readonly asset: Stablecoin } } {
  const money = { asset: request.token, units: moneyOf(request.token, request.amount).units }
  return { ...request, amount: decimalOf(money), money }
}
