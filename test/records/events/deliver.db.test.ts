/** Deliveries to an endpoint that does not answer: pauses, one delivery at a time, and its end after two days. */
import { createServer } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { expect, it } from 'vitest'
import { newId } from '../../../src/core/base/ids.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import { fetchPublic } from '../../../src/providers/public-fetch.ts'
import { publishEvents } from '../../../src/records/events/publish.ts'
import {
  claimEndpoints,
  type DeliveryParts,
  deliverTo,
} from '../../../src/records/events/webhooks/deliver.ts'
import {
  changeEndpoint,
  createEndpoint,
  deleteEndpoint,
  findEndpoint,
} from '../../../src/records/events/webhooks/endpoints.ts'
import type { Database } from '../../../src/storage/database.ts'
import { openAccount, openKey } from '../../books/spending/scene.ts'
import { onBothEngines } from '../../engines.ts'
import { freePort } from '../../free-port.ts'

const HOUR_MS = 3_600_000
const NOON = new Date('2026-11-20T12:00:00.000Z').getTime()
const settings = { mode: 'sandbox', dataKey: Buffer.alloc(32, 7) } as const

onBothEngines('an endpoint that does not answer', (database) => {
  async function openScene(events: number) {
    let now = NOON
    const clock = () => new Date(now)
    const parts: DeliveryParts = {
      database: database(),
      clock,
      log: silentLog,
      settings,
      fetch: (request) => {
        requests += 1
        return fetchPublic(request)
      },
    }
    let requests = 0
    const accountId = await openAccount(database(), 1n)
    while ((await publishEvents(database(), clock())) > 0);
    const url = `http://127.0.0.1:${await freePort()}/`
    const { endpoint } = await database().transaction((transaction) =>
      createEndpoint(
        { database: transaction, settings, newId },
        { accountId, url, types: [], description: null, at: clock() },
      ),
    )
    for (let event = 0; event < events; event += 1) await openKey(database(), accountId)
    while ((await publishEvents(database(), clock())) > 0);
    return {
      accountId,
      endpoint,
      later: (ms: number) => {
        now += ms
      },
      /** Runs what is due. @returns the number of requests, and how it ended. */
      round: async () => {
        requests = 0
        const [claimed] = await claimEndpoints(parts, 10)
        // A second gateway finds nothing to claim.
        expect(await claimEndpoints(parts, 10)).toEqual([])
        const ended =
          claimed === undefined ? 'idle' : await deliverTo(parts, claimed, new AbortController().signal)
        return { requests, ended }
      },
    }
  }
  const readDeliveries = (on: Database, id: string) =>
    on.kysely.selectFrom('webhook_delivery').selectAll().where('endpoint_id', '=', id).execute()

  it('is tried rarely, with one delivery, and is disabled after two days', async () => {
    const { accountId, endpoint, later, round } = await openScene(20)
    expect(await round()).toEqual({ requests: 16, ended: 'done' })
    // Ten failures in a row: a pause, although four deliveries were never tried.
    expect(await round()).toEqual({ requests: 0, ended: 'idle' })
    later(12 * HOUR_MS)
    expect(await round()).toEqual({ requests: 1, ended: 'done' })
    later(37 * HOUR_MS)
    expect(await round()).toEqual({ requests: 1, ended: 'given_up' })
    expect(await findEndpoint(database(), { accountId, id: endpoint.id })).toMatchObject({
      status: 'disabled',
    })
    expect(new Set((await readDeliveries(database(), endpoint.id)).map(({ status }) => status))).toEqual(
      new Set(['failed']),
    )
    await publishEvents(database(), new Date())
    const { rows: events } = await sql`
      select type, object_id from published_event where account_id = ${accountId} order by sequence desc`.execute(
      database().kysely,
    )
    expect(events[0]).toEqual({ type: 'webhook.disabled', object_id: endpoint.id })
    later(HOUR_MS)
    expect(await round()).toEqual({ requests: 0, ended: 'idle' })
  })

  it('is tried at once with all that is open when its owner activates it or gives it another URL', async () => {
    const { accountId, endpoint, later, round } = await openScene(12)
    expect(await round()).toEqual({ requests: 12, ended: 'done' })
    later(1_000)
    for (const to of [{ status: 'active' }, { url: `http://127.0.0.1:${await freePort()}/` }] as const) {
      expect(await round()).toEqual({ requests: 0, ended: 'idle' })
      const found = await findEndpoint(database(), { accountId, id: endpoint.id })
      if (found === undefined) throw new Error('the endpoint is gone')
      await changeEndpoint({ database: database(), settings }, found, to, new Date(NOON + 1_000))
      // Eight side by side, then the pause.
      expect((await round()).requests).toBeGreaterThan(8)
    }
    // The other scenes claim what is due in the same database.
    await deleteEndpoint(database(), endpoint.id)
  })

  it('leaves its worker to others after half a minute, and goes on in its turn', async () => {
    const { endpoint, later, round } = await openScene(40)
    const receiver = createServer((request, response) => {
      // The receiver answers just in time; eight requests side by side last as long as one.
      later(9_900 / 8)
      request.resume().on('end', () => response.writeHead(204).end())
    })
    receiver.listen(Number(new URL(endpoint.url).port), '127.0.0.1')
    try {
      const rounds = [await round(), await round(), await round()].map(({ requests }) => requests)
      expect(rounds[0]).toBeLessThan(40)
      expect(rounds.reduce((sum, requests) => sum + requests)).toBe(40)
      const deliveries = await readDeliveries(database(), endpoint.id)
      expect(new Set(deliveries.map(({ status }) => status))).toEqual(new Set(['delivered']))
    } finally {
      receiver.close()
    }
  })

  it('is not given up when its owner disables it, and begins anew when it is activated', async () => {
    const { accountId, endpoint, later, round } = await openScene(12)
    await round()
    later(49 * HOUR_MS)
    const set = async (status: 'active' | 'disabled') => {
      const found = await findEndpoint(database(), { accountId, id: endpoint.id })
      if (found === undefined) throw new Error('the endpoint is gone')
      await changeEndpoint(
        { database: database(), settings },
        found,
        { status },
        new Date(NOON + 49 * HOUR_MS),
      )
    }
    await set('disabled')
    expect(await round()).toEqual({ requests: 0, ended: 'idle' })
    await set('active')
    await openKey(database(), accountId)
    while ((await publishEvents(database(), new Date('2026-11-22T13:00:00.000Z'))) > 0);
    expect(await round()).toEqual({ requests: 1, ended: 'done' })
  })

  it('stays due when its last attempts are recorded while new events are published', async () => {
    const { accountId, endpoint, round } = await openScene(1)
    await openKey(database(), accountId)
    const at = new Date(NOON)
    const delivered = { status: 'delivered', next_attempt_at: null } as const
    let publishing: Promise<number> | undefined
    await database().transaction(async ({ kysely, call }) => {
      await kysely
        .updateTable('webhook_delivery')
        .set(delivered)
        .where('endpoint_id', '=', endpoint.id)
        .execute()
      const record = { name: 'record', text: "select webhook_record($1, '[]', $2, $2, null, $2) as status" }
      expect(await call(record, [endpoint.id, at])).toEqual([{ status: 'active' }])
      publishing = publishEvents(database(), at)
      await pause(300)
    })
    expect(await publishing).toBeGreaterThan(0)
    expect(await round()).toMatchObject({ requests: 1 })
  })
})
