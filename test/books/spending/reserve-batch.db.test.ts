import { expect, it } from 'vitest'
import { balances } from '../../../src/books/ledger/balances.ts'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { reserveSpends } from '../../../src/books/spending/reserve.ts'
import { onBothEngines } from '../../engines.ts'
import { noon, openAccount, openKey, spendOf, unlimited, usageOf } from './scene.ts'

onBothEngines('a batch of spends', (database) => {
  const open = async (units: bigint, dailyMaxMicros: bigint | null = null) => {
    const accountId = await openAccount(database(), units)
    const keyId = await openKey(database(), accountId)
    return { accountId, keyId, limits: { ...unlimited, dailyMaxMicros } }
  }

  it('answers each in order like single calls', async () => {
    const rich = await open(1_000n, 25n)
    const poor = await open(5n)
    const idempotency = { principal: rich.keyId, key: 'twin', fingerprint: 'same' }
    const first = spendOf(rich, 10n, { idempotency })
    const verdicts = await reserveSpends(database(), [
      first,
      spendOf(poor, 7n),
      spendOf(rich, 10n),
      spendOf(rich, 10n, { idempotency }),
      spendOf(rich, 10n, { idempotency: { ...idempotency, fingerprint: 'other' } }),
      spendOf(rich, 10n),
      spendOf(poor, 5n, { needsApproval: true }),
      spendOf(rich, 1n, { key: { id: rich.keyId, policyVersion: 9, limits: unlimited } }),
      spendOf({ accountId: poor.accountId, keyId: null }, 5n, { usdMicros: null }),
    ])
    expect(verdicts).toMatchObject([
      { verdict: 'allow', decisionId: first.decisionId },
      { verdict: 'insufficient_funds', available: { asset: 'USDC', units: 5n } },
      { verdict: 'allow' },
      { verdict: 'repeated', decisionId: first.decisionId },
      { verdict: 'fingerprint_mismatch' },
      { verdict: 'deny', violations: [{ rule: 'daily_budget', remaining: '0.000005' }] },
      { verdict: 'approval_required' },
      { verdict: 'stale_policy' },
      { verdict: 'allow' },
    ])
    expect(await usageOf(database(), rich.keyId)).toEqual({ usedMicros: 20n, count: 2 })
    expect(await usageOf(database(), poor.keyId)).toEqual({ usedMicros: 0n, count: 0 })
    expect(await trialBalance(database())).toMatchObject({ balanced: true, drifts: [] })
  })

  it('stores a decision’s facts verbatim', async () => {
    const scene = await open(100n)
    const facts = {
      text: 'quotes " and \\ and “’ and\nlines',
      big: '9007199254740993',
      list: [1, null, true],
    }
    const violation = {
      rule: 'asset',
      limit: 'a"b',
      used: null,
      requested: '€',
      remaining: null,
      resetsAt: null,
    }
    const requests = [spendOf(scene, 1n, { facts }), spendOf(scene, 1n, { facts, violations: [violation] })]
    expect(await reserveSpends(database(), requests)).toMatchObject([
      { verdict: 'allow' },
      { verdict: 'deny', violations: [violation] },
    ])
    const rows = await database()
      .kysely.selectFrom('decision')
      .select(['facts', 'at'])
      .where('key_id', '=', scene.keyId)
      .execute()
    expect(rows).toEqual([
      { facts, at: noon },
      { facts, at: noon },
    ])
  })

  it('creates no ledger account without a hold, and none twice', async () => {
    const empty = await open(0n)
    expect(await reserveSpends(database(), [spendOf(empty, 1n), spendOf(empty, 1n)])).toMatchObject([
      { verdict: 'insufficient_funds' },
      { verdict: 'insufficient_funds' },
    ])
    expect(await balances(database(), empty.accountId)).toEqual([])
    expect(await reserveSpends(database(), [])).toEqual([])
  })

  it('decides nothing if one of them cannot be decided', async () => {
    const scene = await open(100n)
    const good = spendOf(scene, 1n)
    await expect(reserveSpends(database(), [good, good])).rejects.toThrow()
    expect(await usageOf(database(), scene.keyId)).toEqual({ usedMicros: 0n, count: 0 })
  })
})
