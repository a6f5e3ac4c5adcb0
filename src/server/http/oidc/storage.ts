/**
 * Database storage for OpenID providers, so that several gateways on one database act as one provider. Independent of
 * any particular provider. @see https://github.com/panva/node-oidc-provider/blob/v9.x/example/my_adapter.js
 */
import { sql } from 'kysely'
import type { Adapter, AdapterFactory, AdapterPayload } from 'oidc-provider'
import type { Clock } from '../../../core/base/clock.ts'
import type { Connection } from '../../../storage/database.ts'

interface Row {
  readonly payload: unknown
  readonly consumed_at: Date | null
}

/** Creates the adapter factory; model names are those of the library. */
export function createOpenIdStorage({
  database,
  clock,
}: {
  database: Connection
  clock: Clock
}): AdapterFactory {
  return (model) => createStorage(model, database, clock)
}

/** Inserts a record unless its id exists. @returns the payload that is stored, whichever process wrote it. */
export async function insertIfAbsent(
  { kysely }: Connection,
  { model, id, payload, expiresAt }: { model: string; id: string; payload: object; expiresAt: Date },
): Promise<AdapterPayload | undefined> {
  await kysely
    .insertInto('openid_record')
    .values({
      model,
      id,
      payload: JSON.stringify(payload),
      grant_id: null,
      uid: null,
      expires_at: expiresAt,
      consumed_at: null,
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const found = kysely.selectFrom('openid_record').select(['payload', 'consumed_at'])
  return parsePayload(await found.where('model', '=', model).where('id', '=', id).executeTakeFirst())
}

/** Returns the id of a grant's unexpired, unconsumed record, or undefined. */
export async function recordOfGrant(
  { database, clock }: { database: Connection; clock: Clock },
  { model, grantId }: { model: string; grantId: string },
): Promise<string | undefined> {
  const row = await database.kysely
    .selectFrom('openid_record')
    .select('id')
    .where('model', '=', model)
    .where('grant_id', '=', grantId)
    .where('consumed_at', 'is', null)
    .where('expires_at', '>', clock())
    .executeTakeFirst()
  return row?.id
}

/** Extends the lifetime of a record. */
export async function extendRecord(
  { database, clock }: { database: Connection; clock: Clock },
  { model, id, seconds }: { model: string; id: string; seconds: number },
): Promise<void> {
  await database.kysely
    .updateTable('openid_record')
    .set({ expires_at: new Date(clock().getTime() + seconds * 1000) })
    .where('model', '=', model)
    .where('id', '=', id)
    .execute()
}

/** Lists the ids of the grants between an account and a client. */
export async function listGrantIds(
  { kysely }: Connection,
  { model, accountId, clientId }: { model: string; accountId: string; clientId: string },
): Promise<string[]> {
  const rows = await kysely
    .selectFrom('openid_record')
    .select('id')
    .where('model', '=', model)
    .where(sql<string>`payload->>'accountId'`, '=', accountId)
    .where(sql<string>`payload->>'clientId'`, '=', clientId)
    .execute()
  return rows.map(({ id }) => id)
}

function createStorage(model: string, { kysely }: Connection, clock: Clock): Adapter {
  /** Selects unexpired records. */
  const live = () =>
    kysely
      .selectFrom('openid_record')
      .select(['payload', 'consumed_at'])
      .where('model', '=', model)
      .where((is) => is.or([is('expires_at', 'is', null), is('expires_at', '>', clock())]))
  return {
    async upsert(id, payload, expiresIn) {
      const record = {
        payload: JSON.stringify(payload),
        grant_id: payload.grantId ?? null,
        uid: payload.uid ?? null,
        expires_at: expiresIn === undefined ? null : new Date(clock().getTime() + expiresIn * 1000),
      }
      await kysely
        .insertInto('openid_record')
        .values({ model, id, ...record, consumed_at: null })
        .onConflict((conflict) => conflict.columns(['model', 'id']).doUpdateSet(record))
        .execute()
    },
    async find(id) {
      return parsePayload(await live().where('id', '=', id).executeTakeFirst())
    },
    async findByUid(uid) {
      return parsePayload(await live().where('uid', '=', uid).executeTakeFirst())
    },
    // Used by the device flow only, which is disabled.
    async findByUserCode() {
      return undefined
    },
    async consume(id) {
      const consumed = await kysely
        .updateTable('openid_record')
        .set({ consumed_at: clock() })
        .where('model', '=', model)
        .where('id', '=', id)
        .where('consumed_at', 'is', null)
        .returning('id')
        .executeTakeFirst()
      if (consumed !== undefined) return
      // The library checks before it consumes; the conditional update decides concurrent requests.
      const { errors } = await import('oidc-provider')
      throw new errors.InvalidGrant(`${model} already consumed`)
    },
    async destroy(id) {
      await kysely.deleteFrom('openid_record').where('model', '=', model).where('id', '=', id).execute()
    },
    async revokeByGrantId(grantId) {
      await kysely
        .deleteFrom('openid_record')
        .where('model', '=', model)
        .where('grant_id', '=', grantId)
        .execute()
    },
  }
}

function parsePayload(row: Row | undefined): AdapterPayload | undefined {
  if (row === undefined) return undefined
  const { payload, consumed_at } = row
  if (typeof payload !== 'object' || payload === null) throw new Error('an OpenID record is an object')
  return {
    ...payload,
    ...(consumed_at === null ? {} : { consumed: Math.floor(consumed_at.getTime() / 1000) }),
  }
}
