import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Principal } from '../../src/core/base/principal.ts'
import { Failure } from '../../src/core/failures/failure.ts'
import { requireCaller, type Services } from '../../src/kernel/context.ts'
import { run } from '../../src/kernel/run.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { createDatabaseRailControls } from '../../src/providers/rail-controls/database.ts'
import { createRemoteRailControls } from '../../src/providers/rail-controls/remote.ts'
import { onBothEngines } from '../engines.ts'
import { buildCall, buildKeyPrincipal, newPerson, servicesOn } from './scene.ts'

const events: string[] = []

/** Stores a note: one row. The text decides the outcome. */
const keepNote = defineTool({
  name: 'notes.keep',
  title: 'Keep',
  summary: 'Keep a note.',
  route: 'POST /notes',
  who: 'account',
  scopes: ['wallets:read'],
  effect: 'write',
  proof: 'none',
  mcp: false,
  rail: 'wallet-transfer',
  input: z.strictObject({
    name: z.string(),
    text: z.string(),
    end: z.enum(['well', 'badly', 'late']).default('well'),
  }),
  output: z.strictObject({ name: z.string(), at: z.string() }),
  failures: ['conflict'],
  run: async (context, { name, text, end }) => {
    events.push(`run ${name}`)
    context.afterCommit(async (pool) => {
      const kept = await pool.kysely.selectFrom('sandbox_secret').select('name').execute()
      events.push(`after ${kept.length > 0 ? 'commit' : 'nothing'}`)
      if (end === 'late') throw new Failure('provider_unavailable', 'The provider is down.')
    })
    await context.database.transaction((inner) =>
      inner.kysely.insertInto('sandbox_secret').values({ name, value: text }).execute(),
    )
    if (end === 'badly') throw new Failure('conflict', 'No.')
    return { name, at: context.now.toISOString() }
  },
})

/** Calls another system, outside any transaction of the kernel. */
let gate: Promise<void> = Promise.resolve()
const callOther = defineTool({
  name: 'notes.ask',
  title: 'Ask',
  summary: 'Call another system.',
  route: 'POST /notes/ask',
  who: 'account',
  scopes: ['wallets:read'],
  effect: 'write',
  proof: 'none',
  mcp: false,
  ownTransactions: true,
  shownOnce: ['secret'],
  input: z.strictObject({ name: z.string(), end: z.enum(['well', 'badly']).default('well') }),
  output: z.strictObject({ name: z.string(), secret: z.string().nullable() }),
  failures: ['conflict'],
  run: async (_context, { name, end }) => {
    events.push(`ask ${name}`)
    await gate
    if (end === 'badly') throw new Failure('conflict', 'No.')
    return { name, secret: 'shown' }
  },
})

onBothEngines('a write through the kernel', (database) => {
  let services: Services
  let person: Extract<Principal, { kind: 'session' }>

  beforeEach(async () => {
    services = await servicesOn(database())
    person = await newPerson(database())
  })
  afterEach(async () => {
    events.splice(0)
    await database().kysely.deleteFrom('sandbox_secret').execute()
    await database().kysely.deleteFrom('rail_control').execute()
  })

  const keep = (input: unknown, idempotencyKey: string | null = null, principal: Principal = person) =>
    run(keepNote, buildCall(services, principal, { idempotencyKey }), input)
  const notes = async () =>
    (await database().kysely.selectFrom('sandbox_secret').select('name').orderBy('name').execute()).map(
      ({ name }) => name,
    )
  const note = (name: string, end = 'well') => ({ name, text: 'x', end })

  it('answers and commits, then runs its after-commit work', async () => {
    expect(await keep(note('a'))).toEqual({
      body: { name: 'a', at: '2026-11-20T12:00:00.000Z' },
      replayed: false,
      decisionId: null,
    })
    expect(await notes()).toEqual(['a'])
    expect(events).toEqual(['run a', 'after commit'])
  })

  it('answers a repeated idempotency key with the first answer, without repeating the work', async () => {
    const first = await keep(note('a'), 'once')
    expect(await keep(note('a'), 'once')).toEqual({ body: first.body, replayed: true, decisionId: null })
    expect(events).toEqual(['run a', 'after commit'])
  })

  it('treats an omitted default as the same request', async () => {
    await keep({ name: 'a', text: 'x' }, 'once')
    expect((await keep({ text: 'x', end: 'well', name: 'a' }, 'once')).replayed).toBe(true)
  })

  it('rejects an idempotency key with another body', async () => {
    await keep(note('a'), 'once')
    await expect(keep(note('b'), 'once')).rejects.toMatchObject({ code: 'idempotency_key_reused' })
    expect(await notes()).toEqual(['a'])
  })

  it('separates the idempotency keys of different callers', async () => {
    await keep(note('a'), 'once')
    const other = await newPerson(database())
    expect((await keep(note('b'), 'once', other)).replayed).toBe(false)
    const key = buildKeyPrincipal(person.account, { scopes: ['wallets:read'] })
    expect((await keep(note('c'), 'once', key)).replayed).toBe(false)
    expect(await notes()).toEqual(['a', 'b', 'c'])
  })

  describe('of a tool that calls other systems', () => {
    const callExternal = (input: unknown, { now, key = 'once' }: { now?: Date; key?: string } = {}) =>
      run(
        callOther,
        { ...buildCall(services, person, { idempotencyKey: key }), ...(now === undefined ? {} : { now }) },
        input,
      )

    it('answers a repeated key with the first answer, without its secret', async () => {
      expect(await callExternal({ name: 'a' })).toEqual({
        body: { name: 'a', secret: 'shown' },
        replayed: false,
        decisionId: null,
      })
      expect(await callExternal({ name: 'a' })).toEqual({
        body: { name: 'a', secret: null },
        replayed: true,
        decisionId: null,
      })
      await expect(callExternal({ name: 'b' })).rejects.toMatchObject({ code: 'idempotency_key_reused' })
      expect(events).toEqual(['ask a'])
    })

    it('runs again after a refusal', async () => {
      await expect(callExternal({ name: 'a', end: 'badly' })).rejects.toMatchObject({ code: 'conflict' })
      await expect(callExternal({ name: 'a', end: 'badly' })).rejects.toMatchObject({ code: 'conflict' })
      expect(events).toEqual(['ask a', 'ask a'])
    })

    it('runs once for two concurrent calls, and again if the first never finished', async () => {
      let open = () => {}
      gate = new Promise((resolve) => {
        open = resolve
      })
      const first = callExternal({ name: 'a' })
      await expect.poll(() => events).toEqual(['ask a'])
      await expect(callExternal({ name: 'a' })).rejects.toMatchObject({ code: 'idempotency_in_progress' })
      await expect(callExternal({ name: 'b' })).rejects.toMatchObject({ code: 'idempotency_key_reused' })
      gate = Promise.resolve()
      const later = new Date(buildCall(services, person, {}).now.getTime() + 121_000)
      expect((await callExternal({ name: 'a' }, { now: later })).replayed).toBe(false)
      open()
      expect((await first).replayed).toBe(false)
      expect((await callExternal({ name: 'a' }, { now: later })).replayed).toBe(true)
    })
  })

  it('runs once for many concurrent calls', async () => {
    const calls = await Promise.allSettled(Array.from({ length: 8 }, () => keep(note('a'), 'once')))
    const refused = calls.filter(({ status }) => status === 'rejected')
    for (const call of refused) expect(call).toMatchObject({ reason: { code: 'idempotency_in_progress' } })
    const answered = calls.filter(({ status }) => status === 'fulfilled')
    expect(answered.filter((call) => call.status === 'fulfilled' && !call.value.replayed)).toHaveLength(1)
    expect(events.filter((event) => event === 'run a')).toHaveLength(1)
  })

  it.each([null, 'once'])(
    'stores nothing when it throws, with idempotency key %s',
    async (idempotencyKey) => {
      await expect(keep(note('a', 'badly'), idempotencyKey)).rejects.toMatchObject({ code: 'conflict' })
      expect(await notes()).toEqual([])
      expect(events).toEqual(['run a'])
      expect((await keep(note('b'), idempotencyKey)).replayed).toBe(false)
    },
  )

  it('stays committed when its after-commit work throws', async () => {
    await expect(keep(note('a', 'late'))).rejects.toMatchObject({ code: 'provider_unavailable' })
    expect(await notes()).toEqual(['a'])
  })

  it('checks the scope before the body, and the body before the rail', async () => {
    await database()
      .kysely.insertInto('rail_control')
      .values({ rail: 'wallet-transfer', enabled: false, reason: 'maintenance', updated_at: new Date(0) })
      .execute()
    const poor = buildKeyPrincipal(person.account)
    await expect(keep({}, null, { kind: 'public' })).rejects.toMatchObject({ code: 'unauthenticated' })
    await expect(keep({}, null, poor)).rejects.toMatchObject({
      code: 'insufficient_scope',
      members: { scopes: ['wallets:read'] },
    })
    await expect(keep({})).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(keep(note('a'))).rejects.toMatchObject({ code: 'rail_disabled', message: /maintenance/ })
    expect(events).toEqual([])
  })

  it('does nothing on a rail that was never enabled, in production', async () => {
    services = {
      ...services,
      railControls: createDatabaseRailControls({ database: database(), defaultEnabled: false }),
    }
    await expect(keep(note('a'))).rejects.toMatchObject({ code: 'rail_disabled' })
    expect(events).toEqual([])
  })

  it('does nothing on a rail whose state is unavailable, not even a replay', async () => {
    await keep(note('a'), 'once')
    services = { ...services, railControls: createRemoteRailControls({ url: 'http://127.0.0.1:9/' }) }
    for (const idempotencyKey of [null, 'once'])
      await expect(keep(note('a'), idempotencyKey)).rejects.toMatchObject({
        code: 'controls_unavailable',
        members: { reason: 'plan_limit', retryAfter: expect.any(Number) },
      })
    expect(events).toEqual(['run a', 'after commit'])
  })

  it('stores an answer that is equal when it is replayed', async () => {
    const odd = defineTool({
      ...plain,
      output: z.looseObject({}),
      run: async () => ({
        at: new Date(0).toISOString(),
        nested: { list: [1, null, 'ü😀'] },
        big: '1'.repeat(30),
      }),
    })
    const call = buildCall(services, person, { idempotencyKey: 'odd' })
    const first = await run(odd, call, {})
    expect(await run(odd, call, {})).toEqual({ body: first.body, replayed: true, decisionId: null })
  })
})

const plain = {
  name: 'plain.read',
  title: 'Plain',
  summary: 'Plain.',
  route: 'POST /plain',
  who: 'account',
  scopes: [],
  effect: 'write',
  proof: 'none',
  mcp: false,
  input: z.strictObject({}),
  output: z.strictObject({ who: z.string() }),
  failures: [],
} as const

describe('callerOf', () => {
  it('rejects a caller without an account', () => {
    expect(() => requireCaller({ principal: { kind: 'public' } })).toThrow(Failure)
  })
})
