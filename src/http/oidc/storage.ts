/**
 * What an OpenID provider keeps between requests, in the database: several gateways on one database are one provider. Knows
 * nothing of a particular provider.
 * @see https://github.com/panva/node-oidc-provider/blob/v9.x/example/my_adapter.js
 */
import { sql } from 'kysely'
import type { Adapter, AdapterFactory, AdapterPayload } from 'oidc-provider'
import type { Clock } from '../../base/clock.ts'
import type { Connection } from '../../storage/database.ts'

/** A record as it lies there. */
interface Row {
  readonly payload: unknown
  readonly consumed_at: Date | null
}

/** The storage of a provider, by the names that its library gives its models. */
export function createOpenIdStorage({
  database,
  clock,
}: {
  database: Connection
  clock: Clock
}): AdapterFactory {
  return (model) => storageOf(model, database, clock)
}

/** Keeps a record where there is none of its id yet. @returns the first one's payload, whoever came with it. */
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
  return payloadOf(await found.where('model', '=', model).where('id', '=', id).executeTakeFirst())
}

/** The id of a record of a grant that is neither over nor used up; undefined: it has none. */
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

/** Keeps a record for longer than it was written for. */
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

/** The ids of the grants that an account has given a client. */
export async function grantsOf(
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

function storageOf(model: string, { kysely }: Connection, clock: Clock): Adapter {
  /** Records that have not ended. */
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
      return payloadOf(await live().where('id', '=', id).executeTakeFirst())
    },
    async findByUid(uid) {
      return payloadOf(await live().where('uid', '=', uid).executeTakeFirst())
    },
    // Of the device flow, which is not offered.
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
      // The library looks first and consumes then: of two at the same moment the row decides.
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

function payloadOf(row: Row | undefined): AdapterPayload | undefined {
  if (row === undefined) return undefined
  const { payload, consumed_at } = row
  if (typeof payload !== 'object' || payload === null) throw new Error('an OpenID record is an object')
  return {
    ...payload,
    ...(consumed_at === null ? {} : { consumed: Math.floor(consumed_at.getTime() / 1000) }),
  }
}
