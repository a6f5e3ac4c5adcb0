/** A new virtual account, or the one that is there already. */
import { z } from 'zod'
import { mayBank } from '../../policies/banking/kyc-gate.ts'
import { Failure } from '../failure.ts'
import { foreignText } from '../foreign-text.ts'
import type { NewId } from '../ids.ts'
import { stablecoins } from '../money.ts'
import { type BankCurrency, type BankingProvider, bankCurrencies } from '../providers/banking.ts'
import type { Connection } from '../storage/database.ts'
import {
  type Destination,
  findCustomer,
  insertVirtualAccount,
  instructionsView,
  lockVirtualAccounts,
  type VirtualAccount,
} from './store.ts'

/** A virtual account as its owner sees it. */
export const virtualAccountView = z.strictObject({
  id: z.string().describe('`va_…`'),
  currency: z.enum(bankCurrencies).describe('What it takes.'),
  status: z.enum(['pending', 'active', 'deactivated']).describe('Only an `active` one takes money.'),
  accountHolderName: foreignText('Whose account a payer sees.'),
  bankName: foreignText('Name of the bank.'),
  bankAddress: foreignText('Address of the bank.'),
  instructions: instructionsView,
  reference: z.string().describe('What to write beside a payment.'),
  destination: z
    .strictObject({
      token: z.enum(stablecoins).describe('Stablecoin by symbol.'),
      chain: z.string().describe('Chain by name.'),
      address: z.string().describe('EVM address: the wallet.'),
    })
    .nullable()
    .describe('What deposits become; null: they stay cash.'),
  createdAt: z.string().describe('When it was opened, ISO 8601 UTC.'),
})

/** A virtual account as it is shown. */
export function viewVirtualAccount(account: VirtualAccount): z.output<typeof virtualAccountView> {
  const { id, currency, status, bankName, bankAddress, instructions, reference, destination } = account
  return {
    id,
    currency,
    status,
    accountHolderName: account.holderName,
    bankName,
    bankAddress,
    instructions,
    reference,
    destination: destination === null ? null : { ...destination },
    createdAt: account.createdAt.toISOString(),
  }
}

/**
 * Opens a virtual account, within the transaction of its database. Where the account has as many of the currency as it may,
 * its first one is answered.
 * @throws Failure `kyc_required`, `provider_unavailable`.
 */
export async function openVirtualAccount(
  {
    database,
    bankingProvider,
    newId,
    settings,
  }: {
    database: Connection
    bankingProvider: Pick<BankingProvider, 'open'>
    newId: NewId
    settings: { readonly mode: 'sandbox' | 'production'; readonly accountsPerCurrency: number }
  },
  {
    holder,
    currency,
    destination,
    at,
  }: {
    holder: { readonly id: string; readonly displayName: string; readonly kycLevel: string }
    currency: BankCurrency
    destination: Destination | null
    at: Date
  },
): Promise<VirtualAccount> {
  if (!mayBank({ mode: settings.mode, kycLevel: holder.kycLevel }))
    throw new Failure('kyc_required', 'A bank account needs identity verification first.', {
      hint: 'POST /api/compliance/kyc, then send this request again.',
    })
  const there = await lockVirtualAccounts(database, { accountId: holder.id, currency })
  const [first] = there
  if (first !== undefined && there.length >= settings.accountsPerCurrency) return first
  const id = newId('va', at)
  const customer = await findCustomer(database, holder.id)
  const opened = await bankingProvider.open({
    id,
    currency,
    holder: { accountId: holder.id, name: holder.displayName, customer },
    destination,
  })
  const account: VirtualAccount = {
    ...opened,
    id,
    accountId: holder.id,
    currency,
    ordinal: there.length,
    holderName: holder.displayName,
    instructions: instructionsView.parse(opened.instructions),
    // Short enough for every rail, and without letters that are mistaken for each other.
    reference: `BRS${id.slice(-10).toUpperCase()}`,
    destination,
    createdAt: at,
  }
  await insertVirtualAccount(database, account)
  return account
}
