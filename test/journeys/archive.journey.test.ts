/** A month that leaves a gateway's database: what its people still see, and what its operator can still prove, on both engines. */
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { bursar } from '../commands/bursar.ts'
import { createEmptyDatabase, createTestDatabase, testServerUrl } from '../engines.ts'
import { canVerify, verifyBundle } from '../records/decisions/verify-bundle.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { newGuest, type Person, requestJson } from './people.ts'

const listed = z.object({ decisions: z.array(z.looseObject({ sequence: z.int().nullable() })) })
const activity = z.object({
  entries: z.array(
    z.looseObject({
      direction: z.string(),
      status: z.string(),
      decisionId: z.string().nullish(),
      object: z.object({ id: z.string() }),
    }),
  ),
})

const month = new Date().toISOString().slice(0, 7)

describe('an archived month of PGlite', () => journey(undefined))
describe.skipIf(testServerUrl === undefined)('an archived month of PostgreSQL', () => journey(testServerUrl))

/** As somebody who has the database. */
async function changeRows(url: string, text: string): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  await client.query('set session_replication_role = replica')
  await client.query(text)
  await client.end()
}

function journey(serverUrl: string | undefined): void {
  const directory = mkdtempSync(join(tmpdir(), 'bursar-archived-'))
  const out = join(directory, 'archives', month)
  const jwks = join(directory, 'jwks.json')
  const drops: (() => Promise<void>)[] = []
  let env: Record<string, string> = {}
  let gateway: Gateway
  let owner: Person
  let key: string
  let later: string

  const transfer = async (amount: string) => {
    const response = await fetch(`${gateway.origin}/api/wallets/transfer`, {
      method: 'POST',
      headers: {
        ...{ authorization: `Bearer ${key}`, 'content-type': 'application/json', 'bursar-task': 'rent' },
      },
      body: JSON.stringify({
        ...{ destination: '0x000000000000000000000000000000000000dEaD', amount, signature: 'sandbox' },
      }),
    })
    return response.status
  }
  const read = async (path: string) => (await owner.send('GET', path)).body
  const list = async () => listed.parse(await read('/api/agents/decisions')).decisions
  /** Waits until every decision is sealed, and the transfers have ended. */
  const rest = async () => {
    for (let tries = 0; tries < 100; tries += 1) {
      const isSealed = (await list()).every(({ sequence }) => sequence !== null)
      if (isSealed && !JSON.stringify(await read('/api/activity')).includes('"pending"')) return
      await sleep(100)
    }
  }
  const command = (...words: readonly string[]) => bursar([...words], env)

  beforeAll(async () => {
    if (serverUrl !== undefined) {
      const database = await createTestDatabase(serverUrl)
      drops.push(database.drop)
      env = { DATABASE_URL: database.url }
    } else env = { DATA_DIR: join(directory, 'data') }
    env = { ...env, CHAIN: 'simulated' }
    gateway = await startGateway(env)
    owner = await newGuest(gateway.origin)
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'Payer',
      scopes: ['wallets:transfer', 'wallets:read'],
      policy: {
        perTransaction: { max: '5' },
        dailyBudget: { max: '9' },
        totalBudget: { max: '9' },
        categories: { allow: ['transfer'] },
      },
    })
    key = String(body.key)
    expect([await transfer('4'), await transfer('6')]).toEqual([200, 403])
    await rest()
    const { body: clock } = await requestJson(gateway.origin, 'POST', '/sandbox/clock', {
      body: { advance: 32 * 86_400 },
    })
    later = String(clock.now).slice(0, 7)
    // Ends of spends have the clock's time: a transfer now would end in the month before it began.
    expect(await transfer('6')).toBe(403)
    await rest()
    const { body: keys } = await requestJson(gateway.origin, 'GET', '/.well-known/jwks.json')
    writeFileSync(jwks, JSON.stringify(keys))
  })
  afterAll(async () => {
    await gateway?.stop()
    for (const drop of drops) await drop()
    rmSync(directory, { recursive: true, force: true })
  })

  it('leaves by a command, which says before what would leave', async () => {
    if (serverUrl === undefined) await gateway.stop()
    const early = await command('archive', '--month', month, '--out', out)
    expect([early.code, early.err]).toEqual([1, expect.stringContaining('the last 13 months do')])
    const words = ['archive', '--month', month, '--out', out, '--keep', '1']
    const dry = await command(...words, '--dry-run')
    expect(dry).toMatchObject({ code: 0, out: expect.stringMatching(/^2 decisions would leave; 0 at/) })
    expect(existsSync(out)).toBe(false)
    expect(await command(...words)).toMatchObject({
      code: 0,
      out: expect.stringContaining(`2 decisions of ${month} are in ${out}`),
    })
    expect(await command(...words)).toMatchObject({
      code: 0,
      out: expect.stringContaining('archived before'),
    })
  })

  it('proves itself to strangers, and the rest to its operator', async () => {
    expect(await command('audit', 'verify')).toMatchObject({
      code: 0,
      out: expect.stringMatching(
        new RegExp(`^3 decisions, chain intact, 1 signature verified, 2 of them archived until ${month}`),
      ),
    })
    expect(await command('audit', 'verify', '--archives', out)).toMatchObject({
      code: 0,
      out: expect.stringMatching(/3 signatures verified, 2 of them archived until .* and verified/),
    })
    // Where archives are, and in which order they are named, is their operator's affair; a directory that is none of them is not passed over.
    const other = join(directory, 'another')
    cpSync(out, other, { recursive: true })
    writeFileSync(join(other, 'manifest.jws'), 'x.y.z')
    for (const words of [[other], [other, out], [out, other]])
      expect(await command('audit', 'verify', '--archives', ...words)).toMatchObject({
        code: 1,
        err: expect.stringMatching(/archive of .* is missing|another is no archive that this database names/),
      })
    rmSync(other, { recursive: true })
    const file = join(directory, 'decisions.jsonl')
    expect((await command('audit', 'export', '--out', file)).code).toBe(0)
    expect(await command('audit', 'verify', '--from-export', file, '--jwks', jwks)).toMatchObject({ code: 0 })
    const books = join(directory, 'books')
    expect(await command('export', '--month', later, '--out', books)).toMatchObject({ code: 0 })
    expect((await command('export', '--month', month, '--out', join(directory, 'old'))).err).toContain(
      'have been archived',
    )
    if (!canVerify) return
    const copy = join(directory, 'copy')
    cpSync(out, copy, { recursive: true })
    const zipped = readdirSync(copy).filter((name) => name.endsWith('.gz'))
    execFileSync(
      'gunzip',
      zipped.map((name) => join(copy, name)),
    )
    for (const bundle of [copy, books])
      expect(await verifyBundle(bundle, '--jwks', jwks)).toMatchObject({ code: 0, err: '' })
  })

  it('comes back from a backup as it was', async () => {
    const backup = join(directory, 'backup')
    expect(await command('backup', '--out', backup)).toMatchObject({ code: 0 })
    const place = serverUrl === undefined ? undefined : await createEmptyDatabase(serverUrl)
    if (place !== undefined) drops.push(place.drop)
    const restored = {
      ...env,
      ...(place === undefined ? { DATA_DIR: join(directory, 'restored') } : { DATABASE_URL: place.url }),
    }
    expect(await bursar(['restore', backup], restored)).toMatchObject({ code: 0 })
    expect(await bursar(['migrate'], restored)).toMatchObject({ out: 'The database is up to date.\n' })
    expect(await bursar(['audit', 'verify', '--archives', out], restored)).toMatchObject({ code: 0 })
    if (place === undefined) return
    // Without the data key nobody can tell what was archived from what was deleted, but by the files.
    await changeRows(place.url, "delete from sandbox_secret where name = 'data'")
    const verify = ['audit', 'verify', '--jwks', jwks]
    expect(await bursar(verify, restored)).toMatchObject({
      code: 1,
      err: expect.stringContaining('deleted decisions could pass for archived ones'),
    })
    expect(await bursar([...verify, '--archives', out], restored)).toMatchObject({ code: 0 })
    // Nor can histories show what was never decided.
    await changeRows(
      place.url,
      `insert into archived_decision select 'dec_0never', at, account_id, key_id, policy_version, policy_hash, operation, facts, verdict from archived_decision`,
    )
    expect(await bursar([...verify, '--archives', out], restored)).toMatchObject({
      code: 1,
      err: expect.stringContaining('Histories show 1 archived decision that no archive has'),
    })
    await changeRows(place.url, "delete from archived_decision where id = 'dec_0never'")
    // Nor can what histories show be another than what the files say.
    await changeRows(place.url, `update archived_decision set facts = facts - 'task'`)
    expect(await bursar([...verify, '--archives', out], restored)).toMatchObject({
      code: 1,
      err: expect.stringMatching(/What histories show of dec_\w+ is not what its archive/),
    })
  })

  it('stays in histories and budgets, and names itself where its receipts are gone', async () => {
    // Sessions of guests end with their gateway; its key is known to the next.
    if (serverUrl === undefined) gateway = await startGateway(env)
    const ask = (path: string) =>
      requestJson(gateway.origin, 'GET', path, { headers: { authorization: `Bearer ${key}` } })
    const answer = await ask('/api/activity')
    expect(answer).toMatchObject({ status: 200 })
    const { entries } = activity.parse(answer.body)
    const sent = entries.filter(({ direction, status }) => direction === 'out' && status === 'completed')
    expect(sent).toMatchObject([{ amount: '4', task: 'rent' }])
    const { decisionId } = sent[0] ?? {}
    for (const query of [`id=${decisionId}`, `object=${sent[0]?.object.id}`])
      expect(await ask(`/api/agents/decisions?${query}`)).toMatchObject({
        status: 404,
        body: { detail: expect.stringContaining(`archived with ${month}`) },
      })
    expect(listed.parse((await ask('/api/agents/decisions')).body).decisions).toHaveLength(1)
    if (serverUrl !== undefined)
      expect(await owner.send('GET', `/api/agents/decisions/${decisionId}/rules`)).toMatchObject({
        ...{ status: 404, body: { detail: expect.stringContaining(`archived with ${month}`) } },
      })
    // Four of nine were spent in the archived month.
    expect([await transfer('5'), await transfer('1')]).toEqual([200, 403])
  })
}
