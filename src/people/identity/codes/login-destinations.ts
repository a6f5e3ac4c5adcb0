/** Maps destinations to accounts. */
import type { Account } from '../../../core/base/principal.ts'
import type { Channel } from '../../../providers/messages/port.ts'
import type { Connection } from '../../../storage/database.ts'
import { findAccount } from '../store.ts'

/** @param hash the destination's keyed hash. */
export async function findOwnerId(database: Connection, hash: string): Promise<string | undefined> {
  const row = await database.kysely
    .selectFrom('login_destination')
    .select('account_id')
    .where('destination_hash', '=', hash)
    .executeTakeFirst()
  return row?.account_id
}

/** @param hash the destination's keyed hash. */
export async function findOwner(database: Connection, hash: string): Promise<Account | undefined> {
  const id = await findOwnerId(database, hash)
  return id === undefined ? undefined : findAccount(database, id)
}

/** Assigns a destination to an account. @returns false if it already belongs to one. */
export async function claimDestination(
  database: Connection,
  {
    hash,
    channel,
    sealedAddress,
    accountId,
    at,
  }: { hash: string; channel: Channel; sealedAddress: string; accountId: string; at: Date },
): Promise<boolean> {
  const row = await database.kysely
    .insertInto('login_destination')
    .values({
      destination_hash: hash,
      account_id: accountId,
      channel,
      sealed_address: Buffer.from(sealedAddress, 'base64url'),
      created_at: at,
    })
    .onConflict((conflict) => conflict.doNothing())
    .returning('destination_hash')
    .executeTakeFirst()
  return row !== undefined
}

export async function hasSignInAddress(database: Connection, accountId: string): Promise<boolean> {
  return (await destinationChannels(database, accountId)).length > 0
}

export async function destinationChannels(database: Connection, accountId: string): Promise<Channel[]> {
  const rows = await database.kysely
    .selectFrom('login_destination')
    .select('channel')
    .distinct()
    .where('account_id', '=', accountId)
    .orderBy('channel')
    .execute()
  return rows.map(({ channel }) => channel)
}
