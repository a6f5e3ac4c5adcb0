/**
 * Invitations to an account: a code that is mailed to one address, and accepted once by the person who signs in with that address.
 * Nobody else can use it, whoever has the code.
 */
import { type NewId, randomToken } from '../../../core/base/ids.ts'
import type { MemberRole } from '../../../core/base/principal.ts'
import { keyedHash } from '../../../core/base/seal.ts'
import { Failure } from '../../../core/failures/failure.ts'
import type { Connection, Statement } from '../../../storage/database.ts'
import { type Destination, sealAddress, unsealAddress } from '../codes/destinations.ts'
import { findOwnerId } from '../codes/login-destinations.ts'
import { lockAccountRow, waitForSpends } from '../locks.ts'
import { findMembership, listPeople, lockPeople } from './memberships.ts'

/** People of an account and open invitations to it at most. */
const MAX_PEOPLE = 50
/** Seven days. */
const LIFETIME_MS = 7 * 24 * 60 * 60 * 1000
/** 160 random bits: nobody finds one by guessing, at whatever rate. */
const CODE_BYTES = 20

interface InvitationSettings {
  readonly dataKey: Uint8Array
}

export interface Invitation {
  readonly id: string
  readonly email: string
  readonly role: MemberRole
  readonly invitedBy: string
  readonly createdAt: Date
  readonly expiresAt: Date
}

/** Opens an invitation, instead of an earlier one to the same address. Call it in a transaction. @throws Failure `conflict`. */
export async function openInvitation(
  parts: { database: Connection; newId: NewId; settings: InvitationSettings },
  {
    accountId,
    destination,
    role,
    invitedBy,
    at,
  }: { accountId: string; destination: Destination; role: MemberRole; invitedBy: string; at: Date },
): Promise<Invitation & { readonly code: string }> {
  const { database, settings } = parts
  await lockPeople(database, [accountId])
  const people = await listPeople(database, accountId)
  const ownerOfAddress = await findOwnerId(database, destination.hash)
  if (people.some(({ personId }) => personId === ownerOfAddress))
    throw new Failure('conflict', 'The person of this address is one of the account already.', {
      hint: 'Change their role instead: PATCH /api/people/{id}.',
    })
  const open = await listInvitations(parts, { accountId, now: at })
  const others = open.filter(({ email }) => email !== destination.address)
  if (people.length + others.length >= MAX_PEOPLE)
    throw new Failure('conflict', `An account has ${MAX_PEOPLE} people and open invitations at most.`, {
      hint: 'Remove a person, or cancel an invitation.',
    })
  const code = randomToken(CODE_BYTES)
  const [id, expiresAt] = [parts.newId('inv', at), new Date(at.getTime() + LIFETIME_MS)]
  await database.kysely
    .deleteFrom('invitation')
    .where('account_id', '=', accountId)
    .where('destination_hash', '=', destination.hash)
    .execute()
  await database.kysely
    .insertInto('invitation')
    .values({
      id,
      account_id: accountId,
      destination_hash: destination.hash,
      sealed_address: Buffer.from(sealAddress(settings, destination), 'base64url'),
      code_hash: hashInvitationCode(settings, code),
      role,
      invited_by: invitedBy,
      created_at: at,
      expires_at: expiresAt,
    })
    .execute()
  return { id, email: destination.address, role, invitedBy, createdAt: at, expiresAt, code }
}

/** Lists the open invitations to an account, newest first. */
export async function listInvitations(
  { database, settings }: { database: Connection; settings: InvitationSettings },
  { accountId, now }: { accountId: string; now: Date },
): Promise<readonly Invitation[]> {
  const rows = await database.kysely
    .selectFrom('invitation')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('expires_at', '>', now)
    .orderBy('id', 'desc')
    .execute()
  return rows.map((row) => ({
    id: row.id,
    email: unsealAddress(settings, { hash: row.destination_hash, sealed: row.sealed_address }),
    role: row.role,
    invitedBy: row.invited_by,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  }))
}

/** Cancels an invitation. @returns false if it is not open. */
export async function cancelInvitation(
  { kysely }: Connection,
  { accountId, id, now }: { accountId: string; id: string; now: Date },
): Promise<boolean> {
  const row = await kysely
    .deleteFrom('invitation')
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .where('expires_at', '>', now)
    .returning('id')
    .executeTakeFirst()
  return row !== undefined
}

/** Cancels what a person has invited who is an owner no more. */
export async function cancelInvitationsBy(
  { kysely }: Connection,
  { accountId, personId }: { accountId: string; personId: string },
): Promise<void> {
  await kysely
    .deleteFrom('invitation')
    .where('account_id', '=', accountId)
    .where('invited_by', '=', personId)
    .execute()
}

/**
 * Takes the invitation of a code, for the person who signs in with its address. Call it in a transaction: it locks the people of both
 * accounts. @param accountId account that the person acts for so far. @throws Failure `not_found`, the same whatever does not fit;
 * `conflict` for a person who cannot change their account.
 */
export async function takeInvitation(
  { database, settings }: { database: Connection; settings: InvitationSettings },
  { code, personId, accountId, now }: { code: string; personId: string; accountId: string; now: Date },
): Promise<{ readonly id: string; readonly accountId: string; readonly role: MemberRole }> {
  const codeHash = hashInvitationCode(settings, code)
  const found = await database.kysely
    .selectFrom('invitation')
    .innerJoin('login_destination', 'login_destination.destination_hash', 'invitation.destination_hash')
    .select(['invitation.id', 'invitation.account_id', 'invitation.invited_by'])
    .where('invitation.code_hash', '=', codeHash)
    .where('invitation.expires_at', '>', now)
    .where('login_destination.account_id', '=', personId)
    .executeTakeFirst()
  if (found === undefined) throw noInvitation()
  await lockPeople(database, [found.account_id, accountId])
  await requireInviting(database, { accountId: found.account_id, invitedBy: found.invited_by })
  if ((await findMembership(database, personId))?.accountId === found.account_id) throw alreadyMember()
  const own = await listPeople(database, accountId)
  if (own.length !== 1 || own[0]?.personId !== personId)
    throw new Failure('conflict', 'You are one of several people of another account.', {
      hint: 'Leave it first: DELETE /api/people/{id} with your own id. One person acts for one account.',
    })
  if (accountId === found.account_id) throw alreadyMember()
  await requireNothingLeft(database, accountId)
  const taken = await database.kysely
    .deleteFrom('invitation')
    .where('id', '=', found.id)
    .returning(['id', 'account_id', 'role'])
    .executeTakeFirst()
  if (taken === undefined) throw noInvitation()
  return { id: taken.id, accountId: taken.account_id, role: taken.role }
}

/**
 * An invitation is worth as much as the word of the person who sent it. Waits for a lock of the account that is being set.
 * @throws Failure `not_found` where they are an owner no more; `conflict` while they or their account are locked.
 */
async function requireInviting(
  database: Connection,
  { accountId, invitedBy }: { accountId: string; invitedBy: string },
): Promise<void> {
  const people = await listPeople(database, accountId)
  const inviter = people.find(({ personId, role }) => personId === invitedBy && role === 'owner')
  if (inviter === undefined) throw noInvitation()
  if ((await lockAccountRow(database, accountId)) === 'active' && !inviter.isLocked) return
  throw new Failure('conflict', 'The account that invites you, or the person who did, is locked.', {
    hint: 'Tell the person who invited you. The invitation can be accepted once they have unlocked it.',
  })
}

const leftStatement: Statement = {
  name: 'people_left_behind',
  // What is held or frozen is in a balance too. The rest of `moving` has left every balance, or has not come to one yet.
  text: `select exists (select from balance where account > $1 || ':' and account < $1 || ';' and units > 0) as money,
    exists (select from access_key where account_id = $1 and status <> 'revoked') as keys,
    exists (select from card where account_id = $1 and status <> 'canceled') as cards,
    exists (select from deposit d where d.account_id = $1 and d.rank < 5
        and not exists (select from deposit_review r where r.deposit_id = d.id and r.status = 'blocked'))
      or exists (select from deposit_review where account_id = $1 and status = 'open')
      or exists (select from movement_review where account_id = $1 and status = 'open')
      or exists (select from owed_mint where account_id = $1)
      or exists (select from reservation where account_id = $1 and status = 'reserved')
      or exists (select from transfer where account_id = $1 and state in ('reserved', 'submitted', 'settlement_pending'))
      or exists (select from transfer t join wallet w on t.destination = lower(w.address)
        where w.account_id = $1 and t.state in ('reserved', 'submitted', 'settlement_pending'))
      or exists (select from relay where account_id = $1 and state in ('reserved', 'submitted', 'settlement_pending'))
      or exists (select from relay r join wallet w on r.destination = lower(w.address)
        where w.account_id = $1 and r.state in ('reserved', 'submitted', 'settlement_pending'))
      or exists (select from payout where account_id = $1 and (rank < 5 or rank = 6 and state <> 'refund_failed'))
      or exists (select from purchase where account_id = $1 and (state in ('reserved', 'signed')
        or state = 'settled' and escrow_look_at is not null))
      or exists (select from channel where account_id = $1 and status <> 'closed')
      or exists (select from swap_order where account_id = $1 and state = 'submitted')
      or exists (select from investing_order where account_id = $1 and status in ('new', 'accepted', 'partially_filled'))
      or exists (select from brokerage_transfer where account_id = $1 and status in ('new', 'pending'))
      or exists (select from dividend where account_id = $1 and status = 'announced')
      or exists (select from card_authorization where account_id = $1 and status = 'pending')
      or exists (select from card_dispute d join card_authorization a on a.id = d.authorization_id
        where a.account_id = $1 and d.status = 'open')
      or exists (select from recourse where account_id = $1 and status = 'open')
      or exists (select from payment_request where account_id = $1 and status in ('open', 'partly_paid')) as moving`,
}

interface Left {
  readonly money: boolean
  readonly keys: boolean
  readonly cards: boolean
  readonly moving: boolean
}

/** Nobody could reach what a person left in their own account, or what comes to it later. @throws Failure `conflict`. */
async function requireNothingLeft(database: Connection, accountId: string): Promise<void> {
  await waitForSpends(database, accountId)
  const [left] = await database.call<Left>(leftStatement, [accountId])
  const what = [
    ...(left?.money ? ['money'] : []),
    ...(left?.moving ? ['money on its way'] : []),
    ...(left?.keys ? ['keys'] : []),
    ...(left?.cards ? ['cards'] : []),
  ]
  if (what.length === 0) return
  throw new Failure('conflict', `Your own account has ${what.join(' and ')}, which nobody could reach.`, {
    hint: 'First send its money away, wait for what is on its way, cancel its requests for money, revoke its keys and cancel its cards; or sign in with another address and be invited to that.',
  })
}

function noInvitation(): Failure {
  return new Failure('not_found', 'No open invitation to an address of yours has this code.', {
    hint: 'Sign in with the address that the invitation was mailed to, and send the code of the newest mail. It is valid for seven days.',
  })
}

function alreadyMember(): Failure {
  return new Failure('conflict', 'You are one of the people of this account already.', {
    hint: 'GET /api/people lists them.',
  })
}

/** Deletes expired invitations. */
export async function sweepInvitations({ kysely }: Connection, now: Date): Promise<void> {
  await kysely.deleteFrom('invitation').where('expires_at', '<', now).execute()
}

function hashInvitationCode({ dataKey }: InvitationSettings, code: string): string {
  return keyedHash(dataKey, 'invitation', code)
}
