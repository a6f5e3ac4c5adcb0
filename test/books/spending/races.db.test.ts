import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { available, external } from '../../../src/books/ledger/accounts.ts'
import { balances } from '../../../src/books/ledger/balances.ts'
import { post } from '../../../src/books/ledger/post.ts'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { sweepIdempotency, withIdempotency } from '../../../src/books/spending/idempotency.ts'
import { releaseSpend } from '../../../src/books/spending/release.ts'
import { reserveSpend, reserveSpends } from '../../../src/books/spending/reserve.ts'
import { createReserveQueue } from '../../../src/books/spending/reserve-queue.ts'
import { settleSpend } from '../../../src/books/spending/settle.ts'
import { lockAccount } from '../../../src/people/identity/locks.ts'
import type { Database } from '../../../src/storage/database.ts'
import { openPostgres } from '../../../src/storage/postgres.ts'
import { blockedCall, lockBalance } from '../../blocked-call.ts'
import { createTestDatabase, testServerUrl } from '../../engines.ts'
import {
  buildSpend,
  capAccount,
  deposit,
  noon,
  openAccount,
  openKey,
  place,
  readUsage,
  unlimited,
} from './scene.ts'

/** Two pools stand for two processes. */
describe.skipIf(testServerUrl === undefined)('races on PostgreSQL', () => {
  let pools: Database[] = []
  let drop = async () => {}
  const pool = (index: number): Database => {
    const found = pools[index % pools.length]
    if (found === undefined) throw new Error('not open')
    return found
  }
  const many = <Result>(count: number, start: (index: number) => Promise<Result>) =>
    Promise.all(Array.from({ length: count }, (_, index) => start(index)))
  /** As many at a time as there are connections: more would only wait for a connection. */
  const inLanes = async <Result>(count: number, start: (index: number) => Promise<Result>, lanes = 32) => {
    const results: Result[] = []
    let next = 0
    await many(lanes, async () => {
      while (next < count) {
        const index = next++
        results[index] = await start(index)
      }
    })
    return results
  }
  const tally = (verdicts: readonly { verdict: string }[]) => {
    const counts: Record<string, number> = {}
    for (const { verdict } of verdicts) counts[verdict] = (counts[verdict] ?? 0) + 1
    return counts
  }

  /** Deadlocks that the server has detected so far. A session reports its own after a second of idling. */
  const countDeadlocks = async (database: Database) => {
    await pause(1_200)
    const [row] = await database.call<{ deadlocks: bigint }>(
      {
        name: 'deadlocks',
        text: 'select deadlocks from pg_stat_database where datname = current_database()',
      },
      [],
    )
    return row?.deadlocks ?? -1n
  }

  beforeAll(async () => {
    const created = await createTestDatabase(testServerUrl ?? '')
    drop = created.drop
    pools = await many(2, () => openPostgres({ url: created.url, poolSize: 16 }))
    await Promise.all(pools.map((database) => database.migrate()))
  })
  afterAll(async () => {
    await Promise.all(pools.map((database) => database.close()))
    await drop()
  })

  it('allows exactly what fits a budget: 142 of 1000', async () => {
    const accountId = await openAccount(pool(0), 1_000_000n)
    const keyId = await openKey(pool(0), accountId)
    const limits = { ...unlimited, dailyMaxMicros: 1_000n }
    const verdicts = await inLanes(1_000, (index) =>
      reserveSpend(pool(index), buildSpend({ accountId, keyId, limits }, 7n)),
    )
    expect(tally(verdicts)).toEqual({ allow: 142, deny: 858 })
    expect(await readUsage(pool(0), keyId)).toEqual({ usedMicros: 994n, count: 142 })
    expect(await balances(pool(0), accountId)).toMatchObject([{ available: 999_006n, held: 994n }])
  })

  it('allows no spend of an account once it is locked, by a person or a key', async () => {
    const accountId = await openAccount(pool(0), 1_000_000n)
    const keyId = await openKey(pool(0), accountId)
    const spend = (index: number) =>
      reserveSpend(
        pool(index),
        buildSpend({ accountId, keyId: index % 2 === 0 ? keyId : null, limits: unlimited }, 1n),
      )
    const spends = many(60, spend)
    await pool(1).transaction((connection) =>
      lockAccount(connection, { accountId, reason: 'person', at: noon }),
    )
    const readHeld = async () => (await balances(pool(0), accountId))[0]?.held ?? 0n
    const held = await readHeld()
    const verdicts = tally(await spends)
    expect(await readHeld()).toBe(held)
    expect(BigInt(verdicts.allow ?? 0)).toBe(held)
    expect(await spend(0)).toEqual({ verdict: 'account_locked' })
    expect(await spend(1)).toEqual({ verdict: 'account_locked' })
  })

  it('allows exactly what fits the funds of several keys, and restores the others’ budgets', async () => {
    const accountId = await openAccount(pool(0), 1_000n)
    const keys = await many(4, () => openKey(pool(0), accountId))
    const verdicts = await inLanes(400, (index) =>
      reserveSpend(pool(index), buildSpend({ accountId, keyId: keys[index % 4] ?? '' }, 7n)),
    )
    expect(tally(verdicts)).toEqual({ allow: 142, insufficient_funds: 258 })
    const usages = await Promise.all(keys.map((keyId) => readUsage(pool(0), keyId)))
    expect(usages.reduce((total, { usedMicros }) => total + usedMicros, 0n)).toBe(994n)
  })

  it('allows exactly what fits one cap over new keys of an account', async () => {
    const accountId = await openAccount(pool(0), 1_000_000n)
    const keys = await many(20, () => openKey(pool(0), accountId))
    await capAccount(pool(0), accountId, 100n)
    const verdicts = await inLanes(200, (index) =>
      reserveSpend(pool(index), buildSpend({ accountId, keyId: keys[index % 20] ?? '' }, 7n)),
    )
    expect(tally(verdicts)).toEqual({ allow: 14, deny: 186 })
  })

  it('reserves once for 40 concurrent calls with one idempotency key', async () => {
    const accountId = await openAccount(pool(0), 1_000n)
    const keyId = await openKey(pool(0), accountId)
    for (let round = 0; round < 10; round += 1) {
      const idempotency = { principal: keyId, key: `round ${round}`, fingerprint: 'same' }
      const verdicts = await many(40, (index) =>
        reserveSpend(pool(index), buildSpend({ accountId, keyId }, 7n, { idempotency })),
      )
      expect(tally(verdicts)).toEqual({ allow: 1, repeated: 39 })
      const ids = new Set(verdicts.map((verdict) => ('decisionId' in verdict ? verdict.decisionId : null)))
      expect(ids.size).toBe(1)
    }
    expect(await readUsage(pool(0), keyId)).toEqual({ usedMicros: 70n, count: 10 })
  })

  it('returns the same denial to 40 concurrent calls, decided once', async () => {
    const accountId = await openAccount(pool(0), 5n)
    const keyId = await openKey(pool(0), accountId)
    const idempotency = { principal: keyId, key: 'poor', fingerprint: 'same' }
    const verdicts = await many(40, (index) =>
      reserveSpend(pool(index), buildSpend({ accountId, keyId }, 7n, { idempotency })),
    )
    expect(tally(verdicts)).toEqual({ insufficient_funds: 40 })
    const decisions = await pool(0)
      .kysely.selectFrom('decision')
      .select('id')
      .where('key_id', '=', keyId)
      .execute()
    expect(decisions).toHaveLength(1)
  })

  it('replaces an outdated idempotency key once', async () => {
    const accountId = await openAccount(pool(0), 1_000n)
    const keyId = await openKey(pool(0), accountId)
    const idempotency = { principal: keyId, key: 'old', fingerprint: 'same' }
    const first = buildSpend({ accountId, keyId }, 7n, { idempotency })
    await reserveSpend(pool(0), first)
    await releaseSpend(pool(0), { decisionId: first.decisionId, at: noon })
    const at = new Date('2026-11-22T12:00:00.000Z')
    const verdicts = await many(40, (index) =>
      reserveSpend(pool(index), buildSpend({ accountId, keyId }, 7n, { idempotency, at })),
    )
    expect(tally(verdicts)).toEqual({ allow: 1, repeated: 39 })
  })

  it('settles or releases a spend once under concurrent attempts', async () => {
    const accountId = await openAccount(pool(0), 1_000n)
    for (let round = 0; round < 10; round += 1) {
      const request = buildSpend({ accountId, keyId: null }, 7n)
      const { decisionId } = request
      await reserveSpend(pool(0), request)
      const ends = await many(20, (index) =>
        index % 2 === 0
          ? settleSpend(pool(index), { decisionId, destination: external(place), at: noon })
          : releaseSpend(pool(index), { decisionId, at: noon }),
      )
      expect(ends.filter((end) => end === 'settled' || end === 'released')).toHaveLength(1)
    }
    expect(await trialBalance(pool(0))).toMatchObject({ balanced: true })
  })

  it('never deadlocks: reserve, settle, release and post on the same accounts and keys', async () => {
    const owners = await many(3, () => openAccount(pool(0), 10_000n))
    const keys = await Promise.all(owners.map((accountId) => openKey(pool(0), accountId)))
    const owner = (index: number) => owners[index % 3] ?? ''
    await capAccount(pool(0), owner(0), 1_000_000n)
    await inLanes(300, async (index) => {
      const idempotency = { principal: keys[index % 3] ?? '', key: `mix ${index % 100}`, fingerprint: 'same' }
      const request = buildSpend({ accountId: owner(index), keyId: keys[index % 3] ?? '' }, 3n, {
        idempotency,
      })
      const { decisionId } = request
      const transfers = [1, 2].map((step) => ({
        source: available(owner(index + step), place),
        destination: available(owner(index + step + 1), place),
        money: { asset: 'USDC' as const, units: 1n },
      }))
      await Promise.all([
        reserveSpend(pool(index), request),
        post(pool(index + 1), {
          id: `mix ${index}`,
          kind: 'test',
          reference: 'mix',
          at: noon,
          postings: transfers,
        }),
      ])
      const destination = index % 3 === 0 ? available(owner(index + 1), place) : external(place)
      await Promise.all([
        settleSpend(pool(index), { decisionId, destination, at: noon }),
        releaseSpend(pool(index + 1), { decisionId, at: noon }),
      ])
    })
    expect(await trialBalance(pool(0))).toMatchObject({ balanced: true, drifts: [] })
    const open = await pool(0)
      .kysely.selectFrom('reservation')
      .select('decision_id')
      .where('status', '=', 'reserved')
      .where('account_id', 'in', owners)
      .execute()
    expect(open).toEqual([])
  })

  it('decides batches from several processes without a deadlock: same keys, same accounts, same idempotency keys', async () => {
    const owners = await many(3, () => openAccount(pool(0), 100_000n))
    const keys = await many(6, (index) => openKey(pool(0), owners[index % 3] ?? ''))
    await capAccount(pool(0), owners[0] ?? '', 300n)
    const limits = { ...unlimited, dailyMaxMicros: 200n }
    const buildRequest = (index: number) => {
      const keyId = keys[index % 6] ?? ''
      return buildSpend({ accountId: owners[index % 3] ?? '', keyId, limits }, 7n, {
        counterparty: `0x${index % 2}`,
        cooldownSeconds: index % 5 === 0 ? 60 : null,
        idempotency: { principal: keyId, key: `batch ${index % 240}`, fingerprint: 'same' },
      })
    }
    const before = await countDeadlocks(pool(0))
    const decideRound = async (round: number) => {
      // Each process sends the same requests in another order.
      const requests = Array.from({ length: 24 }, (_, step) =>
        buildRequest(round * 8 + step * (1 + (round % 7))),
      )
      const verdicts = await reserveSpends(pool(round), requests)
      const allowed = verdicts.flatMap((verdict) => (verdict.verdict === 'allow' ? [verdict.decisionId] : []))
      const [from, to] = [owners[round % 3] ?? '', owners[(round + 1) % 3] ?? '']
      await Promise.all([
        reserveSpend(pool(round + 1), buildRequest(round)),
        post(pool(round), {
          id: `batches ${round}`,
          kind: 'test',
          reference: 'batches',
          at: noon,
          postings: [
            {
              source: available(from, place),
              destination: available(to, place),
              money: { asset: 'USDC', units: 1n },
            },
          ],
        }),
        ...allowed.map((decisionId, index) =>
          index % 3 === 0
            ? releaseSpend(pool(index), { decisionId, at: noon })
            : settleSpend(pool(index), { decisionId, destination: available(to, place), at: noon }),
        ),
        sweepIdempotency(pool(round), noon),
      ])
      return verdicts
    }
    // Four rounds ask for more than all connections already.
    const answers = await inLanes(60, decideRound, 4)
    const byKey = new Map<string, Set<string>>()
    for (const [round, verdicts] of answers.entries())
      for (const [step, verdict] of verdicts.entries()) {
        const index = round * 8 + step * (1 + (round % 7))
        if (!('decisionId' in verdict)) throw new Error(`unexpected ${verdict.verdict}`)
        const name = `${index % 6} ${index % 240}`
        byKey.set(name, (byKey.get(name) ?? new Set()).add(verdict.decisionId))
      }
    expect([...byKey.values()].filter(({ size }) => size !== 1)).toEqual([])
    for (const keyId of keys) expect((await readUsage(pool(0), keyId)).usedMicros <= 200n).toBe(true)
    const ofFirst = await Promise.all([keys[0], keys[3]].map((keyId) => readUsage(pool(0), keyId ?? '')))
    expect(ofFirst.reduce((total, { usedMicros }) => total + usedMicros, 0n) <= 300n).toBe(true)
    expect(await trialBalance(pool(0))).toMatchObject({ balanced: true, drifts: [] })
    expect(await countDeadlocks(pool(0))).toBe(before)
  })

  it('allows exactly what fits a budget through the queues of two processes', async () => {
    const accountId = await openAccount(pool(0), 1_000_000n)
    const keyId = await openKey(pool(0), accountId)
    const queues = pools.map((database) => createReserveQueue(database))
    const limits = { ...unlimited, dailyMaxMicros: 1_000n }
    const verdicts = await many(1_000, async (index) => {
      const verdict = await queues[index % 2]?.(buildSpend({ accountId, keyId, limits }, 7n))
      if (verdict === undefined) throw new Error('not open')
      return verdict
    })
    expect(tally(verdicts)).toEqual({ allow: 142, deny: 858 })
    expect(await readUsage(pool(0), keyId)).toEqual({ usedMicros: 994n, count: 142 })
  })

  it('holds money that arrived while its batch waited for a lock', async () => {
    const [poor = '', rich = ''] = (await many(2, () => openAccount(pool(0), 0n))).sort()
    await deposit(pool(0), rich, 10n)
    const batch = await pool(1).transaction(async (connection) => {
      await lockBalance(connection, available(rich, place))
      const started = reserveSpends(pool(0), [
        buildSpend({ accountId: poor, keyId: null }, 7n),
        buildSpend({ accountId: rich, keyId: null }, 7n),
      ])
      await blockedCall(pool(1))
      await deposit(pool(1), poor, 10n)
      return { started }
    })
    expect(tally(await batch.started)).toEqual({ allow: 2 })
    expect(await balances(pool(0), poor)).toMatchObject([{ available: 3n, held: 7n }])
    expect(await trialBalance(pool(0))).toMatchObject({ balanced: true, drifts: [] })
  })

  it('repeats a statement that the server canceled to resolve a deadlock', async () => {
    const [one, two] = [await openAccount(pool(0), 10n), await openAccount(pool(0), 10n)]
    const update = (name: string) => ({
      name,
      text: `do $$ begin
        update account set kyc_level = 'none' where id = '${name === 'there' ? one : two}';
        perform pg_sleep(0.3);
        update account set kyc_level = 'none' where id = '${name === 'there' ? two : one}';
      end $$`,
    })
    const before = await countDeadlocks(pool(0))
    await Promise.all([pool(0).call(update('there'), []), pool(1).call(update('back'), [])])
    // A repeat may deadlock with the other once more: both must complete.
    expect(await countDeadlocks(pool(0))).toBeGreaterThan(before)
  })

  it('runs a write once for 40 concurrent calls with one idempotency key', async () => {
    let runs = 0
    const call = { principal: 'acct_1', key: 'write', fingerprint: 'same', at: noon }
    const results = await many(40, (index) =>
      withIdempotency(pool(index), call, async () => ++runs).catch((error: unknown) => error),
    )
    expect(runs).toBe(1)
    for (const result of results)
      if (result instanceof Error) expect(result).toMatchObject({ code: 'idempotency_in_progress' })
      else expect(result).toMatchObject({ answer: 1 })
  })
})
