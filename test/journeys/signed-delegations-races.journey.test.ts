/** Two gateways on one database: a signed delegation makes one key, whoever sees it first, and ends on both at once. */
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Database } from '../../src/storage/database.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { type Agent, newAgent } from './agent.ts'
import { forManyTests, type Gateway, startGateway } from './gateway.ts'
import { newGuest, type Person } from './people.ts'
import { buildClaims, type Claims, childPolicy, signByHand } from './signed-delegation.ts'

const USES = 8
const MAX_CHILDREN = 256

describe.skipIf(testServerUrl === undefined)('signed delegations at two gateways', () => {
  let database: Database
  let drop = async () => {}
  const gateways: Gateway[] = []
  let owner: Person
  let root: Agent
  let child: Agent
  let rootId: string

  beforeAll(async () => {
    const created = await createTestDatabase(testServerUrl ?? '')
    drop = created.drop
    const env = { ...forManyTests, DATABASE_URL: created.url, CHAIN: 'simulated' }
    const first = await startGateway(env)
    // Delegations name one origin, as behind a balancer.
    gateways.push(first, await startGateway({ ...env, PUBLIC_ORIGIN: first.origin }))
    database = await openPostgres({ url: created.url })
  })
  afterAll(async () => {
    for (const gateway of gateways) await gateway.stop()
    await database?.close()
    await drop()
  })
  const origin = () => gateways[0]?.origin ?? ''
  beforeEach(async () => {
    owner = await newGuest(origin())
    root = await newAgent()
    child = await newAgent()
    const { body } = await owner.send('POST', '/api/agents/keys', {
      name: 'Root',
      publicKey: root.jwk,
      scopes: ['wallets:read', 'wallets:transfer', 'agents:delegate'],
      policy: {
        perTransaction: { max: '5' },
        dailyBudget: { max: '10' },
        totalBudget: { max: '10' },
        categories: { allow: ['transfer'] },
      },
    })
    rootId = z.string().parse(body.agentId)
  })

  const sign = (parent: Agent, to: Agent, changes: Claims = {}) =>
    signByHand(parent, buildClaims({ parent, child: to, origin: origin() }, changes))
  const send = async (at: 0 | 1, agent: Agent, chain: readonly string[] | null) => {
    const headers = await agent.sign({
      method: 'GET',
      url: `${origin()}/api/wallets`,
      ...(chain === null ? {} : { fields: { 'bursar-delegation': chain.join(', ') } }),
    })
    const response = await fetch(`${gateways[at]?.origin}/api/wallets`, { headers })
    return { status: response.status, body: z.looseObject({}).parse(await response.json()) }
  }
  const listMade = () =>
    database.kysely
      .selectFrom('access_key')
      .select(['id', 'path', 'jti', 'status', 'thumbprint'])
      .where(sql<boolean>`path @> array[${rootId}]::text[] and path <> '{}'`)
      .orderBy(sql`cardinality(path)`)
      .orderBy('id')
      .execute()
  const refused = (reason: string) => ({ status: 401, body: { code: 'delegation_invalid', reason } })

  it('makes one key of each generation from eight first uses at once', async () => {
    const grandchild = await newAgent()
    const policy = { ...childPolicy, dailyBudget: { max: '6' }, totalBudget: { max: '6' } }
    const earmarked = { policy, earmark: true }
    const chain = [
      sign(root, child, { ...earmarked, jti: 'task 0' }),
      sign(child, grandchild, { ...earmarked, jti: 'task 1' }),
    ]
    const uses = await Promise.all(
      Array.from({ length: USES / 2 }, () => [send(0, grandchild, chain), send(1, grandchild, chain)]).flat(),
    )
    expect(uses.map(({ status }) => status)).toEqual(Array.from({ length: USES }, () => 200))
    const made = await listMade()
    expect(made.map(({ jti, status }) => [jti, status])).toEqual([
      ['task 0', 'active'],
      ['task 1', 'active'],
    ])
    const { rows } = await sql<{ count: string }>`
      select count(*)::text as count from journal_entry where action = 'key.delegated' and actor_id = any(${[rootId, made[0]?.id ?? '']})
    `.execute(database.kysely)
    expect(rows).toEqual([{ count: '2' }])
    expect((await send(1, grandchild, null)).status).toBe(200)
  })

  it('makes one key of a jti that two keys were given', async () => {
    const others = await Promise.all(Array.from({ length: USES }, newAgent))
    const uses = await Promise.all(
      others.map((agent, use) => send(use % 2 === 0 ? 0 : 1, agent, [sign(root, agent, { jti: 'once' })])),
    )
    expect(uses.map(({ status }) => status).sort()).toEqual([
      200,
      ...Array.from({ length: USES - 1 }, () => 401),
    ])
    expect(uses.map(({ body }) => body.reason).filter((reason) => reason === 'replayed')).toHaveLength(
      USES - 1,
    )
    expect(await listMade()).toHaveLength(1)
  })

  it('ends on both at once, though one has seen its chain', async () => {
    const grandchild = await newAgent()
    const chain = [sign(root, child), sign(child, grandchild)]
    for (const at of [0, 1, 0, 1] as const) expect((await send(at, grandchild, chain)).status).toBe(200)
    const [made] = await listMade()
    expect((await owner.send('DELETE', `/api/agents/delegations/${made?.id}`)).status).toBe(200)
    for (const at of [0, 1] as const) {
      expect(await send(at, grandchild, chain)).toMatchObject(refused('revoked'))
      expect(await send(at, grandchild, null)).toMatchObject({ status: 401, body: { code: 'unknown_key' } })
    }
  })

  it('is of no known parent while the account is locked, and has ended when its parent has', async () => {
    const chain = [sign(root, child)]
    expect((await send(0, child, chain)).status).toBe(200)
    const setStatus = (status: 'active' | 'locked') =>
      database.kysely.updateTable('account').set({ status }).where('id', '=', owner.accountId).execute()
    await setStatus('locked')
    const other = await newAgent()
    for (const [agent, sent] of [
      [child, chain],
      [other, [sign(root, other)]],
    ] as const)
      for (const at of [0, 1] as const)
        expect(await send(at, agent, sent)).toMatchObject(refused('unknown_parent'))
    await setStatus('active')
    await database.kysely
      .updateTable('access_key')
      .set({ expires_at: new Date(Date.now() - 1000) })
      .where('id', '=', rootId)
      .execute()
    for (const [agent, sent] of [
      [child, chain],
      [other, [sign(root, other)]],
    ] as const)
      expect(await send(0, agent, sent)).toMatchObject(refused('expired'))
    expect(await listMade()).toHaveLength(1)
  })

  it('has 256 living children at most, and room again when one ends', async () => {
    await sql`
      insert into access_key (id, account_id, kind, name, thumbprint, public_key, scopes, created_at, expires_at, path)
      select 'key_child_' || ${rootId}::text || n, account_id, 'agent', 'Child', thumbprint || n, 'x' || n || thumbprint, '{}', created_at, now() + interval '1 day', array[id]
      from access_key, generate_series(1, ${MAX_CHILDREN}::int) n where id = ${rootId}
    `.execute(database.kysely)
    const chain = [sign(root, child)]
    expect(await send(0, child, chain)).toMatchObject({ status: 409, body: { code: 'conflict' } })
    expect(await listMade()).toHaveLength(MAX_CHILDREN)
    const [{ id } = { id: '' }] = await listMade()
    await database.kysely.updateTable('access_key').set({ status: 'revoked' }).where('id', '=', id).execute()
    expect((await send(0, child, chain)).status).toBe(200)
  })
})
