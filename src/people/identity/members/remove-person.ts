/** Ends a person's membership: they act for an account of their own again, and nothing of theirs goes on in the one they leave. */
import type { NewId } from '../../../core/base/ids.ts'
import { Failure } from '../../../core/failures/failure.ts'
import type { Connection, Statement } from '../../../storage/database.ts'
import { createAccount } from '../accounts.ts'
import { revokeSessions } from '../store.ts'
import { cancelInvitationsBy } from './invitations.ts'
import { deleteMembership, listPeople, type Member, putMembership } from './memberships.ts'

/** @throws Failure `not_found`. */
export function requireOneOf(people: readonly Member[], personId: string): Member {
  const found = people.find((one) => one.personId === personId)
  if (found !== undefined) return found
  throw new Failure('not_found', 'The account has no such person.', {
    hint: 'GET /api/people lists them.',
  })
}

/** @param people who they would be. @throws Failure `conflict`. */
export function requireOwner(people: readonly Pick<Member, 'role'>[]): void {
  if (people.some(({ role }) => role === 'owner')) return
  throw new Failure('conflict', 'The last owner of an account cannot leave or become less.', {
    reason: 'last_owner',
    hint: 'Make somebody else an owner first: PATCH /api/people/{id} {"role":"owner"}.',
  })
}

const guardStatement: Statement = {
  name: 'people_guard_of_wallet',
  text: `select exists (
      select from wallet w where w.account_id = $1 and w.owner ->> 'kind' = 'eoa' and exists (
        select from journal_entry j where j.account_id = $1 and j.action = 'signer.added' and j.actor_id = $2
          and lower(j.after ->> 'address') = lower(w.owner ->> 'address'))
    ) or ($1 = $2 and exists (select from passkey where account_id = $2)) as guards`,
}

/** @throws Failure `conflict` for the person whose passkey or key guards the account's wallet: nobody else could move its money. */
async function requireNoGuard(database: Connection, accountId: string, personId: string): Promise<void> {
  const [found] = await database.call<{ guards: boolean }>(guardStatement, [accountId, personId])
  if (found?.guards !== true) return
  throw new Failure(
    'conflict',
    'This person’s passkey or key guards the account’s wallet: without them nobody could move its money.',
    {
      reason: 'guards_wallet',
      hint: 'They stay an owner of this account. To part, first send the money to a wallet of another account.',
    },
  )
}

const keysStatement: Statement = {
  name: 'people_end_keys',
  // What a person made for their own programs ends; agents and servers of the account wait for an owner's look, as after a recovery.
  text: `update access_key k
    set status = case when k.kind = 'grant' then 'revoked' else 'paused' end,
      paused_at = case when k.kind = 'grant' then k.paused_at else coalesce(k.paused_at, $3::timestamptz) end
    where k.account_id = $1 and k.status <> 'revoked' and (k.kind = 'grant' or k.status = 'active') and k.id in (
      select j.object_id from journal_entry j
      where j.account_id = $1 and j.action = 'key.created' and j.actor_kind = 'person' and j.actor_id = $2)
    returning k.kind`,
}

const votesStatement: Statement = {
  name: 'people_end_votes',
  text: `delete from approval_vote v using approval a
    where a.id = v.approval_id and a.account_id = $1 and v.person_id = $2 and a.status = 'pending'`,
}

const signersStatement: Statement = {
  name: 'people_end_signers',
  text: `delete from wallet_signer s where s.account_id = $1 and exists (
      select from journal_entry j where j.account_id = $1 and j.action = 'signer.added' and j.actor_id = $2
        and j.object_id = s.id)`,
}

/**
 * Waits for keys that are being made, and lets no other be made until the transaction ends: one that is made meanwhile finds its
 * maker's credential ended, or is seen by {@link endKeys}.
 */
async function lockNewKeys({ kysely }: Connection, accountId: string): Promise<void> {
  await kysely.selectFrom('account').select('id').where('id', '=', accountId).forUpdate().execute()
}

/**
 * Ends the keys that a person has made who is an owner no more: their secrets may be known to them. Call it in the transaction that
 * ends it, with the account's people locked.
 */
export async function endKeys(
  database: Connection,
  { personId, accountId, at }: Pick<Member, 'personId' | 'accountId'> & { at: Date },
): Promise<EndedAccess> {
  await lockNewKeys(database, accountId)
  const ended = await database.call<{ kind: string }>(keysStatement, [accountId, personId, at])
  const revoked = ended.filter(({ kind }) => kind === 'grant').length
  return { revoked, paused: ended.length - revoked }
}

/** @property revoked their grants. @property paused the other keys that they made. */
export interface EndedAccess {
  readonly revoked: number
  readonly paused: number
}

/**
 * Ends a membership, and everything of the person that goes on: sessions and programs, and with them browsers that get messages and
 * streams; grants, which are revoked; keys that they made, which are paused; what they invited to. The caller has locked the
 * account's people and asked for a proof. @param openOwn sets up a new account for somebody whose own belongs to others now.
 */
export async function endMembership(
  parts: { database: Connection; newId: NewId; openOwn: (accountId: string) => Promise<unknown> },
  { person, at }: { person: Member; at: Date },
): Promise<EndedAccess> {
  const { database } = parts
  const { personId, accountId, displayName } = person
  await requireNoGuard(database, accountId, personId)
  const others = (await listPeople(database, personId)).filter((one) => one.personId !== personId)
  if (others.length === 0) await deleteMembership(database, personId)
  else {
    const own = await createAccount(parts, { displayName, guest: false, at })
    await parts.openOwn(own.id)
    await putMembership(database, { personId, accountId: own.id, role: 'owner', at })
  }
  // Their yes counts no more, and nobody is asked for what they wanted to pay.
  await database.call(votesStatement, [accountId, personId])
  await database.kysely
    .updateTable('approval')
    .set({ status: 'withdrawn', decided_at: at })
    .where('asker_id', '=', personId)
    .where('account_id', '=', accountId)
    .where('status', '=', 'pending')
    .execute()
  await cancelInvitationsBy(database, { accountId, personId })
  await database.kysely
    .deleteFrom('notification_channel')
    .where('account_id', '=', accountId)
    .where('destination_hash', 'in', (of) =>
      of.selectFrom('login_destination').select('destination_hash').where('account_id', '=', personId),
    )
    .execute()
  await database.call(signersStatement, [accountId, personId])
  const ended = await endKeys(database, { personId, accountId, at })
  await revokeSessions(database, { accountId: personId, at })
  return ended
}
