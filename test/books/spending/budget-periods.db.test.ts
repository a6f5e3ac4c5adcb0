/** Budgets of weeks and months at their boundaries, in any time zone of the database and of the process. */
import { afterEach, expect, it } from 'vitest'
import { type BudgetPeriod, budgetPeriods, budgetRules, findPeriod } from '../../../policies/budget.ts'
import { spendPolicy } from '../../../policies/policy.ts'
import { releaseSpend } from '../../../src/books/spending/release.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import { readUsage } from '../../../src/books/spending/usage.ts'
import type { Connection } from '../../../src/storage/database.ts'
import { onBothEngines } from '../../engines.ts'
import { buildSpend, capAccount, openAccount, openKey, unlimited } from './scene.ts'

/** The last one skips midnight when its summer begins. */
const zones = ['UTC', 'Pacific/Kiritimati', 'America/Santiago']
const DAY_MS = 24 * 60 * 60 * 1000
const processZone = process.env.TZ

const policy = spendPolicy.parse({
  perTransaction: { max: '4' },
  dailyBudget: { max: '100' },
  weeklyBudget: { max: '5', maxCount: 4 },
  monthlyBudget: { max: '10' },
  categories: { allow: ['transfer'] },
})
const longer = budgetRules(policy).filter(({ period }) => period !== 'day')

async function useZone(connection: Connection, zone: string): Promise<void> {
  await connection.call({ name: 'test_zone', text: `select set_config('timezone', $1, true)` }, [zone])
}

onBothEngines('budgets of weeks and months', (database) => {
  afterEach(() => {
    if (processZone === undefined) delete process.env.TZ
    else process.env.TZ = processZone
  })

  const open = async (limits = { ...unlimited, longer }) => {
    const accountId = await openAccount(database(), 100_000_000n)
    return { accountId, keyId: await openKey(database(), accountId), limits }
  }

  it('begin and end on the days of the reference, on every day of nine years, in every time zone', async () => {
    const rules = budgetPeriods.map((period) => ({ rule: period, period, max_micros: 0 }))
    for (const zone of zones)
      await database().transaction(async (connection) => {
        await useZone(connection, zone)
        const rows = await connection.call<{ day: string; ends: string[] }>(
          {
            name: 'test_ends',
            text: `select to_char(d, 'YYYY-MM-DD') as day,
                array(select v->>'resetsAt' from jsonb_array_elements(budget_exceeded(array['none'], $1, 1, d)) v) as ends
              from (select date '2024-01-01' + n as d from generate_series(0, 3287) n) days order by d`,
          },
          [JSON.stringify(rules)],
        )
        expect(rows).toHaveLength(3_288)
        const due = rows.map(({ day }) => ({
          day,
          ends: budgetPeriods.map((period) => findPeriod(period, new Date(day)).end.toISOString()),
        }))
        expect(rows).toEqual(due)
      })
  })

  it('count the days of the reference, on every day around a new year, in every time zone of the process', async () => {
    const scene = await open({ ...unlimited, longer: [] })
    const from = Date.parse('2026-12-20T23:59:59.999Z')
    const days = Array.from({ length: 26 }, (_, index) => new Date(from + index * DAY_MS))
    for (const at of days) await reserveSpend(database(), buildSpend(scene, 1n, { at }))
    for (const zone of zones) {
      process.env.TZ = zone
      expect(new Date(2026, 0, 1).getTimezoneOffset() === 0).toBe(zone === 'UTC')
      for (const now of days) {
        const countDays = (period: BudgetPeriod) => {
          const { start, end } = findPeriod(period, now)
          return days.filter((at) => at >= start && at < end).length
        }
        const usage = await readUsage(database(), { keyId: scene.keyId }, now)
        expect([zone, now, usage.day.count, usage.week.count, usage.month.count]).toEqual([
          zone,
          now,
          countDays('day'),
          countDays('week'),
          countDays('month'),
        ])
      }
    }
  })

  it('count the whole life of the key, and what is released comes back', async () => {
    const total = budgetRules({ ...policy, totalBudget: { max: '10', maxCount: 3 } }).filter(
      ({ period }) => period === 'life',
    )
    const scene = await open({ ...unlimited, longer: total })
    const decide = async (at: string, units: bigint) =>
      reserveSpend(database(), buildSpend(scene, units, { at: new Date(at) }))
    expect(await decide('2024-02-29T12:00:00.000Z', 6_000_000n)).toMatchObject({ verdict: 'allow' })
    const second = await decide('2026-11-22T12:00:00.000Z', 4_000_000n)
    const denial = { verdict: 'deny', violations: [{ rule: 'total_budget', remaining: '0', resetsAt: null }] }
    expect(await decide('2031-01-01T12:00:00.000Z', 1n)).toMatchObject(denial)
    if (second.verdict !== 'allow') throw new Error(second.verdict)
    await releaseSpend(database(), {
      decisionId: second.decisionId,
      at: new Date('2026-11-22T12:00:01.000Z'),
    })
    const usage = await readUsage(database(), { keyId: scene.keyId }, new Date('2031-01-01T12:00:00.000Z'))
    expect(usage.life).toEqual({ usedMicros: 6_000_000n, count: 1 })
    expect(await decide('2031-01-01T12:00:00.000Z', 1n)).toMatchObject({ verdict: 'allow' })
    expect(await decide('2031-01-01T12:00:00.000Z', 1n)).toMatchObject({ verdict: 'allow' })
    expect(await decide('2032-01-01T12:00:00.000Z', 1n)).toMatchObject({
      violations: [{ rule: 'total_count', used: '3', remaining: '0', resetsAt: null }],
    })
  })

  it('deny what the week or the month has no room for, and allow it in the next', async () => {
    for (const zone of zones) {
      const scene = await open()
      const decide = (at: string, units: bigint) =>
        database().transaction(async (connection) => {
          await useZone(connection, zone)
          const verdict = await reserveSpend(connection, buildSpend(scene, units, { at: new Date(at) }))
          return 'violations' in verdict ? verdict.violations : verdict.verdict
        })
      // Sunday, then Monday.
      expect(await decide('2026-11-22T23:59:59.999Z', 4_000_000n)).toBe('allow')
      expect(await decide('2026-11-22T23:59:59.999Z', 1_000_001n)).toEqual([
        {
          rule: 'weekly_budget',
          limit: '5',
          used: '4',
          requested: '1.000001',
          remaining: '1',
          resetsAt: '2026-11-23T00:00:00.000Z',
        },
      ])
      expect(await decide('2026-11-23T00:00:00.000Z', 4_000_000n)).toBe('allow')
      // The month has 2 left, on its last day.
      expect(await decide('2026-11-30T23:59:59.999Z', 3_000_000n)).toMatchObject([
        { rule: 'monthly_budget', used: '8', remaining: '2', resetsAt: '2026-12-01T00:00:00.000Z' },
      ])
      // The next month lies in the same week.
      for (const _ of [1, 2, 3, 4]) expect(await decide('2026-12-01T00:00:00.000Z', 1n)).toBe('allow')
      expect(await decide('2026-12-06T00:00:00.000Z', 1n)).toMatchObject([
        { rule: 'weekly_count', limit: '4', used: '4', requested: '1', remaining: '0' },
      ])
    }
  })

  it('get back what is released later, where it was counted', async () => {
    const scene = await open()
    const at = new Date('2026-12-31T12:00:00.000Z')
    const spend = buildSpend(scene, 4_000_000n, { at })
    await reserveSpend(database(), spend)
    const usage = (when: string) => readUsage(database(), { keyId: scene.keyId }, new Date(when))
    // New Year’s Day lies in the same week, and in the next month.
    expect(await usage('2027-01-01')).toMatchObject({ week: { usedMicros: 4_000_000n }, month: { count: 0 } })
    await releaseSpend(database(), { decisionId: spend.decisionId, at: new Date('2027-02-01T00:00:00.000Z') })
    const none = { usedMicros: 0n, count: 0 }
    for (const when of ['2026-12-31', '2027-01-01', '2027-02-01'])
      expect(await usage(when)).toEqual({ day: none, week: none, month: none, life: none })
    expect((await reserveSpend(database(), buildSpend(scene, 4_000_000n, { at }))).verdict).toBe('allow')
  })

  it('budgets of an owner hold for all keys together', async () => {
    const scene = await open({ ...unlimited, longer: [] })
    const other = { ...scene, keyId: await openKey(database(), scene.accountId) }
    await capAccount(database(), scene.accountId, null, { week: 5n, month: 8n })
    const decide = async (of: typeof scene, at: string, units: bigint) =>
      (await reserveSpend(database(), buildSpend(of, units, { at: new Date(at) }))).verdict
    expect(await decide(scene, '2026-11-16T00:00:00.000Z', 3n)).toBe('allow')
    expect(await decide(other, '2026-11-22T23:59:59.999Z', 3n)).toBe('deny')
    expect(await decide(other, '2026-11-22T23:59:59.999Z', 2n)).toBe('allow')
    expect(await decide(other, '2026-11-23T00:00:00.000Z', 4n)).toBe('deny')
    expect(await decide(other, '2026-11-23T00:00:00.000Z', 3n)).toBe('allow')
    expect(await decide(scene, '2026-12-01T00:00:00.000Z', 5n)).toBe('allow')
  })

  it('deny a spend without a known worth', async () => {
    const scene = await open()
    expect(await reserveSpend(database(), buildSpend(scene, 1n, { usdMicros: null }))).toMatchObject({
      violations: [
        { rule: 'weekly_budget', requested: null },
        { rule: 'monthly_budget', requested: null },
      ],
    })
  })
})
