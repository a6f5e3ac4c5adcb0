import { sql } from 'kysely'
import { expect, it } from 'vitest'
import { systemClock } from '../../../src/core/base/clock.ts'
import { findLastEvent, findSequence, readEvents } from '../../../src/records/events/read-events.ts'
import { createEventWatches } from '../../../src/records/events/watch-events.ts'
import { publishNewEvents } from '../../../src/server/jobs/publish-events.ts'
import type { Database } from '../../../src/storage/database.ts'
import { openAccount, openKey } from '../../books/spending/scene.ts'
import { onBothEngines } from '../../engines.ts'

onBothEngines('publishing', (database) => {
  it('wakes readers although events never cease', async () => {
    const accountId = await openAccount(database(), 1n)
    // Whenever events have been published, there are new ones.
    const busy: Database = {
      ...database(),
      call: async (statement, parameters) => {
        const rows = await database().call(statement, parameters)
        if (statement.name === 'events_publish') await openKey(database(), accountId)
        // The rows are those of the statement that the caller named.
        return rows as never
      },
    }
    const eventWatches = createEventWatches(busy)
    const watch = eventWatches.open(accountId)
    const ending = new AbortController()
    const timer = setTimeout(() => ending.abort(), 10_000)
    const publishing = publishNewEvents({ database: busy, clock: systemClock, eventWatches }, ending.signal)
    await watch?.wait(0n, 8_000, ending.signal)
    expect(watch?.head()).toBeGreaterThan(0n)
    clearTimeout(timer)
    ending.abort()
    await publishing
  })

  it('numbers events without gaps in the order of their writing, and finds each by its id', async () => {
    const { kysely } = database()
    await sql`select events_publish(100000, now())`.execute(kysely)
    const [accountId, other] = [await openAccount(database(), 1n), await openAccount(database(), 1n)]
    await sql`select events_publish(100000, now())`.execute(kysely)
    // Several agents take turns, alone and in runs that are longer than a publication.
    await sql`
      select event_write(case when n % 10 = 3 then ${other} else ${accountId} end,
        case when n < 400 then 'key_' || n % 3 when n % 5 = 0 then 'key_1' end, 'ping', 'account', n::text, '{}', now())
      from generate_series(1, 900) n order by n`.execute(kysely)
    const findAll = async () =>
      (
        await sql<{ id: string; place: string; found: bigint | null; strange: bigint | null }>`
          select id, object_id as place, event_find(${accountId}, id) as found, event_find(${other}, id) as strange
          from event where account_id = ${accountId} and type = 'ping' order by object_id::int`.execute(
          kysely,
        )
      ).rows
    expect(new Set((await findAll()).map(({ found }) => found))).toEqual(new Set([null]))
    // A transaction that was open for long: its event is published after all others.
    const late = (await findAll())[1]
    await sql`delete from event_outbox where event_id = ${late?.id}`.execute(kysely)
    for (let count = 0; count < 901 / 3; count += 1) {
      if (count === 290) await sql`insert into event_outbox (event_id) values (${late?.id})`.execute(kysely)
      await sql`select events_publish(${count < 290 ? 3 : 100}, now())`.execute(kysely)
    }
    const reader = { accountId, keyId: null }
    const read = (keyId: string | null) =>
      readEvents(database(), { accountId, keyId }, { after: 0n, types: ['ping'], limit: 1_000 })
    const all = await read(null)
    const written = (await findAll()).map(({ id }) => id).filter((id) => id !== late?.id)
    expect(all.map(({ id }) => id).filter((id) => id !== late?.id)).toEqual(written)
    expect(all).toHaveLength(810)
    const first = all[0]?.sequence ?? 0n
    expect(all.map(({ sequence }) => sequence)).toEqual(all.map((_, index) => first + BigInt(index)))
    const found = new Map((await findAll()).map((row) => [row.id, row]))
    expect(all.map(({ id }) => found.get(id)?.found)).toEqual(all.map(({ sequence }) => sequence))
    expect([...found.values()].filter(({ strange }) => strange !== null)).toEqual([])
    expect(await read('key_1')).toEqual(all.filter(({ agent_id }) => agent_id === 'key_1'))
    for (const [index, { id, sequence }] of all.entries())
      if (index % 97 === 0)
        expect(
          (await readEvents(database(), reader, { after: sequence, types: null, limit: 3 })).map(
            ({ id }) => id,
          ),
          id,
        ).toEqual(all.slice(index + 1, index + 4).map(({ id }) => id))
    expect(await findLastEvent(database(), reader)).toEqual({
      id: all.at(-1)?.id,
      sequence: all.at(-1)?.sequence,
    })
    await expect(
      findSequence(database(), { accountId, keyId: 'key_0' }, all.at(-1)?.id ?? ''),
    ).rejects.toThrow('no such event is kept')
  })
})
