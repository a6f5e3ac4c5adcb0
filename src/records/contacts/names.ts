/** Names for payees: the one place that says which contact an address or a recipient is. */
import { z } from 'zod'
import type { Connection, Statement } from '../../storage/database.ts'
import { listPayees } from './payee.ts'
import { type Contact, type Keeping, listContacts } from './store.ts'

/** @property nameOf name of the contact that an address or the id of a recipient belongs to; null: none. */
export interface PayeeNames {
  readonly nameOf: (payee: string | null | undefined) => string | null
}

/** Names payees. @param contacts of an account, oldest first: of two with one address, the older names it. */
export function namePayees(contacts: readonly Contact[]): PayeeNames {
  const names = new Map<string, string>()
  for (const contact of contacts)
    for (const payee of listPayees(contact))
      if (!names.has(payee.toLowerCase())) names.set(payee.toLowerCase(), contact.name)
  return { nameOf: (payee) => names.get(payee?.toLowerCase() ?? '') ?? null }
}

/** Adds the contact of each row. @param readPayee address or recipient of a row. */
export async function nameContacts<Row extends object>(
  keeping: Keeping,
  accountId: string,
  rows: readonly Row[],
  readPayee: (row: Row) => string | null | undefined,
): Promise<(Row & { contact: string | null })[]> {
  const isAny = rows.some((row) => typeof readPayee(row) === 'string')
  const names = namePayees(isAny ? await listContacts(keeping, accountId) : [])
  return rows.map((row) => ({ ...row, contact: names.nameOf(readPayee(row)) }))
}

/** Names one payee. */
export async function nameContact(
  keeping: Keeping,
  accountId: string,
  payee: string | null | undefined,
): Promise<string | null> {
  return typeof payee === 'string' ? namePayees(await listContacts(keeping, accountId)).nameOf(payee) : null
}

const payeeMembers = z.looseObject({
  destination: z.string().optional().catch(undefined),
  recipientId: z.string().optional().catch(undefined),
  input: z.looseObject({}).optional().catch(undefined),
})

/** The payee in the input of a call, or of the call that it schedules; null: none. */
export function readInputPayee(input: unknown): string | null {
  const { destination, recipientId, input: inner } = payeeMembers.catch({}).parse(input)
  return destination ?? recipientId ?? (inner === undefined ? null : readInputPayee(inner))
}

/** @property count payments that arrived or are sent for good. @property lastAt of the last; null: none. */
export interface PaidBefore {
  readonly count: number
  readonly lastAt: Date | null
}

const paid: Statement = {
  name: 'payees_paid',
  text: `
    select payee, count(*)::int as count, max(at) as last_at from (
      select t.destination as payee, t.created_at as at from transfer t
      where t.account_id = $1 and t.state = 'confirmed' and t.destination = any($2::text[])
      union all
      select p.recipient_id, p.created_at from payout p
      where p.account_id = $1 and p.status in ('sent', 'paid') and p.recipient_id = any($3::text[])
    ) payment group by payee`,
}

/** What the account has paid to addresses and recipients before, by payee in lower case. */
export async function findPaidBefore(
  database: Connection,
  {
    accountId,
    addresses,
    recipientIds,
  }: {
    accountId: string
    addresses: readonly string[]
    recipientIds: readonly string[]
  },
): Promise<ReadonlyMap<string, PaidBefore>> {
  const rows = await database.call<{ payee: string; count: number; last_at: Date }>(paid, [
    accountId,
    addresses.map((address) => address.toLowerCase()),
    [...recipientIds],
  ])
  return new Map(rows.map(({ payee, count, last_at: lastAt }) => [payee, { count, lastAt }]))
}
