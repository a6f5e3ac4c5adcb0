/** Members shared by transfer requests and transfer intents. */
import { isAddress, zeroAddress } from 'viem'
import { z } from 'zod'
import { readContactName } from '../../../../policies/contact-names.ts'
import { chainInput } from '../../../core/money/chains.ts'
import {
  amountMismatch,
  decimalAmount,
  type Money,
  type Stablecoin,
  stablecoins,
  toDecimal,
  toMoney,
} from '../../../core/money/money.ts'
import type { Address } from '../../../providers/chain/port.ts'

/** Hint for an address whose EIP-55 checksum is wrong. Money to a mistyped address is lost. */
const CHECKSUM_HINT =
  'The address is mistyped or was changed. Ask the payee for it again and send it as given: never change its letters or their case.'

const WRONG_CHECKSUM =
  'has a wrong EIP-55 checksum: at least one character, or the case of a letter, is not as the payee wrote it'

/** An EVM address. In mixed case it carries a checksum, which must be right. @see https://eips.ethereum.org/EIPS/eip-55 */
export const evmAddress = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/, { error: 'must be an EVM address: 0x and 40 hex digits', abort: true })
  .refine((text) => text !== zeroAddress, { error: 'must not be the zero address', abort: true })
  .refine((text): text is Address => isAddress(text), {
    error: WRONG_CHECKSUM,
    params: { hint: CHECKSUM_HINT },
  })
  .meta({ id: 'EvmAddress' })

/** An EVM address. A caller may send `contact:NAME`, which is an address before it is decoded, unless nothing resolved it. */
export const payeeAddress = z
  .string()
  .max(120)
  .regex(/^(0x[0-9a-fA-F]{40}|contact:.+)$/, {
    error: 'must be an EVM address: 0x and 40 hex digits, or contact:NAME',
    abort: true,
  })
  .refine((text) => readContactName(text) === null, { error: 'names no contact here', abort: true })
  .refine((text) => text !== zeroAddress, { error: 'must not be the zero address', abort: true })
  .refine((text): text is Address => isAddress(text), {
    error: WRONG_CHECKSUM,
    params: { hint: CHECKSUM_HINT },
  })
  .meta({ id: 'Payee' })

/** Spec 2.4 without the signature. */
export const transferMembers = {
  safeAddress: evmAddress
    .optional()
    .describe('Paying wallet. Default: the account’s own wallet, which is the only accepted value.'),
  destination: payeeAddress.describe('EVM address of the payee, or `contact:NAME`.'),
  amount: decimalAmount.describe('Decimal of the token, at most 6 fraction digits.'),
  token: z.enum(stablecoins).default('USDC').describe('Stablecoin by symbol.'),
  chain: chainInput.optional().describe('Default: the first of this deployment.'),
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
  const money = { asset: request.token, units: toMoney(request.token, request.amount).units }
  return { ...request, amount: toDecimal(money), money }
}
