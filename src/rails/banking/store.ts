/**
 * Banking: virtual accounts, and the provider's deposits and payouts. May import base, ports, ledger, spending and
 * policies. Invariants: an event counts once, a state never goes back, and a deposit is booked at most once, despite
 * repeated and out-of-order events.
 */
import type { Selectable } from 'kysely'
import { z } from 'zod'
import type { Page } from '../../core/base/page.ts'
import { type Stablecoin, stablecoins } from '../../core/money/money.ts'
import { type BankCurrency, bankCurrencies } from '../../providers/banking/port.ts'
import type { Address } from '../../providers/chain/port.ts'
import type { Connection } from '../../storage/database.ts'
import type { VirtualAccountTable } from '../../storage/schema.ts'

const rails = z.array(z.string()).describe('Payment rails for deposits.')

/** Instructions for payers, by currency. */
export const instructionsView = z
  .union([
    z.strictObject({
      routingNumber: z.string().describe('ABA routing number.'),
      accountNumber: z.string().describe('Account number.'),
      rails,
    }),
    z.strictObject({ iban: z.string().describe('IBAN.'), bic: z.string().describe('BIC.'), rails }),
    z.strictObject({
      sortCode: z.string().describe('Sort code, six digits.'),
      accountNumber: z.string().describe('Account number, eight digits.'),
      rails,
    }),
    z.strictObject({
      accountNumber: z.string().describe('Account number.'),
      ifsc: z.string().describe('IFSC of the branch.'),
      vpa: z.string().describe('Virtual payment address for UPI.'),
      rails,
    }),
  ])
  .describe(
    'Bank details for payers: depending on the currency a routing number, an IBAN, a sort code or an IFSC.',
  )
  .meta({ id: 'DepositInstructions' })

/** Wallet and token that deposits are converted to. */
export interface Destination {
  readonly token: Stablecoin
  readonly chain: string
  readonly address: Address
}

/** A virtual account as stored. @property destination null: deposits stay cash at the bank. */
export interface VirtualAccount {
  readonly id: string
  readonly accountId: string
  readonly currency: BankCurrency
  readonly ordinal: number
  readonly status: 'pending' | 'active' | 'deactivated'
  readonly providerId: string
  readonly customer: string | null
  readonly holderName: string
  readonly bankName: string
  readonly bankAddress: string
  readonly instructions: z.output<typeof instructionsView>
  readonly reference: string
  readonly destination: Destination | null
  readonly createdAt: Date
}

/** Lists an account's virtual accounts, newest first: one more than the page's limit. */
export async function listVirtualAccounts(
  database: Connection,
  { accountId, page }: { accountId: string; page: Page },
): Promise<VirtualAccount[]> {
  const query = database.kysely.selectFrom('virtual_account').selectAll().where('account_id', '=', accountId)
  const rows = await (page.after === null ? query : query.where('id', '<', page.after))
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute()
  return rows.map(parseVirtualAccount)
}

/** Locks an owner's account row, so that orders of the owner are serialized until the transaction ends. */
export async function lockOrders(database: Connection, accountId: string): Promise<void> {
  await database.kysely
    .selectFrom('account')
    .select('id')
    .where('id', '=', accountId)
    .forNoKeyUpdate()
    .execute()
}

/** Lists an owner's virtual accounts of a currency, oldest first. */
export async function readVirtualAccounts(
  database: Connection,
  { accountId, currency }: { accountId: string; currency: BankCurrency },
): Promise<VirtualAccount[]> {
  const rows = await database.kysely
    .selectFrom('virtual_account')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('currency', '=', currency)
    .orderBy('ordinal')
    .execute()
  return rows.map(parseVirtualAccount)
}

/** Finds the provider's customer id of an account's holder. */
export async function findCustomer(database: Connection, accountId: string): Promise<string | null> {
  const own = await database.kysely
    .selectFrom('bank_customer')
    .select('customer_id')
    .where('account_id', '=', accountId)
    .where('status', '=', 'approved')
    .executeTakeFirst()
  if (own !== undefined) return own.customer_id
  const row = await database.kysely
    .selectFrom('virtual_account')
    .select('provider_customer')
    .where('account_id', '=', accountId)
    .where('provider_customer', 'is not', null)
    .executeTakeFirst()
  return row?.provider_customer ?? null
}

/** Finds a virtual account by our id or the provider's. */
export async function findVirtualAccount(
  database: Connection,
  by: { id: string } | { providerId: string },
): Promise<VirtualAccount | undefined> {
  const query = database.kysely.selectFrom('virtual_account').selectAll()
  const row = await ('id' in by
    ? query.where('id', '=', by.id)
    : query.where('provider_id', '=', by.providerId)
  ).executeTakeFirst()
  return row === undefined ? undefined : parseVirtualAccount(row)
}

/** Stores a new virtual account, or returns the one already stored. */
export async function insertVirtualAccount(
  database: Connection,
  account: VirtualAccount,
): Promise<VirtualAccount> {
  await database.kysely
    .insertInto('virtual_account')
    .values({
      id: account.id,
      account_id: account.accountId,
      currency: account.currency,
      ordinal: account.ordinal,
      status: account.status,
      provider_id: account.providerId,
      provider_customer: account.customer,
      holder_name: account.holderName,
      bank_name: account.bankName,
      bank_address: account.bankAddress,
      instructions: JSON.stringify(account.instructions),
      reference: account.reference,
      token: account.destination?.token ?? null,
      chain: account.destination?.chain ?? null,
      address: account.destination?.address ?? null,
      created_at: account.createdAt,
    })
    // A concurrent insert of the same account may hit any of the unique indexes.
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const stored = await findVirtualAccount(database, { id: account.id })
  if (stored === undefined) throw new Error('a virtual account that was just stored cannot be read')
  return stored
}

/** Moves a virtual account to another status if its current status is in `from`. */
export async function updateVirtualAccountStatus(
  database: Connection,
  { id, from, to }: { id: string; from: readonly VirtualAccount['status'][]; to: VirtualAccount['status'] },
): Promise<void> {
  await database.kysely
    .updateTable('virtual_account')
    .set({ status: to })
    .where('id', '=', id)
    .where('status', 'in', from)
    .execute()
}

/** Parses a stored destination. */
export function parseDestination({
  token,
  chain,
  address,
}: Pick<VirtualAccountTable, 'token' | 'chain' | 'address'>): Destination | null {
  const known = stablecoins.find((symbol) => symbol === token)
  if (known === undefined || chain === null || address === null) return null
  return { token: known, chain, address: `0x${address.slice(2)}` }
}

function parseVirtualAccount(row: Selectable<VirtualAccountTable>): VirtualAccount {
  return {
    id: row.id,
    accountId: row.account_id,
    currency: z.enum(bankCurrencies).parse(row.currency),
    ordinal: row.ordinal,
    status: row.status,
    providerId: row.provider_id,
    customer: row.provider_customer,
    holderName: row.holder_name,
    bankName: row.bank_name,
    bankAddress: row.bank_address,
    instructions: instructionsView.parse(row.instructions),
    reference: row.reference,
    destination: parseDestination(row),
    createdAt: row.created_at,
  }
}
