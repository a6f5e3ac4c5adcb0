/**
 * Contacts: the names that an owner gives to payees. May import the books. Invariants: no two contacts of an account have names that
 * look alike; a name is stored sealed and found by its keyed hash; a contact that was removed names nobody.
 */
import type { Selectable } from 'kysely'
import { z } from 'zod'
import { foldName, lookOfName } from '../../../policies/contact-names.ts'
import { keyedHash, seal, unseal } from '../../core/base/seal.ts'
import { Failure } from '../../core/failures/failure.ts'
import { chainInput } from '../../core/money/chains.ts'
import { type Connection, callForRow, type Statement } from '../../storage/database.ts'
import type { ContactTable } from '../../storage/schema.ts'

const PURPOSE = 'contact'

/** Contacts of an account at a time. */
const MAX_CONTACTS = 200

const details = z.strictObject({ name: z.string(), email: z.string().nullable() })
const addresses = z.array(z.strictObject({ chain: chainInput.nullable(), address: z.string() }))

/** @property chain null: any. */
export interface ContactAddress {
  readonly chain: z.output<typeof chainInput> | null
  readonly address: string
}

/** @property readdressedAt when its addresses or its recipient last became others. */
export interface Contact {
  readonly id: string
  readonly accountId: string
  readonly name: string
  readonly email: string | null
  readonly addresses: readonly ContactAddress[]
  readonly recipientId: string | null
  readonly addedBy: string
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly readdressedAt: Date
}

/** What its owner says of a contact. */
export type ContactDetails = Pick<Contact, 'name' | 'email' | 'addresses' | 'recipientId'>

export interface Keeping {
  readonly database: Connection
  readonly settings: { readonly dataKey: Uint8Array }
}

export function noSuchContact(): Failure {
  return new Failure('not_found', 'You have no such contact.', { hint: 'Read GET /api/contacts.' })
}

const lock: Statement = {
  name: 'contacts_lock',
  text: 'select id from account where id = $1 for no key update',
}

/** Adds a contact. @throws Failure `conflict` for a name that looks like another one's, and at the maximum number. */
export async function insertContact(
  keeping: Keeping,
  {
    id,
    accountId,
    addedBy,
    at,
    ...said
  }: ContactDetails & { id: string; accountId: string; addedBy: string; at: Date },
): Promise<Contact> {
  const { database } = keeping
  await callForRow(database, lock, [accountId])
  const { count } = await database.kysely
    .selectFrom('contact')
    .select(({ fn }) => fn.countAll<bigint>().as('count'))
    .where('account_id', '=', accountId)
    .where('removed_at', 'is', null)
    .executeTakeFirstOrThrow()
  if (count >= MAX_CONTACTS)
    throw new Failure('conflict', `The account has ${MAX_CONTACTS} contacts.`, {
      reason: 'too_many',
      hint: 'Remove one that is no longer paid: DELETE /api/contacts/{id}.',
    })
  await requireFreeName(keeping, { accountId, name: said.name, except: null })
  const row = await database.kysely
    .insertInto('contact')
    .values({
      id,
      account_id: accountId,
      ...toColumns(keeping, { id, accountId, ...said }),
      added_by: addedBy,
      created_at: at,
      updated_at: at,
      readdressed_at: at,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  return parseContact(keeping, row)
}

/** Changes a contact. @throws Failure `not_found`, and `conflict` for a name that looks like another one's. */
export async function updateContact(
  keeping: Keeping,
  {
    id,
    accountId,
    at,
    isReaddressed,
    ...said
  }: ContactDetails & {
    id: string
    accountId: string
    at: Date
    isReaddressed: boolean
  },
): Promise<Contact> {
  const { database } = keeping
  await callForRow(database, lock, [accountId])
  await requireFreeName(keeping, { accountId, name: said.name, except: id })
  const row = await database.kysely
    .updateTable('contact')
    .set({
      ...toColumns(keeping, { id, accountId, ...said }),
      updated_at: at,
      ...(isReaddressed ? { readdressed_at: at } : {}),
    })
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .where('removed_at', 'is', null)
    .returningAll()
    .executeTakeFirst()
  if (row === undefined) throw noSuchContact()
  return parseContact(keeping, row)
}

/** Removes a contact, and erases all of it but its hashes. @throws Failure `not_found`. */
export async function removeContact(
  { kysely }: Connection,
  { id, accountId, at }: { id: string; accountId: string; at: Date },
): Promise<void> {
  const row = await kysely
    .updateTable('contact')
    .set({
      sealed: null,
      addresses: '[]',
      recipient_id: null,
      removed_at: at,
      updated_at: at,
      readdressed_at: at,
    })
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .where('removed_at', 'is', null)
    .returning('id')
    .executeTakeFirst()
  if (row === undefined) throw noSuchContact()
}

/** Erases the contacts of an account. What waits for one pays nobody. */
export async function eraseContacts({ kysely }: Connection, accountId: string): Promise<void> {
  await kysely.deleteFrom('contact').where('account_id', '=', accountId).execute()
}

/** Finds a contact. @param isLocked until the transaction ends. */
export async function findContact(
  keeping: Keeping,
  { id, accountId, isLocked = false }: { id: string; accountId: string; isLocked?: boolean },
): Promise<Contact | undefined> {
  const query = keeping.database.kysely
    .selectFrom('contact')
    .selectAll()
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .where('removed_at', 'is', null)
  const row = await (isLocked ? query.forUpdate() : query).executeTakeFirst()
  return row === undefined ? undefined : parseContact(keeping, row)
}

/** Finds contacts by their names, in any letter case. */
export async function findContactsByName(
  keeping: Keeping,
  { accountId, names }: { accountId: string; names: readonly string[] },
): Promise<readonly Contact[]> {
  const hashes = names.map((name) => hashName(keeping, accountId, name))
  const rows = await keeping.database.kysely
    .selectFrom('contact')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('name_hash', 'in', hashes)
    .where('removed_at', 'is', null)
    .execute()
  return rows.map((row) => parseContact(keeping, row))
}

/** True if a contact has or, until it was removed, had this name. */
export async function isNamed(
  keeping: Keeping,
  { id, accountId, name }: { id: string; accountId: string; name: string },
): Promise<boolean> {
  const row = await keeping.database.kysely
    .selectFrom('contact')
    .select('id')
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .where('name_hash', '=', hashName(keeping, accountId, name))
    .executeTakeFirst()
  return row !== undefined
}

/** Lists an account's contacts, oldest first: there are few. */
export async function listContacts(keeping: Keeping, accountId: string): Promise<readonly Contact[]> {
  const rows = await keeping.database.kysely
    .selectFrom('contact')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('removed_at', 'is', null)
    .orderBy('id')
    .execute()
  return rows.map((row) => parseContact(keeping, row))
}

function toColumns(
  keeping: Keeping,
  {
    id,
    accountId,
    name,
    email,
    addresses: known,
    recipientId,
  }: ContactDetails & { id: string; accountId: string },
) {
  const { dataKey } = keeping.settings
  return {
    name_hash: hashName(keeping, accountId, name),
    look_hash: hashLook(keeping, accountId, name),
    sealed: seal(dataKey, { purpose: PURPOSE, owner: id }, JSON.stringify({ name, email })),
    addresses: JSON.stringify(known),
    recipient_id: recipientId,
  }
}

function hashName({ settings }: Keeping, accountId: string, name: string): string {
  return keyedHash(settings.dataKey, 'contact name', `${accountId} ${foldName(name)}`)
}

function hashLook({ settings }: Keeping, accountId: string, name: string): string {
  return keyedHash(settings.dataKey, 'contact look', `${accountId} ${lookOfName(name)}`)
}

async function requireFreeName(
  keeping: Keeping,
  { accountId, name, except }: { accountId: string; name: string; except: string | null },
): Promise<void> {
  const query = keeping.database.kysely
    .selectFrom('contact')
    .select('id')
    .where('account_id', '=', accountId)
    .where('look_hash', '=', hashLook(keeping, accountId, name))
    .where('removed_at', 'is', null)
  const taken = await (except === null ? query : query.where('id', '<>', except)).executeTakeFirst()
  if (taken === undefined) return
  throw new Failure('conflict', 'A contact has this name, or one that looks like it.', {
    reason: 'name_taken',
    hint: 'Change that one, PATCH /api/contacts/{id}, or take a name that is plainly another.',
  })
}

function parseContact(keeping: Keeping, row: Selectable<ContactTable>): Contact {
  const { id, sealed } = row
  if (sealed === null) throw new Error(`${id} was removed and names nobody`)
  const text = unseal(keeping.settings.dataKey, { purpose: PURPOSE, owner: id }, sealed)
  return {
    id,
    accountId: row.account_id,
    ...details.parse(JSON.parse(text)),
    addresses: addresses.parse(row.addresses),
    recipientId: row.recipient_id,
    addedBy: row.added_by,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    readdressedAt: row.readdressed_at,
  }
}
