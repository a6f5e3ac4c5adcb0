/** Reads and writes passkey rows. */
import type { Page } from '../../../core/base/page.ts'
import type { Connection } from '../../../storage/database.ts'

/** @property publicKey COSE encoding. */
export interface Passkey {
  readonly id: string
  /** Credential id of the authenticator, base64url. */
  readonly credentialId: string
  readonly accountId: string
  readonly publicKey: Uint8Array
  /** Signature counter of the authenticator; 0 if it does not count. */
  readonly counter: number
  readonly transports: readonly string[]
  readonly deviceType: 'singleDevice' | 'multiDevice'
  readonly backedUp: boolean
  readonly createdAt: Date
  readonly lastUsedAt: Date | null
}

const columns = [
  'id',
  'credential_id',
  'account_id',
  'public_key',
  'counter',
  'transports',
  'device_type',
  'backed_up',
  'created_at',
  'last_used_at',
] as const

interface Row {
  id: string
  credential_id: string
  account_id: string
  public_key: Uint8Array
  counter: bigint
  transports: readonly string[]
  device_type: Passkey['deviceType']
  backed_up: boolean
  created_at: Date
  last_used_at: Date | null
}

function parsePasskey(row: Row): Passkey {
  return {
    id: row.id,
    credentialId: row.credential_id,
    accountId: row.account_id,
    publicKey: row.public_key,
    counter: Number(row.counter),
    transports: row.transports,
    deviceType: row.device_type,
    backedUp: row.backed_up,
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
  }
}

export async function findPasskey(database: Connection, credentialId: string): Promise<Passkey | undefined> {
  const row = await database.kysely
    .selectFrom('passkey')
    .select(columns)
    .where('credential_id', '=', credentialId)
    .executeTakeFirst()
  return row === undefined ? undefined : parsePasskey(row)
}

/** Lists an account's passkeys, newest first: all, or one more than the page's limit. */
export async function findPasskeys(
  database: Connection,
  { accountId, page }: { accountId: string; page?: Page },
): Promise<readonly Passkey[]> {
  let query = database.kysely.selectFrom('passkey').select(columns).where('account_id', '=', accountId)
  if (page !== undefined) query = query.limit(page.limit + 1)
  if (page !== undefined && page.after !== null) query = query.where('id', '<', page.after)
  return (await query.orderBy('id', 'desc').execute()).map(parsePasskey)
}

/** @returns false if the credential is already registered. */
export async function insertPasskey(database: Connection, passkey: Passkey): Promise<boolean> {
  const inserted = await database.kysely
    .insertInto('passkey')
    .values({
      id: passkey.id,
      credential_id: passkey.credentialId,
      account_id: passkey.accountId,
      public_key: passkey.publicKey,
      counter: BigInt(passkey.counter),
      transports: [...passkey.transports],
      device_type: passkey.deviceType,
      backed_up: passkey.backedUp,
      created_at: passkey.createdAt,
      last_used_at: passkey.lastUsedAt,
    })
    .onConflict((conflict) => conflict.doNothing())
    .returning('id')
    .executeTakeFirst()
  return inserted !== undefined
}

/** Records a use. @returns false if the counter was already seen, which indicates a cloned device. */
export async function recordUse(
  database: Connection,
  { id, counter, backedUp, at }: { id: string; counter: number; backedUp?: boolean; at: Date },
): Promise<boolean> {
  const row = await database.kysely
    .updateTable('passkey')
    .set({
      counter: BigInt(counter),
      last_used_at: at,
      ...(backedUp === undefined ? {} : { backed_up: backedUp }),
    })
    .where('id', '=', id)
    .where(({ eb, or, and }) =>
      or([eb('counter', '<', BigInt(counter)), and([eb('counter', '=', 0n), eb(eb.val(counter), '=', 0)])]),
    )
    .returning('id')
    .executeTakeFirst()
  return row !== undefined
}
