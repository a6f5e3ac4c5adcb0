/** Request members that name a bank account, and their validation by scheme. */
import { z } from 'zod'
import { isBic, isIban, isRoutingNumber, isSortCode } from '../../../policies/banking/account-numbers.ts'
import type { BankAccountNumber, PayoutCurrency } from '../../providers/banking/port.ts'

const compact = (text: string) => text.replaceAll(/[\s-]/g, '').toUpperCase()
const number = (max: number) => z.string().max(max).overwrite(compact).optional()

export const accountRequest = z.strictObject({
  routingNumber: number(20).describe('ABA routing number of nine digits, for USD.'),
  accountNumber: number(40).describe('Account number: 4 to 17 digits for USD, eight digits for GBP.'),
  type: z.enum(['checking', 'savings']).optional().describe('Kind of a USD account. Default: `checking`.'),
  iban: number(60).describe('IBAN, for EUR; spaces are ignored.'),
  bic: number(20).describe('BIC of the bank, for EUR; optional.'),
  sortCode: number(20).describe('Sort code of six digits, for GBP.'),
})

type AccountRequest = z.output<typeof accountRequest>
type Member = keyof AccountRequest
const allMembers = accountRequest.keyof().options

/** Members of each scheme. */
const members: Readonly<Record<PayoutCurrency, readonly Member[]>> = {
  USD: ['routingNumber', 'accountNumber', 'type'],
  EUR: ['iban', 'bic'],
  GBP: ['sortCode', 'accountNumber'],
}
const required: Readonly<Record<PayoutCurrency, readonly Member[]>> = {
  USD: ['routingNumber', 'accountNumber'],
  EUR: ['iban'],
  GBP: ['sortCode', 'accountNumber'],
}

/** Lists what is wrong with an account of a currency; empty if it is valid. Messages never hold the number. */
export function accountIssues(
  currency: PayoutCurrency,
  account: AccountRequest,
): readonly { readonly member: Member; readonly message: string }[] {
  const said = allMembers.filter((member) => account[member] !== undefined)
  const misplaced = said
    .filter((member) => !members[currency].includes(member))
    .map((member) => ({ member, message: `is not used for ${currency}` }))
  const missing = required[currency]
    .filter((member) => account[member] === undefined)
    .map((member) => ({ member, message: `is required for ${currency}` }))
  return [...misplaced, ...missing, ...wrongNumbers(currency, account)]
}

function wrongNumbers(
  currency: PayoutCurrency,
  { routingNumber, accountNumber, iban, bic, sortCode }: AccountRequest,
): readonly { readonly member: Member; readonly message: string }[] {
  const accountForm = currency === 'GBP' ? /^\d{8}$/ : /^\d{4,17}$/
  const checks = [
    {
      member: 'routingNumber',
      value: routingNumber,
      isValid: isRoutingNumber,
      what: 'an ABA routing number',
    },
    { member: 'iban', value: iban, isValid: isIban, what: 'an IBAN' },
    { member: 'bic', value: bic, isValid: isBic, what: 'a BIC' },
    { member: 'sortCode', value: sortCode, isValid: isSortCode, what: 'a sort code' },
    {
      member: 'accountNumber',
      value: accountNumber,
      isValid: (text: string) => accountForm.test(text),
      what: currency === 'GBP' ? 'an account number of eight digits' : 'an account number of 4 to 17 digits',
    },
  ] as const
  return checks.flatMap(({ member, value, isValid, what }) =>
    value === undefined || isValid(value) ? [] : [{ member, message: `is not ${what}; check every digit` }],
  )
}

/** The account number of a valid request. @throws Error for an invalid one: a bug. */
export function toAccountNumber(currency: PayoutCurrency, account: AccountRequest): BankAccountNumber {
  const { routingNumber, accountNumber, type = 'checking', iban, bic = null, sortCode } = account
  if (currency === 'EUR' && iban !== undefined) return { scheme: 'iban', iban, bic }
  if (currency === 'GBP' && sortCode !== undefined && accountNumber !== undefined)
    return { scheme: 'uk', sortCode, accountNumber }
  if (currency === 'USD' && routingNumber !== undefined && accountNumber !== undefined)
    return { scheme: 'aba', routingNumber, accountNumber, type }
  throw new Error('the bank account was not validated')
}
