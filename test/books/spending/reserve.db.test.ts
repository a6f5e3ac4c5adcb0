import { expect, it } from 'vitest'
import { external } from '../../../src/books/ledger/accounts.ts'
import { balances } from '../../../src/books/ledger/balances.ts'
import { reserveSpend, reserveSpends } from '../../../src/books/spending/reserve.ts'
import { settleSpend } from '../../../src/books/spending/settle.ts'
import { onBothEngines } from '../../engines.ts'
import { capAccount, noon, openAccount, openKey, place, spendOf, unlimited, usageOf } from './scene.ts'

const call = (key: string, fingerprint = 'same') => ({ principal: 'key:1', key, fingerprint })

const staticViolation = {
  rule: 'category',
  limit: 'swap',
  used: null,
  requested: 'transfer',
  remaining: null,
  resetsAt: null,
}

onBothEngines('reserveSpend', (database) => {
  const open = async (units = 100_000_000n, limits = unlimited) => {
    const accountId = await openAccount(database(), units)
    return { accountId, keyId: await openKey(database(), accountId), limits }
  }

  it('fills a purse by no more than its key may still spend', async () => {
    const scene = await open(100_000_000n, { ...unlimited, dailyMaxMicros: 5_000_000n })
    const { accountId, keyId } = scene
    const purse = { id: keyId, chunk: 50_000_000n }
    const heldBy = async (units: bigint, limits = scene.limits) => {
      const request = spendOf({ ...scene, limits }, units, { purse })
      expect(await reserveSpend(database(), request)).toMatchObject({ verdict: 'allow' })
      const row = await database()
        .kysely.selectFrom('reservation')
        .select('units')
        .where('decision_id', '=', request.decisionId)
        .executeTakeFirstOrThrow()
      // While a chunk is on its way, others hold only what they need.
      const meanwhile = spendOf({ ...scene, limits: unlimited }, 1n, { purse })
      await reserveSpend(database(), meanwhile)
      const { kysely } = database()
      const held = await kysely
        .selectFrom('reservation')
        .select('units')
        .where('decision_id', '=', meanwhile.decisionId)
        .executeTakeFirstOrThrow()
      expect(held.units).toBe(1n)
      for (const { decisionId } of [meanwhile, request])
        await settleSpend(database(), { decisionId, destination: external(place), at: noon })
      return row.units
    }
    expect(await heldBy(1_000_000n)).toBe(5_000_000n)
    expect(await heldBy(1_000_000n)).toBe(3_999_999n)
    const week = { rule: 'weekly_budget', period: 'week', maxMicros: 2_500_000n, maxCount: null } as const
    const weekly = { ...scene.limits, longer: [week] }
    expect(await heldBy(100_000n, weekly)).toBe(499_998n)
    await capAccount(database(), accountId, 2_400_000n)
    expect(await heldBy(100_000n)).toBe(299_997n)
    expect(await heldBy(100_000n)).toBe(199_996n)
    await capAccount(database(), accountId, null)
    const free = await open(60_000_000n)
    const unbounded = spendOf(free, 1_000_000n, { purse: { id: free.keyId, chunk: 50_000_000n } })
    await reserveSpend(database(), unbounded)
    expect(await balances(database(), free.accountId)).toMatchObject([{ held: 50_000_000n }])
  })

  it('holds the money, counts the spend and records the decision', async () => {
    const scene = await open()
    const request = spendOf(scene, 12_500_000n, { facts: { destination: '0xabc' } })
    expect(await reserveSpend(database(), request)).toEqual({
      verdict: 'allow',
      decisionId: request.decisionId,
    })
    expect(await balances(database(), scene.accountId)).toEqual([
      { place: 'base-sepolia', asset: 'USDC', available: 87_500_000n, held: 12_500_000n, frozen: 0n },
    ])
    expect(await usageOf(database(), scene.keyId)).toEqual({ usedMicros: 12_500_000n, count: 1 })
    const decision = await database()
      .kysely.selectFrom('decision')
      .selectAll()
      .where('id', '=', request.decisionId)
      .executeTakeFirstOrThrow()
    expect(decision).toMatchObject({
      verdict: 'allow',
      facts: { destination: '0xabc' },
      violations: [],
      key_id: scene.keyId,
      policy_version: 1,
      at: noon,
    })
    const reservation = await database()
      .kysely.selectFrom('reservation')
      .selectAll()
      .where('decision_id', '=', request.decisionId)
      .executeTakeFirstOrThrow()
    expect(reservation).toMatchObject({
      status: 'reserved',
      day: '2026-11-20',
      units: 12_500_000n,
      reserved_at: noon,
    })
  })

  it('names every violated rule: the static ones, both counters and a paused key', async () => {
    const scene = await open(100_000_000n, { ...unlimited, dailyMaxMicros: 12_000_000n, dailyMaxCount: 1 })
    await reserveSpend(database(), spendOf(scene, 11_990_000n))
    await database()
      .kysely.updateTable('access_key')
      .set({ status: 'paused' })
      .where('id', '=', scene.keyId)
      .execute()
    const request = spendOf(scene, 20_000n, { violations: [staticViolation] })
    const resetsAt = '2026-11-21T00:00:00.000Z'
    expect(await reserveSpend(database(), request)).toEqual({
      verdict: 'deny',
      decisionId: request.decisionId,
      replayed: false,
      violations: [
        staticViolation,
        { rule: 'daily_budget', limit: '12', used: '11.99', requested: '0.02', remaining: '0.01', resetsAt },
        { rule: 'daily_count', limit: '1', used: '1', requested: '1', remaining: '0', resetsAt },
        { rule: 'paused', limit: null, used: null, requested: null, remaining: null, resetsAt: null },
      ],
    })
    expect(await usageOf(database(), scene.keyId)).toEqual({ usedMicros: 11_990_000n, count: 1 })
  })

  it('allows a budget to its last millionth and not beyond', async () => {
    const scene = await open(100_000_000n, { ...unlimited, dailyMaxMicros: 3n })
    for (const verdict of ['allow', 'allow', 'allow', 'deny'])
      expect(await reserveSpend(database(), spendOf(scene, 1n))).toMatchObject({ verdict })
  })

  it('does not count a spend that a paused key or missing funds refuse', async () => {
    const scene = await open(10n)
    await reserveSpend(database(), spendOf(scene, 4n))
    const poor = await reserveSpend(database(), spendOf(scene, 7n))
    expect(poor).toMatchObject({ verdict: 'insufficient_funds', available: { asset: 'USDC', units: 6n } })
    await database()
      .kysely.updateTable('access_key')
      .set({ status: 'paused' })
      .where('id', '=', scene.keyId)
      .execute()
    expect(await reserveSpend(database(), spendOf(scene, 1n))).toMatchObject({ verdict: 'deny' })
    expect(await usageOf(database(), scene.keyId)).toEqual({ usedMicros: 4n, count: 1 })
  })

  it('resets the budget at midnight UTC, and not before', async () => {
    const scene = await open(100n, { ...unlimited, dailyMaxMicros: 5n })
    const at = (text: string) => ({ at: new Date(text) })
    expect(await reserveSpend(database(), spendOf(scene, 5n, at('2026-11-20T23:59:59.999Z')))).toMatchObject({
      verdict: 'allow',
    })
    expect(await reserveSpend(database(), spendOf(scene, 1n, at('2026-11-20T23:59:59.999Z')))).toMatchObject({
      verdict: 'deny',
    })
    expect(await reserveSpend(database(), spendOf(scene, 5n, at('2026-11-21T00:00:00.000Z')))).toMatchObject({
      verdict: 'allow',
    })
  })

  it('keeps the usage when the policy changes', async () => {
    const scene = await open(100n, { ...unlimited, dailyMaxMicros: 50n })
    await reserveSpend(database(), spendOf(scene, 40n))
    await database()
      .kysely.updateTable('access_key')
      .set({ policy_version: 2 })
      .where('id', '=', scene.keyId)
      .execute()
    const key = { id: scene.keyId, policyVersion: 2, limits: { ...unlimited, dailyMaxMicros: 45n } }
    expect(await reserveSpend(database(), spendOf(scene, 10n, { key }))).toMatchObject({
      verdict: 'deny',
      violations: [{ rule: 'daily_budget', limit: '0.000045', used: '0.00004', remaining: '0.000005' }],
    })
  })

  it('answers stale_policy for another version, a revoked key and a foreign key, without any trace', async () => {
    const scene = await open()
    const other = await open()
    const stale = { id: scene.keyId, policyVersion: 2, limits: unlimited }
    const foreign = { id: other.keyId, policyVersion: 1, limits: unlimited }
    const unknown = { id: 'key_none', policyVersion: 1, limits: unlimited }
    for (const key of [stale, foreign, unknown])
      expect(await reserveSpend(database(), spendOf(scene, 1n, { key, idempotency: call('stale') }))).toEqual(
        { verdict: 'stale_policy' },
      )
    await database()
      .kysely.updateTable('access_key')
      .set({ status: 'revoked' })
      .where('id', '=', scene.keyId)
      .execute()
    expect(await reserveSpend(database(), spendOf(scene, 1n))).toEqual({ verdict: 'stale_policy' })
    expect(await usageOf(database(), scene.keyId)).toEqual({ usedMicros: 0n, count: 0 })
    const rows = await database()
      .kysely.selectFrom('idempotency')
      .selectAll()
      .where('key', '=', 'stale')
      .execute()
    expect(rows).toEqual([])
    const decisions = await database()
      .kysely.selectFrom('decision')
      .select('id')
      .where('account_id', '=', scene.accountId)
      .execute()
    expect(decisions).toEqual([])
  })

  it('denies a spend of unknown value if there is a budget', async () => {
    const scene = await open(100n, { ...unlimited, dailyMaxMicros: 50n })
    expect(await reserveSpend(database(), spendOf(scene, 1n, { usdMicros: null }))).toMatchObject({
      verdict: 'deny',
      violations: [{ rule: 'daily_budget', requested: null, remaining: '0.00005' }],
    })
  })

  it('counts no budget for a person’s session', async () => {
    const { accountId } = await open(10n)
    expect(
      await reserveSpend(database(), spendOf({ accountId, keyId: null }, 9n, { usdMicros: null })),
    ).toMatchObject({ verdict: 'allow' })
    expect(await reserveSpend(database(), spendOf({ accountId, keyId: null }, 2n))).toMatchObject({
      verdict: 'insufficient_funds',
    })
  })

  it('enforces one owner cap over all keys of the account', async () => {
    const accountId = await openAccount(database(), 100n)
    await capAccount(database(), accountId, 10n)
    const one = { accountId, keyId: await openKey(database(), accountId) }
    const two = { accountId, keyId: await openKey(database(), accountId) }
    expect(await reserveSpend(database(), spendOf(one, 6n))).toMatchObject({ verdict: 'allow' })
    expect(await reserveSpend(database(), spendOf(two, 5n))).toMatchObject({
      verdict: 'deny',
      violations: [
        {
          rule: 'owner_budget',
          limit: '0.00001',
          used: '0.000006',
          requested: '0.000005',
          remaining: '0.000004',
        },
      ],
    })
    expect(await reserveSpend(database(), spendOf(two, 4n))).toMatchObject({ verdict: 'allow' })
  })

  it('commits the nonce of its request, which the commit of the authentication may have lost', async () => {
    const scene = await open(10n)
    const nonce = { value: `nonce of ${scene.keyId}`, expiresAt: new Date(noon.getTime() + 60_000) }
    // A successor without the authentication's commit, and the usual case in which it is there.
    await reserveSpend(database(), spendOf(scene, 1n, { nonce }))
    await reserveSpends(database(), [spendOf(scene, 1n, { nonce }), spendOf(scene, 1n)])
    const rows = await database()
      .kysely.selectFrom('signature_nonce')
      .selectAll()
      .where('key_id', '=', scene.keyId)
      .execute()
    expect(rows).toEqual([{ key_id: scene.keyId, nonce: nonce.value, expires_at: nonce.expiresAt }])
  })
})
