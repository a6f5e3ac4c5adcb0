/** "bursar listen" hears, and forwards, what "bursar trigger" plays at a real gateway. */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { scenes } from '../../src/commands/scenes.ts'
import { eventTypes } from '../../src/records/events/catalogue.ts'
import { sharedGateway } from '../journeys/gateway.ts'
import { newGuest, type Person } from '../journeys/people.ts'
import { bursar, startBursar } from './bursar.ts'

const received = z.object({ id: z.string(), type: z.string() })
const GENEROUS = { timeout: 30_000 }
const home = mkdtempSync(join(tmpdir(), 'bursar-listen-'))

const gateway = { origin: sharedGateway() }
let person: Person
const servers: Server[] = []

beforeAll(async () => {
  person = await newGuest(gateway.origin)
}, 60_000)
afterAll(async () => {
  for (const server of servers) {
    server.closeAllConnections()
    server.close()
  }
  rmSync(home, { recursive: true, force: true })
})

const buildEnv = (by = person) => ({
  XDG_CONFIG_HOME: home,
  BURSAR_URL: gateway.origin,
  BURSAR_SESSION: by.token,
})
const listen = async (args: readonly string[], env: Record<string, string> = buildEnv()) => {
  const running = startBursar(['listen', ...args], env)
  await expect.poll(running.err, GENEROUS).toContain('Listening to')
  return running
}

/** Receives webhooks as another program would. @param secret of the signatures. */
async function receive(secret: () => string, answer: () => Promise<number> | number = () => 200) {
  const accepted: z.output<typeof received>[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
    )
    accepted.push(received.parse(new Webhook(secret()).verify(Buffer.concat(chunks).toString(), headers)))
    response.writeHead(await answer()).end()
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = z.object({ port: z.int() }).parse(server.address())
  return { url: `http://127.0.0.1:${port}/webhooks`, accepted }
}

it('hears and forwards every type that can be played', async () => {
  let secret = ''
  const { url, accepted } = await receive(() => secret)
  const listening = await listen(['--forward-to', url, '--json'])
  secret = z.string().parse(/whsec_\S+/.exec(listening.err())?.[0])
  const types = Object.keys(scenes)
  // Two at a time: each waits mostly for its own start.
  const play = async (type: string) => [type, await bursar(['trigger', type], buildEnv())] as const
  for (let at = 0; at < types.length; at += 2)
    for (const [type, { code, out, err }] of await Promise.all(types.slice(at, at + 2).map(play)))
      expect([type, code, err, out]).toEqual([type, 0, '', expect.stringContaining(`${type} evt_`)])
  const parseIds = (text: string) =>
    text
      .split('\n')
      .filter(Boolean)
      .map((line) => received.parse(JSON.parse(line)).id)
  await expect.poll(() => accepted.length === parseIds(listening.out()).length, GENEROUS).toBe(true)
  listening.interrupt()
  const { code, out, err } = await listening.ended
  expect(code).toBe(0)
  expect(types.filter((type) => !accepted.some((event) => event.type === type))).toEqual([])
  expect(accepted.map(({ id }) => id)).toEqual(parseIds(out))
  expect(err).toMatch(/→ 200 in \d+ ms {2}evt_/)
  expect(err).toMatch(
    new RegExp(`${accepted.length} events, ${accepted.length} delivered, 0 not delivered\\.\n$`),
  )
}, 240_000)

it('goes on printing while its target is slow, and says what it dropped', async () => {
  const secret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`
  const { url } = await receive(
    () => secret,
    () => new Promise(() => undefined),
  )
  const other = await newGuest(gateway.origin)
  const env = { ...buildEnv(other), BURSAR_WEBHOOK_SECRET: secret }
  const listening = await listen(['--types', 'card.issued', '--forward-to', url], env)
  expect(listening.err()).not.toContain(secret)
  for (let count = 0; count < 110; count += 1)
    expect((await other.send('POST', '/api/cards', {})).status).toBe(200)
  await expect.poll(() => listening.out().trim().split('\n').length, GENEROUS).toBe(110)
  expect(listening.out()).toMatch(/^\d{4}-\S+Z {2}card\.issued {2}card_\w+\n/)
  expect(listening.err()).toMatch(/dropped: 100 events wait/)
  listening.interrupt()
  expect((await listening.ended).err).toMatch(/110 events, 0 delivered, 110 not delivered\.\n$/)
}, 60_000)

it('refuses without a session, an unknown type, and a type that cannot be played', async () => {
  const none = { XDG_CONFIG_HOME: home, BURSAR_URL: gateway.origin }
  for (const [args, env, why] of [
    [['listen'], none, /Run "bursar login/],
    [['listen'], { ...none, BURSAR_SESSION: 'eyJ.x.y' }, /bursar login.*\(unauthenticated\)/],
    [['listen', '--types', 'card.eaten'], buildEnv(), /"card\.eaten" is no type/],
    [['listen'], { ...buildEnv(), BURSAR_URL: 'http://bursar.example' }, /not encrypted/],
    [['trigger', 'card.eaten'], buildEnv(), /no type of an event/],
    [['trigger', 'wallet.shortfall'], buildEnv(), /cannot be played: /],
  ] as const) {
    const { code, out, err } = await bursar(args, env)
    expect([code, out]).toEqual([1, ''])
    expect(err).toMatch(why)
  }
  const { out } = await bursar(['trigger'])
  for (const type of eventTypes.keys()) expect(out).toContain(type)
})

it('shows nothing of a hostile gateway that a terminal obeys', async () => {
  const server = createServer((_request, response) => {
    const hostile = 'see\u001b]0;x\u0007\u009b2J\u202e\nBCDF-GHJK'
    response.writeHead(200, { 'content-type': 'application/json' }).end(
      JSON.stringify({
        code: 'x',
        secret: 'y',
        userCode: hostile,
        deviceUrl: hostile,
        intervalSeconds: 1,
        expiresAt: new Date().toISOString(),
        status: 'rejected',
        session: null,
      }),
    )
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = z.object({ port: z.int() }).parse(server.address())
  const { code, err } = await bursar(['login'], {
    XDG_CONFIG_HOME: home,
    BURSAR_URL: `http://127.0.0.1:${port}`,
  })
  expect(code).toBe(1)
  expect(err).toContain('BCDF-GHJK')
  expect(err).not.toMatch(/[^\P{C}\n]/u)
})

it('hears an agent’s own events by its key file', async () => {
  const file = join(home, 'agent.json')
  const made = await bursar(['agent', 'new', '--name', 'Listener', '--out', file])
  const { publicKey } = z.object({ publicKey: z.unknown() }).parse(JSON.parse(made.out))
  const policy = {
    perTransaction: { max: '1' },
    dailyBudget: { max: '1' },
    categories: { allow: ['transfer'] },
  }
  const scopes = ['events:read', 'wallets:transfer']
  const agent = { name: 'Listener', publicKey, scopes, policy }
  expect((await person.send('POST', '/api/agents/keys', agent)).status).toBe(200)
  const none = { XDG_CONFIG_HOME: home, BURSAR_URL: gateway.origin }
  const listening = await listen(['--key', file], none)
  expect((await person.send('POST', '/api/cards', {})).status).toBe(200)
  const payment = '{"destination":"0x000000000000000000000000000000000000dEaD","amount":"0.5"}'
  const path = `${gateway.origin}/api/wallets/transfer`
  expect((await bursar(['agent', 'call', '--key', file, 'POST', path, '--data', payment])).code).toBe(0)
  await expect.poll(listening.out, GENEROUS).toMatch(/transfer\.confirmed {2}tx_\w+ {2}0\.5 USDC\n/)
  expect(listening.out()).not.toContain('card.issued')
  listening.interrupt()
  expect((await listening.ended).code).toBe(0)
})
