/** Opens a virtual account, or returns the existing one. */
import { getAddress } from 'viem'
import { z } from 'zod'
import { canOpenVirtualAccounts } from '../../../policies/banking/kyc-gate.ts'
import type { NewId } from '../../core/base/ids.ts'
import { untrustedText } from '../../core/base/untrusted-text.ts'
import { Failure } from '../../core/failures/failure.ts'
import { stablecoins } from '../../core/money/money.ts'
import { type BankCurrency, type BankingProvider, bankCurrencies } from '../../providers/banking/port.ts'
import type { Connection, Database } from '../../storage/database.ts'
import {
  type AccountOrder,
  endAccountOrder,
  findOpenAccountOrder,
  forgetAccountOrder,
  insertAccountOrder,
} from './order-account.ts'
import {
  type Destination,
  findCustomer,
  findVirtualAccount,
  insertVirtualAccount,
  instructionsView,
  lockOrders,
  readVirtualAccounts,
  type VirtualAccount,
} from './store.ts'

export const virtualAccountView = z.strictObject({
  id: z.string().describe('`va_…`'),
  currency: z.enum(bankCurrencies).describe('Currency of its deposits.'),
  status: z
    .enum(['pending', 'active', 'deactivated'])
    .describe('Only an `active` account receives deposits.'),
  accountHolderName: untrustedText('Account holder shown to payers.'),
  bankName: untrustedText('Name of the bank.'),
  bankAddress: untrustedText('Address of the bank.'),
  instructions: instructionsView,
  reference: z.string().describe('Payment reference for payers.'),
  destination: z
    .strictObject({
      token: z.enum(stablecoins).describe('Stablecoin by symbol.'),
      chain: z.string().describe('Chain by name.'),
      address: z.string().describe('EVM address: the wallet.'),
    })
    .nullable()
    .describe('Wallet and token that deposits are converted to; null: they stay cash.'),
  createdAt: z.string().describe('When it was opened, ISO 8601 UTC.'),
})
virtualAccountView.register(z.globalRegistry, { id: 'VirtualAccount' })

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
    destination: destination === null ? null : { ...destination, address: getAddress(destination.address) },
    createdAt: account.createdAt.toISOString(),
  }
}

interface Holder {
  readonly id: string
  readonly displayName: string
  readonly kycLevel: string
}

/** Result of ordering: an existing account or an open order. */
export type OrderedAccount =
  | { readonly kind: 'there'; readonly account: VirtualAccount }
  | { readonly kind: 'ordered'; readonly order: AccountOrder }

/**
 * Orders a virtual account, within the caller's transaction. At the maximum number of accounts per currency, returns
 * the first one; a deactivated account is replaced.
 * @throws Failure `kyc_required`.
 */
export async function orderVirtualAccount(
  {
    database,
    newId,
    settings,
  }: {
    database: Connection
    newId: NewId
    settings: { readonly mode: 'sandbox' | 'production'; readonly accountsPerCurrency: number }
  },
  {
    holder,
    currency,
    destination,
    at,
  }: { holder: Holder; currency: BankCurrency; destination: Destination | null; at: Date },
): Promise<OrderedAccount> {
  if (!canOpenVirtualAccounts({ mode: settings.mode, kycLevel: holder.kycLevel }))
    throw new Failure('kyc_required', 'A bank account needs identity verification first.', {
      hint: 'POST /api/compliance/kyc, then send this request again.',
    })
  const owned = { accountId: holder.id, currency }
  await lockOrders(database, holder.id)
  // In this order: an account opened between the two reads was an open order at the first, or is found by the second.
  const open = await findOpenAccountOrder(database, owned)
  if (open !== undefined) return { kind: 'ordered', order: open }
  const existing = await readVirtualAccounts(database, owned)
  const live = existing.filter(({ status }) => status !== 'deactivated')
  const [first] = live
  if (first !== undefined && live.length >= settings.accountsPerCurrency)
    return { kind: 'there', account: first }
  const order = {
    ...owned,
    id: newId('va', at),
    ordinal: existing.length,
    holderName: holder.displayName,
    destination,
    createdAt: at,
  }
  await insertAccountOrder(database, order)
  return { kind: 'ordered', order }
}

/**
 * Opens an ordered account, outside of any transaction. Repeated and concurrent calls open the same account.
 * @throws Failure `provider_unavailable`; unless it is final, the order stays open and is resumed.
 */
export async function openVirtualAccount(
  { database, bankingProvider }: { database: Database; bankingProvider: Pick<BankingProvider, 'open'> },
  ordered: OrderedAccount,
): Promise<VirtualAccount> {
  if (ordered.kind === 'there') return ordered.account
  const { id, accountId, currency, ordinal, holderName, destination, createdAt } = ordered.order
  const existing = await findVirtualAccount(database, { id })
  if (existing !== undefined) return existing
  const customer = await findCustomer(database, accountId)
  const holder = { accountId, name: holderName, customer }
  const opened = await bankingProvider
    .open({ id, currency, holder, destination })
    .catch(async (error: unknown) => {
      if (error instanceof Failure && error.members.isFinal === true) await forgetAccountOrder(database, id)
      throw error
    })
  const account: VirtualAccount = {
    ...opened,
    id,
    accountId,
    currency,
    ordinal,
    holderName,
    instructions: instructionsView.parse(opened.instructions),
    // Short enough for every rail, and without easily confused letters.
    reference: `BRS${id.slice(-10).toUpperCase()}`,
    destination,
    createdAt,
  }
  return database.transaction(async (connection) => {
    await endAccountOrder(connection, { id, status: 'opened' })
    return insertVirtualAccount(connection, account)
  })
}
