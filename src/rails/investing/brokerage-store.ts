/** Stored accounts of persons at the broker. */
import type { Selectable } from 'kysely'
import { z } from 'zod'
import { seal, unseal } from '../../core/base/seal.ts'
import {
  type BrokerageAccount,
  type BrokerageApplication,
  fundingSources,
} from '../../providers/broker/accounts.ts'
import type { Broker } from '../../providers/broker/port.ts'
import type { Connection } from '../../storage/database.ts'
import type { BrokerageAccountTable } from '../../storage/schema.ts'

const PURPOSE = 'brokerage application'

const application = z.strictObject({
  firstName: z.string(),
  lastName: z.string(),
  dateOfBirth: z.string(),
  email: z.string(),
  phone: z.string(),
  street: z.string(),
  city: z.string(),
  state: z.string().nullable(),
  postalCode: z.string().nullable(),
  country: z.string(),
  taxId: z.string(),
  taxIdType: z.string(),
  taxResidence: z.string(),
  fundingSources: z.array(z.enum(fundingSources)),
  disclosures: z.strictObject({
    isControlPerson: z.boolean(),
    isAffiliatedExchangeOrFinra: z.boolean(),
    isPoliticallyExposed: z.boolean(),
    immediateFamilyExposed: z.boolean(),
  }),
  agreedAt: z.string(),
  agreedFrom: z.string(),
  firstSentAt: z.string(),
}) satisfies z.ZodType<BrokerageApplication>

/** @property status `opening`: it is unknown whether the broker has the application. */
export interface KeptBrokerageAccount {
  readonly accountId: string
  readonly status: BrokerageAccountTable['status']
  readonly providerId: string | null
  readonly createdAt: Date
}

const parseAccount = (row: Selectable<BrokerageAccountTable>): KeptBrokerageAccount => ({
  accountId: row.account_id,
  status: row.status,
  providerId: row.provider_id,
  createdAt: row.created_at,
})

export async function findBrokerageAccount(
  database: Connection,
  accountId: string,
): Promise<KeptBrokerageAccount | undefined> {
  const row = await database.kysely
    .selectFrom('brokerage_account')
    .selectAll()
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  return row === undefined ? undefined : parseAccount(row)
}

/** Checks whether an account at the broker belongs to another account here. */
export async function hasOtherOwner(
  { kysely }: Connection,
  { accountId, providerId }: { accountId: string; providerId: string },
): Promise<boolean> {
  const row = await kysely
    .selectFrom('brokerage_account')
    .select('account_id')
    .where('provider_id', '=', providerId)
    .where('account_id', '!=', accountId)
    .executeTakeFirst()
  return row !== undefined
}

/**
 * The id of an account at the broker; null when the broker keeps none.
 * @throws Error when the account has none there: its orders are not admitted.
 */
export async function findBrokerageAccountId(
  { database, broker }: { readonly database: Connection; readonly broker: Pick<Broker, 'accounts'> },
  accountId: string,
): Promise<string | null> {
  if (broker.accounts === null) return null
  const kept = await findBrokerageAccount(database, accountId)
  if (typeof kept?.providerId === 'string') return kept.providerId
  throw new Error(`${accountId} has no account at the broker`)
}

interface Keeping {
  readonly database: Connection
  readonly dataKey: Uint8Array
}

/** Records an application before it is sent. @returns false when the account has one already. */
export async function insertApplication(
  { database, dataKey }: Keeping,
  { accountId, said, at }: { accountId: string; said: BrokerageApplication; at: Date },
): Promise<boolean> {
  const row = await database.kysely
    .insertInto('brokerage_account')
    .values({
      account_id: accountId,
      status: 'opening',
      provider_id: null,
      sealed: seal(dataKey, { purpose: PURPOSE, owner: accountId }, JSON.stringify(said)),
      created_at: at,
      checked_at: at,
    })
    // Erased, or refused at the end: nothing is known to be open.
    .onConflict((conflict) =>
      conflict
        .column('account_id')
        .doUpdateSet(({ ref }) => ({ sealed: ref('excluded.sealed'), checked_at: at }))
        .where('brokerage_account.status', '=', 'opening')
        .where('brokerage_account.sealed', 'is', null),
    )
    .returning('account_id')
    .executeTakeFirst()
  return row !== undefined
}

/** Reads an application that the broker has not answered; null once answered or erased. */
export async function readApplication(
  { database, dataKey }: Keeping,
  accountId: string,
): Promise<BrokerageApplication | null> {
  const row = await database.kysely
    .selectFrom('brokerage_account')
    .select('sealed')
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  if (row === undefined || row.sealed === null) return null
  return application.parse(JSON.parse(unseal(dataKey, { purpose: PURPOSE, owner: accountId }, row.sealed)))
}

/** Stores the broker's answer and forgets the application. */
export async function updateBrokerageAccount(
  database: Connection,
  accountId: string,
  { id, status }: BrokerageAccount,
): Promise<void> {
  await database.kysely
    .updateTable('brokerage_account')
    .set({ status, provider_id: id, sealed: null })
    .where('account_id', '=', accountId)
    .where((where) => where.or([where('provider_id', 'is', null), where('provider_id', '=', id)]))
    .execute()
}

/** Removes an application that the broker refused, so that another can be made. */
export async function removeApplication(database: Connection, accountId: string): Promise<void> {
  await database.kysely
    .deleteFrom('brokerage_account')
    .where('account_id', '=', accountId)
    .where('status', '=', 'opening')
    .execute()
}

/** Erases what was not yet answered; the account at the broker stays. */
export async function eraseBrokerageApplication(database: Connection, accountId: string): Promise<void> {
  await database.kysely
    .updateTable('brokerage_account')
    .set({ sealed: null })
    .where('account_id', '=', accountId)
    .execute()
}

/** Claims accounts not looked at since a moment; concurrent processes claim different ones. */
export async function claimBrokerageAccounts(
  database: Connection,
  { before, at, limit }: { before: Date; at: Date; limit: number },
): Promise<KeptBrokerageAccount[]> {
  const rows = await database.kysely
    .updateTable('brokerage_account')
    .set({ checked_at: at })
    .where('account_id', 'in', (query) =>
      query
        .selectFrom('brokerage_account')
        .select('account_id')
        .where('status', 'not in', ['rejected', 'closed'])
        .where('checked_at', '<=', before)
        .orderBy('checked_at')
        .limit(limit)
        .forUpdate()
        .skipLocked(),
    )
    .returningAll()
    .execute()
  return rows.map(parseAccount)
}
