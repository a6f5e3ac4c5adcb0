/**
 * Memberships: which account a person acts for, and in which role. One person has one membership at most; without one they own
 * their own account. Changes of an account's people wait for each other.
 */
import type { Account, MemberRole } from '../../../core/base/principal.ts'
import type { Connection, Statement } from '../../../storage/database.ts'

export interface Membership {
  /** The person: their own account. */
  readonly personId: string
  /** The account that they act for. */
  readonly accountId: string
  readonly role: MemberRole
}

export interface Member extends Membership {
  readonly displayName: string
  readonly mfaEnrolled: boolean
  readonly isLocked: boolean
  readonly joinedAt: Date
}

const lockStatement: Statement = {
  name: 'people_lock',
  text: `select pg_advisory_xact_lock(hashtextextended('people ' || account, 0))
    from (select account from unnest($1::text[]) account order by account) accounts`,
}

/** Serializes changes of the people of accounts, until the transaction ends. */
export async function lockPeople(database: Connection, accountIds: readonly string[]): Promise<void> {
  await database.call(lockStatement, [[...new Set(accountIds)].sort()])
}

export async function findMembership(
  { kysely }: Connection,
  personId: string,
): Promise<Membership | undefined> {
  const row = await kysely
    .selectFrom('membership')
    .select(['person_id', 'account_id', 'role'])
    .where('person_id', '=', personId)
    .executeTakeFirst()
  return row && { personId: row.person_id, accountId: row.account_id, role: row.role }
}

const peopleStatement: Statement = {
  name: 'people_of_account',
  text: `
    select p.id, coalesce(m.role, 'owner') as role, coalesce(m.joined_at, p.created_at) as joined_at, p.display_name,
      case when m.person_id is null then p.status = 'locked' else m.locked_at is not null end as is_locked,
      exists (select from mfa where mfa.account_id = p.id and mfa.status = 'active') as mfa_enrolled
    from account p left join membership m on m.person_id = p.id
    where m.account_id = $1
      or (p.id = $1 and m.person_id is null and not exists (select from membership where account_id = $1))
    order by joined_at, p.id`,
}

interface PersonRow {
  readonly id: string
  readonly role: MemberRole
  readonly joined_at: Date
  readonly display_name: string
  readonly is_locked: boolean
  readonly mfa_enrolled: boolean
}

/** Lists the people of an account, in the order in which they joined. */
export async function listPeople(database: Connection, accountId: string): Promise<readonly Member[]> {
  const rows = await database.call<PersonRow>(peopleStatement, [accountId])
  return rows.map((row) => ({
    personId: row.id,
    accountId,
    role: row.role,
    displayName: row.display_name,
    mfaEnrolled: row.mfa_enrolled,
    isLocked: row.is_locked,
    joinedAt: row.joined_at,
  }))
}

/** Writes the membership of the person who was alone so far, so that it is not lost when they change account. */
export async function keepFounder(
  { kysely }: Connection,
  { id, createdAt }: Pick<Account, 'id' | 'createdAt'>,
): Promise<void> {
  await kysely
    .insertInto('membership')
    .values({ person_id: id, account_id: id, role: 'owner', joined_at: createdAt, locked_at: null })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Makes a person a member of an account, instead of the one that they had for themselves. */
export async function putMembership(
  { kysely }: Connection,
  { personId, accountId, role, at }: Membership & { at: Date },
): Promise<void> {
  const joined = { account_id: accountId, role, joined_at: at, locked_at: null }
  await kysely
    .insertInto('membership')
    .values({ person_id: personId, ...joined })
    .onConflict((conflict) => conflict.column('person_id').doUpdateSet(joined))
    .execute()
}

export async function changeRole(
  { kysely }: Connection,
  { personId, accountId, role }: Membership,
): Promise<void> {
  await kysely
    .updateTable('membership')
    .set({ role })
    .where('person_id', '=', personId)
    .where('account_id', '=', accountId)
    .execute()
}

export async function deleteMembership({ kysely }: Connection, personId: string): Promise<void> {
  await kysely.deleteFrom('membership').where('person_id', '=', personId).execute()
}
