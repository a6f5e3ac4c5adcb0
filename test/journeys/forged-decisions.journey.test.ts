/**
 * A database writer without DATA_KEY: decisions they insert are never signed, and a gateway with another key does not
 * start.
 */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { newId } from '../../src/core/base/ids.ts'
import type { Database } from '../../src/storage/database.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { bursar } from '../commands/bursar.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { newGuest, type Person } from './people.ts'

const outsideAddress = `0x${'c1'.repeat(20)}`

describe.skipIf(testServerUrl === undefined)('a writer in the database', () => {
  const env = {
    CHAIN: 'simulated',
    DATABASE_URL: '',
    DATA_KEY: 'the first data key of the deployment',
    LOG_LEVEL: 'error',
  }
  let drop = async () => {}
  let database: Database
  let gateway: Gateway
  let person: Person
  beforeAll(async () => {
    const created = await createTestDatabase(testServerUrl ?? '')
    drop = created.drop
    env.DATABASE_URL = created.url
    gateway = await startGateway(env)
    person = await newGuest(gateway.origin)
    database = await openPostgres({ url: created.url })
  })
  afterAll(async () => {
    if (gateway.process.exitCode === null) await gateway.stop()
    await database.close()
    await drop()
  })

  const pay = async (amount: string): Promise<string> => {
    const { body } = await person.send('POST', '/api/wallets/transfer', {
      amount,
      destination: outsideAddress,
      signature: 'x',
    })
    return String(body.decisionId)
  }
  const sealedIds = async () =>
    (await database.kysely.selectFrom('decision_seal').select('decision_id').execute()).map(
      ({ decision_id }) => decision_id,
    )
  /** Inserts a copy of a decision with some columns changed. */
  const insertCopy = async (of: string, changes: Record<string, unknown>): Promise<string> => {
    const now = new Date()
    const id = newId('dec', now)
    await database.call(
      {
        name: 'test_forge',
        text: `insert into decision
          select (jsonb_populate_record(null::decision, to_jsonb(d) || $2::jsonb || jsonb_build_object('written_by', pg_current_xact_id()::text))).*
          from decision d where id = $1`,
      },
      [of, JSON.stringify({ id, at: now, ...changes })],
    )
    return id
  }

  let genuine: string
  let forged: string[]
  let later: string
  beforeAll(async () => {
    genuine = await pay('1')
    await vi.waitFor(async () => expect(await sealedIds()).toContain(genuine), { timeout: 10_000 })
    forged = [
      await insertCopy(genuine, { facts: { category: 'transfer', amount: '999', asset: 'USDC' } }),
      await insertCopy(genuine, {}),
      await insertCopy(genuine, { mac: null, at: new Date(Date.now() - 3_600_000) }),
      await insertCopy(genuine, { account_id: (await newGuest(gateway.origin)).accountId }),
    ]
    later = await pay('2')
    await vi.waitFor(async () => expect(await sealedIds()).toContain(later), { timeout: 10_000 })
    await new Promise((resolve) => setTimeout(resolve, 2_500))
  })

  it('gets no signature for an inserted decision, and cannot block the sealing of genuine ones', async () => {
    const sealed = await sealedIds()
    expect(forged.filter((id) => sealed.includes(id))).toEqual([])
    expect(sealed.sort()).toEqual([genuine, later].sort())
  })

  it('raises an alarm, a log line and a notice to the owner, who gets no receipt', async () => {
    const { body } = await person.send('GET', '/api/agents/decisions')
    const shown = (body.decisions as { decisionId: string; receipt: string | null }[]).map(
      ({ decisionId, receipt }) => [decisionId, receipt !== null],
    )
    expect(shown).toContainEqual([genuine, true])
    expect(shown).toContainEqual([forged[0], false])
    expect(gateway.output()).toContain(forged[1])
    const metrics = await (await fetch(`${gateway.origin}/metrics`)).text()
    expect(metrics).toMatch(/bursar_alarms\{domain="audit"\} 4/)
  })

  it('is detected by the audit, which names the rows', async () => {
    const { code, out } = await bursar(['audit', 'verify'], env)
    expect(code).toBe(1)
    expect(out).toContain('2 decisions, chain intact, 2 signatures verified')
    for (const id of forged) expect(out).toContain(id)
    expect(out).not.toContain(genuine)
  })

  it('cannot start a gateway with another DATA_KEY, and the doctor reports why', async () => {
    const other = { ...env, DATA_KEY: 'another data key, which is as long' }
    await expect(startGateway(other)).rejects.toThrow(
      /DATA_KEY differs from the key that this database was created with/,
    )
    const { out, code } = await bursar(['doctor'], other)
    expect(code).toBe(1)
    expect(out).toMatch(/DATA_KEY differs from the key that this database was created with/)
    const same = await startGateway(env)
    expect(await same.stop()).toBe(0)
  })
})
