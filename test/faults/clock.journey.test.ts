/**
 * Gateways whose machine clocks are minutes off, one behind and one ahead, on one database: clients see one clock,
 * which is the database's. Clients whose own clock is off get an error.
 */
import { createPrivateKey } from 'node:crypto'
import { resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { signBankingWebhook } from '../../src/providers/banking/signature.ts'
import { signWebhook } from '../../src/providers/standard-webhooks.ts'
import type { Database } from '../../src/storage/database.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { freePort } from '../free-port.ts'
import { type Agent, newAgent } from '../journeys/agent.ts'
import { type Gateway, startGateway } from '../journeys/gateway.ts'
import { newGuest, type Person } from '../journeys/people.ts'
import { sendJson } from './ask.ts'

/** Exceeds the tolerance of any signature, webhook or challenge. */
const OFF_SECONDS = 17 * 60

describe.skipIf(testServerUrl === undefined)('two gateways with different clocks', () => {
  let database: Database
  let drop = async () => {}
  let ahead: Gateway
  let behind: Gateway
  let person: Person
  let agent: Agent

  beforeAll(async () => {
    const created = await createTestDatabase(testServerUrl ?? '')
    drop = created.drop
    database = await openPostgres({ url: created.url })
    const start = async (offSeconds: number, chain: Record<string, string> = {}) =>
      startGateway({
        DATABASE_URL: created.url,
        ...chain,
        RATE_MUTATIONS: '100000/60',
        LOG_LEVEL: 'warn',
        PORT: String(await freePort()),
        PUBLIC_ORIGIN: 'http://127.0.0.1:9999',
        NODE_OPTIONS: `--import=${resolve('test/faults/shift-clock.mjs')}`,
        CLOCK_OFF_SECONDS: String(offSeconds),
      })
    ahead = await start(OFF_SECONDS)
    const { body: reply } = await sendJson(`${ahead.local}/sandbox/credentials`)
    const { chain } = z.object({ chain: z.object({ rpcUrl: z.string() }) }).parse(reply)
    behind = await start(-OFF_SECONDS, { CHAIN_RPC_URL: chain.rpcUrl })
    person = await newGuest(ahead.local)
    agent = await newAgent()
    const { status } = await person.send('POST', '/api/agents/keys', {
      name: 'Agent',
      publicKey: agent.jwk,
      scopes: ['wallets:read', 'wallets:transfer'],
      policy: {
        perTransaction: { max: '5' },
        dailyBudget: { max: '5' },
        categories: { allow: ['transfer'] },
      },
    })
    expect(status).toBe(200)
  }, 60_000)
  afterAll(async () => {
    await behind?.stop()
    await ahead?.stop()
    await database?.close()
    await drop()
  })

  const both = () => [ahead, behind]
  /** Sends a request signed for the public origin to one of the gateways. */
  const deliver = (gateway: Gateway, path: string, headers: Record<string, string>, body?: string) =>
    fetch(`${gateway.local}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body }),
    })
  const sendSigned = (parameters: Record<string, Date> = {}, body?: string) =>
    agent.sign({
      method: body === undefined ? 'GET' : 'POST',
      url: `http://127.0.0.1:9999/api/wallets${body === undefined ? '' : '/transfer'}`,
      ...(body === undefined ? {} : { body }),
      parameters,
    })
  const at = (offSeconds: number) => new Date(Date.now() + offSeconds * 1000)

  it('log that their clocks are off', () => {
    for (const { output } of both()) expect(output()).toMatch(/clock differs from the database/)
  })

  it('accept a signature of now, and reject one beyond the tolerance', async () => {
    for (const gateway of both()) {
      expect((await deliver(gateway, '/api/wallets', await sendSigned())).status).toBe(200)
      const tolerable = { created: at(20), expires: at(60) }
      expect((await deliver(gateway, '/api/wallets', await sendSigned(tolerable))).status).toBe(200)
      for (const [created, expires] of [
        [60, 90],
        [-120, -60],
        [OFF_SECONDS, OFF_SECONDS + 30],
        [-OFF_SECONDS, -OFF_SECONDS + 30],
      ] as const) {
        const reply = await deliver(
          gateway,
          '/api/wallets',
          await sendSigned({ created: at(created), expires: at(expires) }),
        )
        expect([reply.status, await reply.json()]).toMatchObject([401, { code: 'signature_expired' }])
      }
    }
  })

  it('keep a nonce for as long as any gateway accepts its signature', async () => {
    const headers = await sendSigned()
    expect((await deliver(behind, '/api/wallets', headers)).status).toBe(200)
    const { expires_at: keptUntil } = await database.kysely
      .selectFrom('signature_nonce')
      .select('expires_at')
      .orderBy('expires_at', 'desc')
      .executeTakeFirstOrThrow()
    // The sweep of the gateway ahead uses the same clock: it deletes nothing still valid.
    expect(keptUntil.getTime()).toBeGreaterThan(Date.now() + 600_000)
    for (const gateway of both()) {
      const reply = await deliver(gateway, '/api/wallets', headers)
      expect([reply.status, await reply.json()]).toMatchObject([401, { code: 'signature_replayed' }])
    }
  })

  it('count one day’s budget, once', async () => {
    const send = async (gateway: Gateway) => {
      const body = JSON.stringify({
        destination: '0x000000000000000000000000000000000000dEaD',
        amount: '1',
        signature: 'sandbox',
      })
      return (await deliver(gateway, '/api/wallets/transfer', await sendSigned({}, body), body)).status
    }
    const statuses: number[] = []
    for (let index = 0; index < 5; index += 1) statuses.push(await send(ahead), await send(behind))
    expect(statuses.filter((status) => status === 200)).toHaveLength(5)
    expect(statuses.filter((status) => status === 403)).toHaveLength(5)
    const days = await database.kysely.selectFrom('budget_usage').select('day').distinct().execute()
    expect(days).toHaveLength(1)
    const decisions = await database.kysely.selectFrom('decision').select('at').execute()
    for (const { at: decidedAt } of decisions)
      expect(Math.abs(decidedAt.getTime() - Date.now())).toBeLessThan(60_000)
  })

  it('accept each other’s sessions, and expire them at the same moment', async () => {
    for (const gateway of both()) {
      const reply = await sendJson(`${gateway.local}/api/wallets`, {
        headers: { authorization: `Bearer ${person.token}` },
      })
      expect(reply.status).toBe(200)
    }
  })

  it('replay an answer stored by the other', async () => {
    const card = (gateway: Gateway) =>
      sendJson(`${gateway.local}/api/cards`, {
        method: 'POST',
        headers: { authorization: `Bearer ${person.token}`, 'idempotency-key': 'one-card' },
        body: { nickname: 'One' },
      })
    const first = await card(ahead)
    const again = await card(behind)
    expect([first.status, again.status]).toEqual([200, 200])
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    expect(again.body).toEqual(first.body)
  })

  it('accept webhooks of now, and reject old ones', async () => {
    const { body: reply } = await sendJson(`${ahead.local}/sandbox/credentials`)
    const secrets = z
      .object({ lithicWebhookSecret: z.string(), bridgeWebhookPrivateKey: z.string() })
      .parse(reply)
    const card = JSON.stringify({ event_type: 'card.shipped' })
    const lithic = (offSeconds: number) =>
      signWebhook({ id: `msg_${offSeconds}`, body: card, at: at(offSeconds) }, secrets.lithicWebhookSecret)
    const bank = '{}'
    const key = createPrivateKey(secrets.bridgeWebhookPrivateKey)
    const bridge = (offSeconds: number) => ({
      'x-webhook-signature': signBankingWebhook(bank, { key, at: at(offSeconds) }),
    })
    for (const gateway of both()) {
      const status = async (path: string, headers: Record<string, string>, body: string) => {
        const answer = await deliver(gateway, `/api/webhooks/${path}`, headers, body)
        return z.object({ code: z.string().optional() }).parse(await answer.json()).code ?? answer.status
      }
      expect(await status('lithic', lithic(0), card)).not.toBe('signature_invalid')
      expect(await status('bridge', bridge(0), bank)).not.toBe('signature_invalid')
      expect(await status('lithic', lithic(-330), card)).toBe('signature_invalid')
      expect(await status('lithic', lithic(330), card)).toBe('signature_invalid')
      expect(await status('bridge', bridge(-330), bank)).not.toBe('signature_invalid')
      expect(await status('bridge', bridge(-630), bank)).toBe('signature_invalid')
    }
  })
})
