/** A stream whose account is busy with events that its reader does not see. */
import { afterEach, expect, it, vi } from 'vitest'
import { publishEvents } from '../../../src/records/events/publish.ts'
import { createEventWatches } from '../../../src/records/events/watch-events.ts'
import { openEventStream } from '../../../src/server/http/event-stream.ts'
import eventsList from '../../../tools/events/list.ts'
import { openKey } from '../../books/spending/scene.ts'
import { onBothEngines } from '../../engines.ts'
import { buildKeyPrincipal, newPerson, noon, servicesOn } from '../../kernel/scene.ts'

onBothEngines('a stream of events', (database) => {
  afterEach(() => {
    vi.useRealTimers()
  })

  it('shows that it is alive every 15 seconds, and ends with its key, whatever other keys do', async () => {
    const eventWatches = createEventWatches(database())
    const services = await servicesOn(database(), { eventWatches })
    const { account } = await newPerson(database())
    const id = await openKey(database(), account.id)
    await database()
      .kysely.updateTable('access_key')
      .set({ scopes: ['events:read'] })
      .where('id', '=', id)
      .execute()
    /** The time that passes is also that of the database's limits: a read in flight would run into them. */
    const idle = async () => {
      do await new Promise((resolve) => setImmediate(resolve))
      while (database().connections().busy > 0)
    }
    const passes = async (ms: number) => {
      await openKey(database(), account.id)
      await publishEvents(database(), noon)
      await eventWatches.check()
      await idle()
      vi.setSystemTime(Date.now() + ms)
      await vi.advanceTimersByTimeAsync(ms)
    }
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] })
    const { body } = await openEventStream(services, {
      principal: buildKeyPrincipal(account, { id, scopes: ['events:read'] }),
      tool: eventsList,
      raw: { type: 'transfer.confirmed' },
      ending: new AbortController().signal,
      isHead: false,
    })
    const reader = body?.getReader()
    const read = async () => {
      const { value } = (await reader?.read()) ?? {}
      return value === undefined ? null : new TextDecoder().decode(value)
    }
    expect(await read()).toMatch(/^id: /)

    let heard: string | null | undefined
    const reading = read().then((text) => {
      heard = text
    })
    for (let seconds = 0; seconds < 20; seconds += 4) await passes(4_000)
    await vi.waitFor(() => expect(heard).toBe(': quiet\n\n'))
    await reading
    await database()
      .kysely.updateTable('access_key')
      .set({ status: 'revoked' })
      .where('id', '=', id)
      .execute()
    const ended = read().then((text) => {
      heard = text
    })
    for (let seconds = 0; seconds < 20; seconds += 4) await passes(4_000)
    await vi.waitFor(() => expect(heard).toBeNull())
    await ended
  })
})
