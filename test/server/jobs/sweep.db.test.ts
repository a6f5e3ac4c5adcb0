import { sql } from 'kysely'
import { expect, it } from 'vitest'
import { publishEvents } from '../../../src/records/events/publish.ts'
import { sweep } from '../../../src/server/jobs/sweep.ts'
import { onBothEngines } from '../../engines.ts'

const now = new Date('2026-11-20T12:00:00.000Z')
const hoursAgo = (hours: number) => new Date(now.getTime() - hours * 3_600_000)

onBothEngines('the sweep', (database) => {
  it('deletes expired rows and nothing else', async () => {
    for (const [nonce, expires_at] of [
      ['old', hoursAgo(1)],
      ['live', new Date(now.getTime() + 1)],
    ] as const)
      await database()
        .kysely.insertInto('signature_nonce')
        .values({ key_id: 'key_1', nonce, expires_at })
        .execute()
    for (const [key, opened_at] of [
      ['old', hoursAgo(25)],
      ['live', hoursAgo(1)],
    ] as const)
      await database().kysely.insertInto('rate_window').values({ key, opened_at, count: 1 }).execute()
    // The effect lies far back: its event is kept from its publication on.
    for (const at of [hoursAgo(91 * 24), hoursAgo(89 * 24)]) {
      await sql`
        select event_write('acct_1', null, 'ping', 'account', 'acct_1', '{}', ${hoursAgo(1_000 * 24)})`.execute(
        database().kysely,
      )
      await publishEvents(database(), at)
    }
    await sweep({ database: database(), clock: () => now, settings: { eventDays: 90 } })
    expect(
      (await database().kysely.selectFrom('signature_nonce').select('nonce').execute()).map(
        ({ nonce }) => nonce,
      ),
    ).toEqual(['live'])
    expect(
      (await database().kysely.selectFrom('rate_window').select('key').execute()).map(({ key }) => key),
    ).toEqual(['live'])
    const { rows: published } = await sql`select id, sequence from published_event`.execute(database().kysely)
    const events = await database().kysely.selectFrom('event').select('id').execute()
    expect(published).toEqual([{ id: events[0]?.id, sequence: 2n }])
    expect(events).toHaveLength(1)
  })

  it('deletes more than a statement does', async () => {
    const { kysely } = database()
    await sql`insert into signature_nonce select 'key_1', 'n' || n, ${hoursAgo(1)} from generate_series(1, 11000) n`.execute(
      kysely,
    )
    await sql`insert into idempotency (principal, key, fingerprint, created_at)
      select 'acct_1', 'k' || n, '', ${hoursAgo(25)} from generate_series(1, 11000) n`.execute(kysely)
    await sweep({ database: database(), clock: () => now, settings: { eventDays: 90 } })
    const nonces = await kysely.selectFrom('signature_nonce').select('nonce').execute()
    const keys = await kysely.selectFrom('idempotency').select('key').execute()
    expect([nonces, keys]).toEqual([[{ nonce: 'live' }], []])
  })
})
