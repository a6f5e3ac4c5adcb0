/**
 * What an OpenID provider keeps between requests, in the database: several gateways on one database are one provider. Knows
 * nothing of a particular provider.
 * @see https://github.com/panva/node-oidc-provider/blob/v9.x/example/my_adapter.js
 */
import type { Adapter, AdapterFactory, AdapterPayload } from 'oidc-provider'
import type { Clock } from '../../clock.ts'
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
