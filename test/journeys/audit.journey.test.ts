/** The decision audit trail: receipts, the hash chain, and an export that verifies without the gateway. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createLocalJWKSet, jwtVerify } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { systemClock } from '../../src/core/base/clock.ts'
import { silentLog } from '../../src/core/base/log.ts'
import { openPglite } from '../../src/storage/pglite.ts'
import { bursar } from '../commands/bursar.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { newGuest, type Person } from './people.ts'

const directory = mkdtempSync(join(tmpdir(), 'bursar-audit-'))
const env = { DATA_DIR: join(directory, 'data'), CHAIN: 'simulated' }
const exported = join(directory, 'decisions.jsonl')
const jwksFile = join(directory, 'jwks.json')
const shown = z.object({
  decisions: z.array(
    z.looseObject({
      decisionId: z.string(),
      verdict: z.string(),
      receipt: z.string(),
      sequence: z.int().nullable(),
    }),
  ),
})

describe('the decision audit trail', () => {
  let gateway: Gateway
  let owner: Person
  let key: string
  beforeAll(async () => {
    gateway = await startGateway(env)
    owner = await newGuest(gateway.origin)
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'Payer',
      scopes: ['wallets:transfer'],
      policy: {
        perTransaction: { max: '5' },
        dailyBudget: { max: '12' },
        categories: { allow: ['transfer'] },
      },
    })
    key = String(body.key)
  })
  afterAll(async () => {
    await gateway?.stop()
    rmSync(directory, { recursive: true, force: true })
  })
  const transfer = async (amount: string) =>
    (
      await fetch(`${gateway.origin}/api/wallets/transfer`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          destination: '0x000000000000000000000000000000000000dEaD',
          amount,
          signature: 'sandbox',
        }),
      })
    ).status
  const decisions = async () => shown.parse((await owner.send('GET', '/api/agents/decisions')).body).decisions

  it('lists each decision with a receipt that the served keys verify, and its place in the chain', async () => {
    expect([await transfer('5'), await transfer('5'), await transfer('5'), await transfer('6')]).toEqual([
      200, 200, 403, 403,
    ])
    const response = await fetch(`${gateway.origin}/.well-known/jwks.json`)
    expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'public, max-age=300'])
    const jwks = await response.text()
    writeFileSync(jwksFile, jwks)
    const keys = createLocalJWKSet(JSON.parse(jwks))
    expect(jwks).not.toContain('"d"')
    for (
      let tries = 0;
      tries < 50 && (await decisions()).some(({ sequence }) => sequence === null);
      tries += 1
    )
      await sleep(100)
    const list = await decisions()
    expect(list.map(({ verdict }) => verdict)).toEqual(['deny', 'deny', 'allow', 'allow'])
    expect(list.map(({ sequence }) => sequence)).toEqual([4, 3, 2, 1])
    for (const { decisionId, verdict, receipt } of list) {
      const { payload, protectedHeader } = await jwtVerify(receipt, keys, {
        issuer: gateway.origin,
        typ: 'bursar-decision+jwt',
        algorithms: ['EdDSA'],
      })
      expect(payload).toMatchObject({ decisionId, verdict, accountId: owner.accountId })
      expect(protectedHeader.kid).toBe(JSON.parse(jwks).keys[0].kid)
    }
  })

  it('reports that a running gateway has the database locked, and which sources can be verified instead', async () => {
    const { code, out, err } = await bursar(['audit', 'verify'], env)
    expect([code, out]).toEqual([1, ''])
    expect(err).toMatch(/in use by process \d+.*--from-export FILE/)
  })

  it('is intact once the gateway has stopped, in the database and in its export', async () => {
    expect(await gateway.stop()).toBe(0)
    const verified = await bursar(['audit', 'verify'], env)
    expect(verified).toMatchObject({ code: 0, err: '' })
    expect(verified.out).toMatch(
      /^4 decisions, chain intact, 4 signatures verified\nHead: 4 [0-9a-f]{64}\nJournal: 1 change, chain intact, head 1 [0-9a-f]{64}\n$/,
    )
    expect((await bursar(['audit', 'export', '--out', exported], env)).code).toBe(0)
    // An empty directory: the export verifies without database or keys.
    const elsewhere = { DATA_DIR: join(directory, 'nowhere') }
    expect(
      await bursar(['audit', 'verify', '--from-export', exported, '--jwks', jwksFile], elsewhere),
    ).toEqual({ code: 0, out: verified.out, err: '' })
    const alone = await bursar(['audit', 'verify', '--from-export', exported], elsewhere)
    expect([alone.code, alone.out]).toEqual([0, verified.out])
    expect(alone.err).toContain('--jwks FILE')
  })

  it('names the row of an export in which one digit was changed', async () => {
    const lines = readFileSync(exported, 'utf8').split('\n')
    const changed = join(directory, 'changed.jsonl')
    const third = lines[3] ?? ''
    const { decisionId } = z
      .object({ decision: z.object({ decisionId: z.string() }) })
      .parse(JSON.parse(third)).decision
    writeFileSync(changed, lines.with(3, third.replace('"amount":"5"', '"amount":"4"')).join('\n'))
    const { code, out } = await bursar(['audit', 'verify', '--from-export', changed])
    expect(code).toBe(1)
    expect(out).toContain(`Broken at ${decisionId} (sequence 3): content changed`)
    expect(out).not.toContain('\u001b')
  })

  it('names the row of the database in which one digit was changed', async () => {
    const database = await openPglite({ directory: env.DATA_DIR, now: systemClock, log: silentLog })
    await database.call({ name: 'disable', text: 'alter table decision disable trigger user' }, [])
    const [row] = await database.call<{ id: string }>(
      {
        name: 'change',
        text: `update decision set facts = facts || '{"amount":"4"}'
          where id = (select decision_id from decision_seal where sequence = 2) returning id`,
      },
      [],
    )
    await database.close()
    const { code, out } = await bursar(['audit', 'verify'], env)
    expect(code).toBe(1)
    expect(out).toContain(`Broken at ${row?.id} (sequence 2): content changed`)
    expect(out).toContain('1 decision before it verified.')
  })
})
