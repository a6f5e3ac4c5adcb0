import fc from 'fast-check'
import { expect, it } from 'vitest'
import { external } from '../../../src/books/ledger/accounts.ts'
import { balances } from '../../../src/books/ledger/balances.ts'
import { releaseSpend } from '../../../src/books/spending/release.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import { settleSpend } from '../../../src/books/spending/settle.ts'
import { utcDay } from '../../../src/core/base/clock.ts'
import { onBothEngines } from '../../engines.ts'
import { buildSpend, capAccount, deposit, openAccount, openKey, place, readUsage } from './scene.ts'

const days = ['2026-11-20T23:59:59.999Z', '2026-11-21T00:00:00.000Z'].map((text) => new Date(text))
const units = fc.bigInt({ min: 1n, max: 60n })

const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('reserve' as const),
      units,
      key: fc.nat({ max: 1 }),
      day: fc.nat({ max: 1 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('settle' as const), spend: fc.nat({ max: 12 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('release' as const), spend: fc.nat({ max: 12 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('deposit' as const), units }) },
)

const policy = fc.record({
  dailyMaxMicros: fc.option(fc.bigInt({ min: 0n, max: 150n })),
  dailyMaxCount: fc.option(fc.integer({ min: 0, max: 5 })),
  ownerDailyMaxMicros: fc.option(fc.bigInt({ min: 0n, max: 150n })),
})

/** The reference: a list of spends, and sums over it. */
interface Spend {
  readonly decisionId: string
  readonly key: number
  readonly day: string
  readonly units: bigint
  status: 'reserved' | 'settled' | 'released'
}

const sum = (spends: readonly Spend[]) => spends.reduce((total, spend) => total + spend.units, 0n)

onBothEngines('budgets', (database) => {
  it('decide like a list of spends, and never overspend', async () => {
    await fc.assert(
      fc.asyncProperty(policy, fc.array(step, { minLength: 1, maxLength: 30 }), async (limits, steps) => {
        const accountId = await openAccount(database(), 200n)
        await capAccount(database(), accountId, limits.ownerDailyMaxMicros)
        const keys = [await openKey(database(), accountId), await openKey(database(), accountId)]
        const spends: Spend[] = []
        let deposited = 200n
        const listCounted = (day: string) =>
          spends.filter((spend) => spend.day === day && spend.status !== 'released')
        const funds = () => deposited - sum(spends.filter(({ status }) => status !== 'released'))

        const findExpected = (key: number, day: string, wanted: bigint): string => {
          const ofDay = listCounted(day)
          const ofKey = ofDay.filter((spend) => spend.key === key)
          const rules = [
            limits.dailyMaxMicros !== null && sum(ofKey) + wanted > limits.dailyMaxMicros && 'daily_budget',
            limits.dailyMaxCount !== null && ofKey.length + 1 > limits.dailyMaxCount && 'daily_count',
            limits.ownerDailyMaxMicros !== null &&
              sum(ofDay) + wanted > limits.ownerDailyMaxMicros &&
              'owner_budget',
          ].filter((rule) => rule !== false)
          if (rules.length > 0) return `deny ${rules.join(' ')}`
          return wanted > funds() ? 'insufficient_funds' : 'allow'
        }

        for (const taken of steps) {
          if (taken.do === 'deposit') {
            await deposit(database(), accountId, taken.units)
            deposited += taken.units
          } else if (taken.do === 'reserve') {
            const at = days[taken.day] ?? new Date(Number.NaN)
            const request = buildSpend({ accountId, keyId: keys[taken.key] ?? '', limits }, taken.units, {
              at,
            })
            const due = findExpected(taken.key, utcDay(at), taken.units)
            const answer = await reserveSpend(database(), request)
            const rules =
              answer.verdict === 'deny' ? ` ${answer.violations.map(({ rule }) => rule).join(' ')}` : ''
            expect(`${answer.verdict}${rules}`).toBe(due)
            if (answer.verdict === 'allow')
              spends.push({
                decisionId: request.decisionId,
                key: taken.key,
                day: utcDay(at),
                units: taken.units,
                status: 'reserved',
              })
          } else {
            const spend = spends[taken.spend]
            const done = taken.do === 'settle' ? ('settled' as const) : ('released' as const)
            const end = {
              decisionId: spend?.decisionId ?? 'dec_none',
              at: days[1] ?? new Date(Number.NaN),
            }
            const verdict =
              taken.do === 'settle'
                ? await settleSpend(database(), { ...end, destination: external(place) })
                : await releaseSpend(database(), end)
            if (spend === undefined) expect(verdict).toBe('not_reserved')
            else if (spend.status !== 'reserved') expect(verdict).toBe(`already_${spend.status}`)
            else {
              expect(verdict).toBe(done)
              spend.status = done
            }
          }
        }

        for (const [index, keyId] of keys.entries())
          for (const day of days.map(utcDay)) {
            const ofKey = listCounted(day).filter(({ key }) => key === index)
            expect(await readUsage(database(), keyId, day)).toEqual({
              usedMicros: sum(ofKey),
              count: ofKey.length,
            })
          }
        const [balance] = await balances(database(), accountId)
        expect(balance?.available).toBe(funds())
        expect(balance?.held).toBe(sum(spends.filter(({ status }) => status === 'reserved')))
      }),
      { numRuns: 40 },
    )
  })
})
