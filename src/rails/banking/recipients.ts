/** Recipients: bank accounts that an owner pays out to. Name, number and address are stored sealed and can be erased. */
import type { Selectable } from 'kysely'
import { z } from 'zod'
import type { Page } from '../../core/base/page.ts'
import { seal, unseal } from '../../core/base/seal.ts'
import { untrustedTextOrNull } from '../../core/base/untrusted-text.ts'
import { Failure } from '../../core/failures/failure.ts'
import {
  type BankAccountNumber,
  type BankingProvider,
  type BankRecipient,
  payoutCurrencies,
} from '../../providers/banking/port.ts'
import type { Connection } from '../../storage/database.ts'
import type { PayoutRecipientTable } from '../../storage/schema.ts'
import { findCustomer } from './store.ts'

const PURPOSE = 'payout recipient'

/** Recipients of an account at a time. */
const MAX_RECIPIENTS = 200

const accountNumber = z.union([
  z.strictObject({
    scheme: z.literal('aba'),
    routingNumber: z.string(),
    accountNumber: z.string(),
    type: z.enum(['checking', 'savings']),
  }),
  z.strictObject({ scheme: z.literal('iban'), iban: z.string(), bic: z.string().nullable() }),
  z.strictObject({ scheme: z.literal('uk'), sortCode: z.string(), accountNumber: z.string() }),
])

const address = z.strictObject({
  line1: z.string(),
  line2: z.string().nullable(),
  city: z.string(),
  region: z.string().nullable(),
  postalCode: z.string().nullable(),
  country: z.string(),
})

/** Personal data of a recipient. */
const details = z.strictObject({
  name: z.string(),
  isCompany: z.boolean(),
  account: accountNumber,
  address: address.nullable(),
})

type RecipientDetails = z.output<typeof details>

/**
 * A recipient as stored. `pending`: the banking provider has not registered it yet; a payout registers it.
 * @property details null: erased.
 */
export interface Recipient {
  readonly id: string
  readonly accountId: string
  readonly currency: PayoutRecipientTable['currency']
  readonly country: string
  readonly last4: string | null
  readonly status: PayoutRecipientTable['status']
  readonly providerId: string | null
  readonly details: RecipientDetails | null
  readonly createdAt: Date
}

export const recipientView = z.strictObject({
  id: z.string().describe('`rcp_…`'),
  status: z
    .enum(['pending', 'active'])
    .describe('`pending`: the banking provider has not confirmed the account yet; it may be paid.'),
  currency: z.enum(payoutCurrencies).describe('Currency of the bank account.'),
  country: z.string().describe('Country of the recipient, ISO 3166-1 alpha-2.'),
  name: untrustedTextOrNull('Name of the recipient; null in a replayed answer.'),
  last4: z.string().describe('Last four characters of the account number or IBAN.'),
  createdAt: z.string().describe('When it was added, ISO 8601 UTC.'),
})
recipientView.register(z.globalRegistry, { id: 'Recipient' })

export function viewRecipient(recipient: Recipient): z.output<typeof recipientView> {
  const { id, status, currency, country, last4 } = recipient
  if (status === 'removed' || last4 === null) throw new Error(`${id} was removed and cannot be shown`)
  return {
    id,
    status,
    currency,
    country,
    name: recipient.details?.name ?? null,
    last4,
    createdAt: recipient.createdAt.toISOString(),
  }
}

interface Keeping {
  readonly database: Connection
  readonly settings: { readonly dataKey: Uint8Array }
}

/** Adds a recipient. The caller holds the account's row. @throws Failure `conflict` at the maximum number. */
export async function insertRecipient(
  { database, settings }: Keeping,
  {
    id,
    accountId,
    currency,
    country,
    details: said,
    at,
  }: Pick<Recipient, 'id' | 'accountId' | 'currency' | 'country'> & { details: RecipientDetails; at: Date },
): Promise<Recipient> {
  const { count } = await database.kysely
    .selectFrom('payout_recipient')
    .select(({ fn }) => fn.countAll<bigint>().as('count'))
    .where('account_id', '=', accountId)
    .where('status', '!=', 'removed')
    .executeTakeFirstOrThrow()
  if (count >= MAX_RECIPIENTS)
    throw new Failure('conflict', `The account has ${MAX_RECIPIENTS} recipients.`, {
      hint: 'Delete one that is no longer paid: DELETE /api/banking/recipients/{id}.',
    })
  const row = await database.kysely
    .insertInto('payout_recipient')
    .values({
      id,
      account_id: accountId,
      currency,
      country,
      last4: readAccountNumber(said.account).slice(-4),
      sealed: seal(settings.dataKey, { purpose: PURPOSE, owner: id }, JSON.stringify(said)),
      status: 'pending',
      provider_id: null,
      created_at: at,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  return parseRecipient(settings.dataKey, row)
}

/** Finds an account's recipient, removed ones too. */
export async function findRecipient(
  { database, settings }: Keeping,
  { id, accountId }: { id: string; accountId: string },
): Promise<Recipient | undefined> {
  const row = await database.kysely
    .selectFrom('payout_recipient')
    .selectAll()
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  return row === undefined ? undefined : parseRecipient(settings.dataKey, row)
}

/** Finds an account's recipient that can be paid. @throws Failure `not_found`. */
export async function requireRecipient(
  keeping: Keeping,
  named: { id: string; accountId: string },
): Promise<Recipient> {
  const found = await findRecipient(keeping, named)
  if (found === undefined || found.status === 'removed')
    throw new Failure('not_found', 'The account has no such recipient.', {
      hint: 'GET /api/banking/recipients lists them; only the owner adds one.',
    })
  return found
}

/** Lists an account's recipients, newest first: one more than the page's limit. */
export async function listRecipients(
  { database, settings }: Keeping,
  { accountId, page }: { accountId: string; page: Page },
): Promise<Recipient[]> {
  const query = database.kysely
    .selectFrom('payout_recipient')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('status', '!=', 'removed')
  const rows = await (page.after === null ? query : query.where('id', '<', page.after))
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute()
  return rows.map((row) => parseRecipient(settings.dataKey, row))
}

/** @param ids null: all of the account. @returns names by id, without those that were erased. */
export async function recipientNames(
  { database, settings }: Keeping,
  { accountId, ids }: { accountId: string; ids: readonly string[] | null },
): Promise<ReadonlyMap<string, string>> {
  if (ids?.length === 0) return new Map()
  const query = database.kysely
    .selectFrom('payout_recipient')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('sealed', 'is not', null)
  const rows = await (ids === null ? query : query.where('id', 'in', ids)).execute()
  const named = rows.map((row) => parseRecipient(settings.dataKey, row))
  return new Map(named.flatMap(({ id, details: said }) => (said === null ? [] : [[id, said.name] as const])))
}

/**
 * Registers a recipient at the banking provider, once. @returns its id there.
 * @throws Failure `payout_rejected` when the provider does not accept it; `provider_unavailable` when that is unknown.
 */
export async function registerRecipient(
  {
    database,
    bankingProvider,
  }: { database: Connection; bankingProvider: Pick<BankingProvider, 'registerRecipient'> },
  recipient: Recipient,
): Promise<string> {
  if (recipient.providerId !== null) return recipient.providerId
  const customer = await findCustomer(database, recipient.accountId)
  const providerId = await bankingProvider.registerRecipient(toBankRecipient(recipient, customer))
  await database.kysely
    .updateTable('payout_recipient')
    .set({ provider_id: providerId, status: 'active' })
    .where('id', '=', recipient.id)
    .where('status', '=', 'pending')
    .execute()
  return providerId
}

/** The recipient as the provider needs it. @throws Error when its data was erased. */
export function toBankRecipient(recipient: Recipient, customer: string | null): BankRecipient {
  const { id, currency, country, details: said } = recipient
  if (said === null) throw new Error(`the data of ${id} was erased`)
  return { id, currency, country, customer, ...said }
}

/**
 * Removes a recipient and erases its data, within the caller's transaction.
 * @throws Failure `conflict` while a payout to it may still have to be sent.
 */
export async function removeRecipient(
  database: Connection,
  { id, accountId }: { id: string; accountId: string },
): Promise<void> {
  await erase(database, { accountId, id })
}

/**
 * Erases all recipients of an account and the references of its payouts; the payouts stay.
 * @throws Failure `conflict` while a payout may still have to be sent.
 */
export async function eraseRecipients(database: Connection, accountId: string): Promise<void> {
  await erase(database, { accountId, id: null })
  for (const table of ['payout', 'prepared_payout'] as const)
    await database.kysely
      .updateTable(table)
      .set({ sealed: null })
      .where('account_id', '=', accountId)
      .execute()
}

async function erase(
  database: Connection,
  { accountId, id }: { accountId: string; id: string | null },
): Promise<void> {
  // Payouts are inserted with a shared lock on their recipient.
  let locked = database.kysely
    .selectFrom('payout_recipient')
    .select('id')
    .where('account_id', '=', accountId)
    .where('status', '!=', 'removed')
  if (id !== null) locked = locked.where('id', '=', id)
  const ids = (await locked.orderBy('id').forUpdate().execute()).map((row) => row.id)
  if (ids.length === 0) return
  const unsent = await database.kysely
    .selectFrom('payout')
    .select('id')
    .where('recipient_id', 'in', ids)
    .where('rank', '=', 0)
    .executeTakeFirst()
  if (unsent !== undefined)
    throw new Failure('conflict', `The payout ${unsent.id} is still being sent.`, {
      hint: 'Wait until GET /api/banking/payouts shows no pending payout to it, then send this request again.',
    })
  await database.kysely
    .updateTable('payout_recipient')
    .set({ status: 'removed', sealed: null, last4: null })
    .where('id', 'in', ids)
    .execute()
}

function parseRecipient(dataKey: Uint8Array, row: Selectable<PayoutRecipientTable>): Recipient {
  const { id, sealed } = row
  return {
    id,
    accountId: row.account_id,
    currency: row.currency,
    country: row.country,
    last4: row.last4,
    status: row.status,
    providerId: row.provider_id,
    details:
      sealed === null
        ? null
        : details.parse(JSON.parse(unseal(dataKey, { purpose: PURPOSE, owner: id }, sealed))),
    createdAt: row.created_at,
  }
}

/** Account number or IBAN. */
export function readAccountNumber(account: BankAccountNumber): string {
  return account.scheme === 'iban' ? account.iban : account.accountNumber
}
