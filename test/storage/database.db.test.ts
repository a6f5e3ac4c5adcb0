import { sql } from 'kysely'
import { expect, it } from 'vitest'
import type { Statement } from '../../src/storage/database.ts'
import { onBothEngines } from '../engines.ts'

const at = new Date('2026-11-20T12:00:00.123Z')

onBothEngines('the database', (database) => {
  const types = {
    name: 'types',
    text: `select $1::int8 as units, $2::bytea as bytes, $3::timestamptz as at, $4::text[] as words, $5::jsonb as document,
      $6::boolean as flag, $7::int as small, '2026-11-20'::date as day, null::int8 as nothing, count(*) as count from account`,
  }
  const parameters = [
    2n ** 63n - 1n,
    Uint8Array.of(0, 255),
    at,
    ['a"b', 'c,d', '\\'],
    '{"a":[1,null]}',
    true,
    7,
  ] as const
  const expected = {
    units: 2n ** 63n - 1n,
    bytes: Uint8Array.of(0, 255),
    at,
    words: ['a"b', 'c,d', '\\'],
    document: { a: [1, null] },
    flag: true,
    small: 7,
    day: '2026-11-20',
    nothing: null,
    count: 0n,
  }

  it('accepts and returns the same types through call and through Kysely', async () => {
    expect(await database().call(types, parameters)).toEqual([expected])
    expect(await database().call(types, parameters)).toEqual([expected])
    const { rows } = await sql`
      select 9::int8 as units, '\\x00ff'::bytea as bytes, ${at}::timestamptz as at, ${'{"a":1}'}::jsonb as document,
        '2026-11-20'::date as day`.execute(database().kysely)
    expect(rows).toEqual([
      { units: 9n, bytes: Uint8Array.of(0, 255), at, document: { a: 1 }, day: '2026-11-20' },
    ])
  })

  it('reads and writes every kind of column through Kysely', async () => {
    const account = { id: 'acct_types', display_name: 'Ada', created_at: at }
    await database().kysely.insertInto('account').values(account).execute()
    const key = {
      id: 'key_types',
      account_id: account.id,
      kind: 'developer' as const,
      name: 'k',
      created_at: at,
    }
    await database()
      .kysely.insertInto('access_key')
      .values({
        ...key,
        secret_hash: Uint8Array.of(1, 2),
        scopes: ['wallets:read'],
        policy: '{"currency":"USD"}',
      })
      .execute()
    expect(await database().kysely.selectFrom('access_key').selectAll().execute()).toEqual([
      {
        ...key,
        thumbprint: null,
        public_key: null,
        secret_hash: Uint8Array.of(1, 2),
        scopes: ['wallets:read'],
        status: 'active',
        policy: { currency: 'USD' },
        policy_version: 1,
        policy_hash: null,
        expires_at: null,
        paused_at: null,
        first_used_at: null,
        path: [],
        earmark_micros: null,
        jti: null,
        claims_hash: null,
        task: null,
      },
    ])
    const result = await database()
      .kysely.updateTable('account')
      .set({ status: 'locked' })
      .where('id', '=', account.id)
      .executeTakeFirst()
    expect(result.numUpdatedRows).toBe(1n)
  })

  it('commits a transaction completely, through both interfaces', async () => {
    const count = await database().transaction(async ({ kysely, call }) => {
      await kysely.insertInto('sandbox_secret').values({ name: 'one', value: '1' }).execute()
      await call({ name: 'secret_two', text: 'insert into sandbox_secret values ($1, $2)' }, ['two', '2'])
      return (await kysely.selectFrom('sandbox_secret').selectAll().execute()).length
    })
    expect(count).toBe(2)
    expect(await database().kysely.selectFrom('sandbox_secret').selectAll().execute()).toHaveLength(2)
  })

  it('runs calls of one transaction that are made at once, and gathers them one by one', async () => {
    const doubled: Statement = {
      name: 'test_doubled',
      text: `select q.value * 2 as doubled
        from rows from (jsonb_to_recordset($1::jsonb) as (value bigint)) with ordinality as q order by q.ordinality`,
    }
    const values = Array.from({ length: 20 }, (_, index) => BigInt(index))
    const expected = values.map((value) => ({ doubled: value * 2n }))
    const inside = await database().transaction(({ gather }) =>
      Promise.all(values.map((value) => gather<{ doubled: bigint }>(doubled, { value }))),
    )
    expect(inside).toEqual(expected)
    const outside = await Promise.all(
      values.map((value) => database().gather<{ doubled: bigint }>(doubled, { value })),
    )
    expect(outside).toEqual(expected)
  })

  it('rolls a transaction back completely when its work throws', async () => {
    const failing = database().transaction(async ({ kysely }) => {
      await kysely.insertInto('sandbox_secret').values({ name: 'three', value: '3' }).execute()
      throw new Error('boom')
    })
    await expect(failing).rejects.toThrow('boom')
    expect(
      await database().kysely.selectFrom('sandbox_secret').selectAll().where('name', '=', 'three').execute(),
    ).toEqual([])
  })

  it('does not report a transaction as committed after a swallowed statement error', async () => {
    const swallowing = database().transaction(async ({ kysely, call }) => {
      await kysely.insertInto('sandbox_secret').values({ name: 'four', value: '4' }).execute()
      await call({ name: 'division', text: 'select 1 / $1::int' }, [0]).catch(() => {})
      return 'done'
    })
    await expect(swallowing).rejects.toThrow('rolled back')
    expect(
      await database().kysely.selectFrom('sandbox_secret').selectAll().where('name', '=', 'four').execute(),
    ).toEqual([])
  })

  it.each(['is committed', 'is rolled back'])('refuses statements of a transaction that %s', async (end) => {
    let late: (() => Promise<unknown>)[] = []
    const ending = database().transaction(async ({ kysely, call }) => {
      late = [
        () => kysely.selectFrom('sandbox_secret').select('name').execute(),
        () => call({ name: 'late', text: 'select 1' }, []),
      ]
      if (end === 'is rolled back') throw new Error('no')
    })
    await ending.catch(() => {})
    for (const run of late) await expect(run()).rejects.toThrow('a transaction that is over')
  })

  it('isolates an open transaction', async () => {
    const seen: number[] = []
    await Promise.all([
      database().transaction(async ({ kysely }) => {
        await kysely.insertInto('sandbox_secret').values({ name: 'five', value: '5' }).execute()
        await kysely.deleteFrom('sandbox_secret').where('name', '=', 'five').execute()
      }),
      ...Array.from({ length: 5 }, async () => {
        const rows = await database()
          .kysely.selectFrom('sandbox_secret')
          .selectAll()
          .where('name', '=', 'five')
          .execute()
        seen.push(rows.length)
      }),
    ])
    expect(seen).toEqual([0, 0, 0, 0, 0])
  })

  it('runs Kysely’s own transactions too', async () => {
    const own = database()
      .kysely.transaction()
      .execute(async (transaction) => {
        await transaction.insertInto('sandbox_secret').values({ name: 'six', value: '6' }).execute()
        throw new Error('boom')
      })
    await expect(own).rejects.toThrow('boom')
    expect(
      await database().kysely.selectFrom('sandbox_secret').selectAll().where('name', '=', 'six').execute(),
    ).toEqual([])
  })

  it('has nothing left to migrate, and reports it', async () => {
    expect(await database().pendingMigrations()).toEqual([])
    expect(await database().migrate()).toEqual([])
  })

  it('passes statement errors through', async () => {
    await expect(
      database().call({ name: 'wrong', text: 'select * from no_such_table' }, []),
    ).rejects.toMatchObject({ code: '42P01' })
  })
})
