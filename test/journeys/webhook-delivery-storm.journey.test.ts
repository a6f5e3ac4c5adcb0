/**
 * 20,000 events to ten endpoints over two gateways, one of which is killed: one endpoint is dead, one slow, one fails half of
 * the events once. Every event arrives at each live endpoint, signed, and no account's event at another's.
 */
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Database } from '../../src/storage/database.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { freePort } from '../free-port.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { newGuest, type Person } from './people.ts'
import { type Receiver, startReceiver } from './webhook-receiver.ts'

const ENDPOINTS = 10
const EVENTS_EACH = 2_000
const KILLED_AFTER = 500
/** Far longer than deliveries take: a slow machine is no loss. */
const ENDS_WITHIN_MS = 180_000
const [DEAD, SLOW, FLAKY] = [0, 1, 2]

describe.skipIf(testServerUrl === undefined)('a storm of webhook deliveries', () => {
  let database: Database
  let drop = async () => {}
  const gateways: Gateway[] = []
  const receivers: Receiver[] = []
  const people: Person[] = []

  beforeAll(async () => {
    const created = await createTestDatabase(testServerUrl ?? '')
    drop = created.drop
    database = await openPostgres({ url: created.url })
    const env = { DATABASE_URL: created.url, CHAIN: 'simulated', RATE_MUTATIONS: '100000/60' }
    gateways.push(await startGateway(env), await startGateway(env))
    const failedOnce = new Set<string>()
    for (let index = 0; index < ENDPOINTS; index += 1) {
      const receiver = await startReceiver((response, { id, sequence }) => {
        if (index === SLOW) return void setTimeout(() => response.writeHead(200).end(), 40)
        const fails = index === FLAKY && sequence % 2 === 0 && !failedOnce.has(id)
        if (fails) failedOnce.add(id)
        response.writeHead(fails ? 500 : 200).end()
      })
      const person = await newGuest(gateways[0]?.origin ?? '')
      const url = index === DEAD ? `http://127.0.0.1:${await freePort()}/` : receiver.url
      const { body } = await person.send('POST', '/api/webhook-endpoints', { url, types: ['card.updated'] })
      receiver.trust(z.string().parse(body.secret))
      receivers.push(receiver)
      people.push(person)
    }
  }, 300_000)
  afterAll(async () => {
    for (const gateway of gateways)
      if (gateway.process.exitCode === null && gateway.process.signalCode === null) await gateway.stop()
    await Promise.all(receivers.map((receiver) => receiver.close()))
    await database?.close()
    await drop()
  }, 60_000)

  it('loses none, over a kill -9', async () => {
    // Each statement changes one card of every account, and some of them are undone.
    for (let round = 0; round < EVENTS_EACH; round += 1) {
      if (round === KILLED_AFTER) {
        gateways[0]?.process.kill('SIGKILL')
        await once(gateways[0]?.process ?? process, 'exit')
      }
      const change = database.transaction(async ({ kysely }) => {
        await kysely
          .updateTable('card')
          .set(({ eb }) => ({ version: eb('version', '+', 1) }))
          .execute()
        if (round % 50 === 49) throw new Error('undone')
      })
      if (round % 50 === 49) await expect(change).rejects.toThrow('undone')
      else await change
    }
    const live = receivers.filter((_, index) => index !== DEAD)
    const expected = (EVENTS_EACH * 49) / 50
    const distinct = ({ received }: Receiver) => new Set(received.map(({ event }) => event.id)).size
    const endsAt = performance.now() + ENDS_WITHIN_MS
    while (performance.now() < endsAt && live.some((receiver) => distinct(receiver) < expected))
      await pause(100)

    const events = await database.kysely
      .selectFrom('event')
      .select(['account_id', 'id'])
      .where('type', '=', 'card.updated')
      .execute()
    for (const [index, receiver] of receivers.entries()) {
      const own = events.filter(({ account_id }) => account_id === people[index]?.accountId)
      expect(own).toHaveLength(expected)
      const arrived = new Set(receiver.received.map(({ event }) => event.id))
      expect(own.filter(({ id }) => !arrived.has(id))).toHaveLength(index === DEAD ? expected : 0)
      expect(receiver.forged).toEqual([])
      const strangers = receiver.received.filter(({ event }) => event.accountId !== people[index]?.accountId)
      expect(strangers).toEqual([])
    }
    // An answer arrives before it is recorded, and one that the killed gateway had not recorded is delivered once more.
    const states = async () => {
      const rows = await database.kysely
        .selectFrom('webhook_delivery')
        .select(({ fn }) => ['status', fn.countAll<bigint>().as('deliveries')])
        .groupBy('status')
        .execute()
      return Object.fromEntries(rows.map(({ status, deliveries }) => [status, Number(deliveries)]))
    }
    await expect
      .poll(states, { timeout: 30_000, interval: 200 })
      .toEqual({ delivered: expected * (ENDPOINTS - 1), pending: expected })
  }, 300_000)
})
