/** The owner as a customer of the banking provider, where the provider verifies persons itself. */
import { z } from 'zod'
import { Failure } from '../../core/failures/failure.ts'
import type { BankCustomer, BankCustomers } from '../../providers/banking/customers.ts'
import type { BankingProvider } from '../../providers/banking/port.ts'
import type { Connection, Database } from '../../storage/database.ts'
import type { BankCustomerTable } from '../../storage/schema.ts'
import { findCustomer } from './store.ts'

interface Parts {
  readonly database: Connection
  readonly bankingProvider: Pick<BankingProvider, 'customers'>
}

export const bankCustomerView = z.strictObject({
  status: z
    .enum(['none', 'open', 'approved', 'rejected', 'paused'])
    .describe(
      '`none`: not started; `open`: the pages below or the provider’s review are not done; `approved`: bank accounts can be opened.',
    ),
  kycUrl: z
    .string()
    .nullable()
    .describe('Page of the provider where the owner proves the identity; null when done or not started.'),
  termsUrl: z
    .string()
    .nullable()
    .describe('Page of the provider where the owner accepts its terms; null when done or not started.'),
})
bankCustomerView.register(z.globalRegistry, { id: 'BankCustomer' })

/** @param found null: not started. */
export function viewBankCustomer(found: BankCustomer | null): z.output<typeof bankCustomerView> {
  if (found === null) return { status: 'none', kycUrl: null, termsUrl: null }
  const { status, kycUrl, termsUrl, isKycDone, isTermsAccepted } = found
  return {
    status,
    kycUrl: isKycDone ? null : kycUrl,
    termsUrl: isTermsAccepted ? null : termsUrl,
  }
}

/** Customers of a provider without pages of its own are approved. */
export const customersOfTheGateway: z.output<typeof bankCustomerView> = {
  status: 'approved',
  kycUrl: null,
  termsUrl: null,
}

/** Reads the state of an account's verification at the provider, and keeps it; null: not started. */
export async function readBankCustomer(
  { database, customers }: { readonly database: Connection; readonly customers: BankCustomers },
  { accountId, at }: { accountId: string; at: Date },
): Promise<BankCustomer | null> {
  const kept = await findBankCustomer(database, { accountId })
  if (kept === undefined) return null
  const found = await customers.read(kept.link_id)
  await keep(database, { accountId, found, at })
  return found
}

/** Records a new customer in the journal, as the last step of its transaction. */
export type RecordCustomer = (transaction: Connection) => Promise<void>

/** Starts the verification, once. @throws Failure `conflict` when the provider does not accept the person. */
export async function startBankCustomer(
  { database, customers }: { readonly database: Database; readonly customers: BankCustomers },
  {
    accountId,
    name,
    email,
    at,
    record,
  }: { accountId: string; name: string; email: string; at: Date; record: RecordCustomer },
): Promise<BankCustomer> {
  const found = await customers.start({ id: accountId, name, email })
  if (found === null)
    throw new Failure('conflict', 'The banking provider does not accept this person or e-mail address.', {
      isFinal: true,
      hint: 'The address may belong to another customer of the provider: contact the operator.',
    })
  const isNew = await database.transaction(async (connection) => {
    const isInserted = await insertBankCustomer(connection, { accountId, found, at })
    if (isInserted) await record(connection)
    return isInserted
  })
  const kept = isNew ? undefined : await findBankCustomer(database, { accountId })
  if (!isNew && kept?.link_id !== found.linkId)
    throw new Failure('conflict', 'The banking provider knows this person by another account.', {
      isFinal: true,
      hint: 'Use the account that has the bank accounts, or contact the operator.',
    })
  return found
}

/** @returns false when the account has a customer, or the customer another account. */
async function insertBankCustomer(
  { kysely }: Connection,
  { accountId, found, at }: { accountId: string; found: BankCustomer; at: Date },
): Promise<boolean> {
  const row = await kysely
    .insertInto('bank_customer')
    .values({
      account_id: accountId,
      link_id: found.linkId,
      customer_id: found.customer,
      status: found.status,
      created_at: at,
      checked_at: at,
    })
    .onConflict((conflict) => conflict.doNothing())
    .returning('account_id')
    .executeTakeFirst()
  return row !== undefined
}

/**
 * Checks that bank accounts can be opened for an account: it has an approved customer, or one from before.
 * @throws Failure `kyc_required`, `provider_unavailable`.
 */
export async function requireBankCustomer(
  { database, bankingProvider: { customers } }: Parts,
  { accountId, at }: { accountId: string; at: Date },
): Promise<void> {
  if (customers === null) return
  const kept = await findBankCustomer(database, { accountId })
  if (kept === undefined && (await findCustomer(database, accountId)) !== null) return
  const status = kept?.status === 'approved' ? 'approved' : (await readIfKept())?.status
  if (status === 'approved') return
  throw new Failure('kyc_required', `The bank has not approved the account’s holder (${status ?? 'none'}).`, {
    hint: 'The owner sends POST /api/banking/customer, completes the pages that it names, and sends this request again.',
  })

  async function readIfKept() {
    return customers === null ? null : readBankCustomer({ database, customers }, { accountId, at })
  }
}

/**
 * Follows a notice about a customer: the provider is asked, whatever the notice says. Notices about unknown customers
 * are left to the next request.
 */
export async function noticeBankCustomer(
  { database, bankingProvider: { customers } }: Parts,
  { objectId, customer, at }: { objectId: string; customer: string | null; at: Date },
): Promise<void> {
  if (customers === null) return
  const kept = await findBankCustomer(database, { ids: [objectId, ...(customer === null ? [] : [customer])] })
  if (kept !== undefined) await readBankCustomer({ database, customers }, { accountId: kept.account_id, at })
}

async function findBankCustomer(
  { kysely }: Connection,
  by: { readonly accountId: string } | { readonly ids: readonly string[] },
): Promise<BankCustomerTable | undefined> {
  const query = kysely.selectFrom('bank_customer').selectAll()
  return 'accountId' in by
    ? query.where('account_id', '=', by.accountId).executeTakeFirst()
    : query
        .where((where) => where.or([where('link_id', 'in', by.ids), where('customer_id', 'in', by.ids)]))
        .executeTakeFirst()
}

/** A customer id never changes: another one is not kept, and the account waits for the operator. */
async function keep(
  { kysely }: Connection,
  { accountId, found, at }: { accountId: string; found: BankCustomer; at: Date },
): Promise<void> {
  const { customer, status } = found
  await kysely
    .updateTable('bank_customer')
    .set({ status, checked_at: at, ...(customer === null ? {} : { customer_id: customer }) })
    .where('account_id', '=', accountId)
    .where((where) => where.or([where('customer_id', 'is', null), where('customer_id', '=', customer)]))
    .execute()
}
