/** Bodies of megabytes, long answers that are streamed, and logins of sellers, which nothing keeps: on both engines. */
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createTestDatabase, testServerUrl } from '../../engines.ts'
import { type Agent, newAgent } from '../../journeys/agent.ts'
import { forManyTests, type Gateway, startGateway } from '../../journeys/gateway.ts'
import { enrollMfa, newGuest, type Person, requestJson, signInByEmail } from '../../journeys/people.ts'
import { hasAnvil } from '../selling/x402/world.ts'
import { API_KEY, COOKIE, longBytes, startLongSellers, TOKEN } from './long-sellers.ts'

const MIB = 1024 * 1024
const credentials = z.object({ chain: z.object({ rpcUrl: z.string() }) })
const login = {
  authorization: { type: 'bearer', token: TOKEN },
  headers: { Cookie: COOKIE, 'X-Api-Key': API_KEY, 'X-Kind': 'weather' },
}
const policy = { perTransaction: { max: '1' }, dailyBudget: { max: '5' }, categories: { allow: ['x402'] } }
const engines = ['PGlite', 'PostgreSQL'] as const

describe.skipIf(!hasAnvil()).each(engines)('long purchases on %s', (engine) => {
  const isPostgres = engine === 'PostgreSQL'
  if (isPostgres && testServerUrl === undefined) return
  let gateway: Gateway
  let sellers: Awaited<ReturnType<typeof startLongSellers>>
  let owner: Person
  let agent: Agent
  let readStored: () => Promise<string>
  const ends: (() => unknown)[] = []

  beforeAll(async () => {
    const directory = mkdtempSync(join(tmpdir(), 'bursar-long-'))
    ends.push(() => rmSync(directory, { recursive: true, force: true }))
    const env = { ...forManyTests, LOG_LEVEL: 'debug' }
    if (isPostgres) {
      const created = await createTestDatabase(testServerUrl ?? '')
      ends.push(created.drop)
      gateway = await startGateway({ ...env, DATABASE_URL: created.url })
      readStored = () => dumpTables(created.url)
    } else {
      gateway = await startGateway({ ...env, DATA_DIR: directory })
      readStored = async () => readFiles(directory)
    }
    ends.push(() => gateway.stop())
    const given = credentials.parse((await requestJson(gateway.origin, 'GET', '/sandbox/credentials')).body)
    sellers = await startLongSellers(given.chain.rpcUrl)
    ends.push(() => sellers.close())
    owner = await newGuest(gateway.origin)
    agent = await newKey({})
  }, 120_000)
  afterAll(async () => {
    for (const end of ends.reverse()) await end()
  }, 60_000)

  const newKey = async (more: object, by: Person = owner) => {
    const made = await newAgent()
    const { status, body } = await by.send('POST', '/api/agents/keys', {
      name: 'Buyer',
      publicKey: made.jwk,
      scopes: ['purchases:pay'],
      policy: { ...policy, ...more },
    })
    if (status !== 200) throw new Error(JSON.stringify(body))
    return made
  }
  const buy = async (path: string, input: object, idempotencyKey: string, by = agent) => {
    const response = await by.fetch({
      method: 'POST',
      url: `${gateway.origin}/api/purchases`,
      body: JSON.stringify({ url: `${sellers.origin}/${path}`, maxAmount: '0.02', ...input }),
      idempotencyKey,
    })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  const toTarget = (id: unknown) => ({
    method: 'GET',
    url: `${gateway.origin}/api/purchases/${String(id)}/response`,
    fields: { accept: 'application/octet-stream' },
  })

  it.each(['POST', 'PUT', 'PATCH', 'DELETE'])('sends 4 MiB by %s', async (method) => {
    const body = longBytes(4 * MIB)
    const { body: bought } = await buy('echo', { method, bodyBase64: body.toString('base64') }, `4-${method}`)
    expect(bought).toMatchObject({
      status: 'delivered',
      response: { truncated: true, complete: true, bytes: 4 * MIB },
    })
    const sent = sellers.paid.at(-1)
    expect([sent?.method, sent?.body.equals(body)]).toEqual([method, true])
    expect(
      Buffer.from(await (await agent.fetch(toTarget(bought.purchaseId))).arrayBuffer()).equals(body),
    ).toBe(true)
  })

  it('refuses a body of more than 4 MiB, and long bodies elsewhere', async () => {
    const over = await buy('echo', { method: 'POST', body: 'x'.repeat(4 * MIB + 1) }, 'over')
    expect([over.status, over.body.code]).toEqual([400, 'invalid_request'])
    const long = await buy('echo', { method: 'POST', body: 'x'.repeat(6 * MIB) }, 'long')
    expect([long.status, long.body.code]).toEqual([413, 'body_too_large'])
    const elsewhere = await owner.send('POST', '/api/wallets/transfer', { memo: 'x'.repeat(65_536) })
    expect(elsewhere).toMatchObject({ status: 413, body: { code: 'body_too_large' } })
  })

  it('keeps 32 MiB of an answer, says what it cut off, and streams it at the reader’s pace', async () => {
    const { body } = await buy(`long/${34 * MIB}`, {}, 'cut')
    expect(body).toMatchObject({
      status: 'delivered',
      response: { truncated: true, complete: false, bytes: 32 * MIB, contentType: 'application/x-goods' },
    })
    const expected = longBytes(32 * MIB)
    const response = await agent.fetch(toTarget(body.purchaseId))
    expect(response.headers.get('bursar-complete')).toBe('false')
    expect(response.headers.get('content-length')).toBe(String(32 * MIB))
    expect(response.headers.get('content-digest')).toBe(
      `sha-256=:${createHash('sha256').update(expected).digest('base64')}:`,
    )
    expect(Buffer.from(await response.arrayBuffer()).equals(expected)).toBe(true)
    // A reader that stops leaves the rest unread, and the gateway goes on serving.
    const target = toTarget(body.purchaseId)
    const read = await readSome(target.url, await agent.sign(target), MIB)
    expect(read).toBeLessThan(16 * MIB)
    expect((await buy('long/10', {}, 'after')).body).toMatchObject({ status: 'delivered' })
  })

  it('serves an answer that came before to a repeated call, and short ones as bytes too', async () => {
    const first = await buy(`long/${MIB}`, {}, 'again')
    const [taken, paid] = [sellers.taken(), sellers.paid.length]
    const second = await buy(`long/${MIB}`, {}, 'again')
    expect(second.body).toEqual({ ...first.body, replayed: true })
    expect([sellers.taken(), sellers.paid.length]).toEqual([taken, paid])
    const { body } = await buy('long/17', {}, 'short')
    const bytes = await (await agent.fetch(toTarget(body.purchaseId))).arrayBuffer()
    expect(Buffer.from(bytes).equals(longBytes(17))).toBe(true)
    const { fields: _, ...json } = toTarget(body.purchaseId)
    expect(await (await agent.fetch(json)).json()).toEqual(body.response)
    const stranger = await newKey({})
    expect((await stranger.fetch(toTarget(body.purchaseId))).status).toBe(404)
  })

  it('counts an answer that breaks off as none, and pays once for the whole one', async () => {
    const taken = sellers.taken()
    const { body } = await buy(`broken-once/${2 * MIB}`, {}, 'broken')
    expect(body).toMatchObject({
      status: 'delivered',
      attempts: 2,
      response: { complete: true, bytes: 2 * MIB },
    })
    expect(sellers.taken() - taken).toBe(1)
    const bytes = await (await agent.fetch(toTarget(body.purchaseId))).arrayBuffer()
    expect(Buffer.from(bytes).equals(longBytes(2 * MIB))).toBe(true)
  })

  it('logs in at the seller; another login is the same purchase', async () => {
    const { body } = await buy('login', { method: 'POST', body: { city: 'Oslo' }, ...login }, 'login')
    expect(body).toMatchObject({ status: 'delivered' })
    expect(sellers.paid.at(-1)?.headers).toMatchObject({
      authorization: `Bearer ${TOKEN}`,
      cookie: COOKIE,
      'x-api-key': API_KEY,
      'x-kind': 'weather',
    })
    const refreshed = { ...login, authorization: { type: 'bearer', token: 'refreshed' } }
    const again = await buy('login', { method: 'POST', body: { city: 'Oslo' }, ...refreshed }, 'login')
    expect(again.body).toMatchObject({ purchaseId: body.purchaseId, replayed: true })
    const other = await buy('login', { method: 'POST', body: { city: 'Rome' }, ...login }, 'login')
    expect(other.body).toMatchObject({ code: 'idempotency_key_reused' })
    expect((await buy('login', { method: 'POST', body: {} }, 'without')).body).toMatchObject({
      code: 'seller_failed',
    })
  })

  it('leaves an approved call with a login to its caller', async () => {
    const person = await signInByEmail(gateway.origin, `long-${engine.toLowerCase()}@example.com`)
    await enrollMfa(person)
    await person.send('POST', '/sandbox/faucet', {})
    const asking = await newKey({ approval: { above: '0.01' } }, person)
    const paid = sellers.paid.length
    const wanted = { method: 'POST', body: { city: 'Bern' }, ...login }
    const asked = await buy('login', wanted, 'asked', asking)
    expect(asked.body).toMatchObject({
      code: 'approval_required',
      hint: expect.stringContaining('make this call again yourself'),
    })
    const { approvalId } = asked.body
    const approved = await person.send('POST', `/api/approvals/${String(approvalId)}`, {
      decision: 'approve',
    })
    expect(approved.body).toMatchObject({ status: 'approved', answer: null, problem: null })
    expect(sellers.paid.length).toBe(paid)
    const { authorization: _, headers: __, ...without } = wanted
    const unknown = await buy('login', { ...without, headers: { 'X-Kind': 'weather' } }, 'asked', asking)
    expect(unknown.body).toMatchObject({ code: 'seller_failed' })
    const { body } = await buy('login', wanted, 'asked', asking)
    expect(body).toMatchObject({ status: 'delivered', charged: '0.02' })
    expect(sellers.paid.length).toBe(paid + 1)
    const repeated = await buy('login', wanted, 'asked', asking)
    expect(repeated.body).toMatchObject({ purchaseId: body.purchaseId, replayed: true })
    const kept = await person.send('GET', `/api/approvals/${String(approvalId)}`)
    expect(kept.body).toMatchObject({ status: 'approved', answer: { status: 'delivered', response: null } })
  })

  it('keeps no login, no long body and no answer in the clear', async () => {
    const body = `${'x'.repeat(70_000)}body-that-is-kept-nowhere`
    await buy('echo', { method: 'POST', body }, 'unkept')
    if (!isPostgres) await gateway.stop()
    const stored = await readStored()
    expect(stored).toContain('purchase_answer')
    for (const secret of [TOKEN, COOKIE, API_KEY, 'body-that-is-kept-nowhere'])
      for (const [place, text] of Object.entries({ stored, log: gateway.output() }))
        expect({ place, secret, found: text.includes(secret) }).toEqual({ place, secret, found: false })
    // The search finds what is stored.
    expect(stored).toContain(`${sellers.origin}/login`)
  })
})

/** Every row of every table as text; bytes are searched as text too. */
async function dumpTables(url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<{ name: string }>(
      `select quote_ident(table_schema) || '.' || quote_ident(table_name) as name from information_schema.tables
       where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')`,
    )
    const texts: string[] = []
    for (const { name } of rows) {
      texts.push(name)
      const found = await client.query<Record<string, unknown>>(`select * from ${name}`)
      for (const row of found.rows)
        for (const value of Object.values(row))
          texts.push(Buffer.isBuffer(value) ? value.toString('latin1') : (JSON.stringify(value) ?? ''))
    }
    return texts.join('\n')
  } finally {
    await client.end()
  }
}

function readFiles(directory: string): string {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name)).toString('latin1'))
    .join('\n')
}

/** Reads at least some bytes, and leaves. @returns bytes that had come by then. */
function readSome(url: string, headers: Record<string, string>, min: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(url, { headers }, (response) => {
      let size = 0
      response.on('data', (chunk: Buffer) => {
        size += chunk.length
        if (size < min) return
        response.destroy()
        resolve(size)
      })
      response.on('error', reject)
    })
    sent.on('error', reject)
    sent.end()
  })
}
