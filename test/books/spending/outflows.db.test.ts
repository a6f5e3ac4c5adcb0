/** AML windows in the reserve: judged and counted under the account's lock, in single calls and in batches. */
import { beforeEach, expect, it } from 'vitest'
import type { OutflowWindow } from '../../../policies/aml/outflow-windows.ts'
import { screeningViolation } from '../../../policies/aml/screening.ts'
import { exceededOutflows } from '../../../src/books/spending/outflows.ts'
import { releaseSpend } from '../../../src/books/spending/release.ts'
import { reserveSpend, reserveSpends } from '../../../src/books/spending/reserve.ts'
import { createReserveQueue } from '../../../src/books/spending/reserve-queue.ts'
import { settleSpend } from '../../../src/books/spending/settle.ts'
import type { SpendRequest } from '../../../src/books/spending/spend-request.ts'
import { onBothEngines } from '../../engines.ts'
import { noon, openAccount, spendOf } from './scene.ts'

const after = (seconds: number) => new Date(noon.getTime() + seconds * 1000)

const windowOf = (changes: Partial<OutflowWindow> = {}): OutflowWindow => ({
  rule: 'velocity',
  seconds: 3_600,
  usdMicros: 10n,
  maxUsdMicros: 20n,
  minCount: 1,
  isJudged: true,
  ...changes,
})

onBothEngines('AML windows in the reserve', (database) => {
  let accountId: string
  beforeEach(async () => {
    accountId = await openAccount(database(), 1_000_000n)
  })
  const reserveWindowed = (changes: Partial<SpendRequest> = {}) =>
    spendOf({ accountId, keyId: null }, 10n, { windows: [windowOf()], ...changes })
  const verdictOf = async (changes: Partial<SpendRequest> = {}) =>
    (await reserveSpend(database(), reserveWindowed(changes))).verdict

  it('allow amounts within the limit, and deny amounts beyond it, on record and without a hold', async () => {
    expect([await verdictOf(), await verdictOf()]).toEqual(['allow', 'allow'])
    const request = reserveWindowed()
    const violations = [screeningViolation({ result: 'review', lists: ['velocity'] })]
    expect(await reserveSpend(database(), request)).toEqual({
      verdict: 'deny',
      decisionId: request.decisionId,
      replayed: false,
      violations,
    })
    const decisions = database().kysely.selectFrom('decision').select(['verdict', 'violations'])
    expect(await decisions.where('id', '=', request.decisionId).execute()).toEqual([
      { verdict: 'deny', violations },
    ])
    const holds = database().kysely.selectFrom('reservation').selectAll()
    expect(await holds.where('decision_id', '=', request.decisionId).execute()).toEqual([])
    expect(await verdictOf({ windows: [windowOf({ usdMicros: 0n })] })).toBe('allow')
  })

  it('release the idempotency key of a denial', async () => {
    const idempotency = { principal: accountId, key: 'one', fingerprint: 'f' }
    await verdictOf({ windows: [windowOf({ usdMicros: 20n })] })
    expect(await verdictOf({ idempotency })).toBe('deny')
    expect(await verdictOf({ idempotency, windows: [] })).toBe('allow')
    // A repeat gets its original verdict, whatever the windows contain by now.
    expect(await verdictOf({ idempotency })).toBe('repeated')
  })

  it('count settled spends, and subtract released ones', async () => {
    const [first, second] = [reserveWindowed(), reserveWindowed()]
    await reserveSpend(database(), first)
    await reserveSpend(database(), second)
    await settleSpend(database(), { decisionId: first.decisionId, destination: 'external:x', at: noon })
    expect(await verdictOf()).toBe('deny')
    const release = { decisionId: second.decisionId, at: noon }
    expect(await releaseSpend(database(), release)).toBe('released')
    expect(await releaseSpend(database(), release)).toBe('already_released')
    expect([await verdictOf(), await verdictOf()]).toEqual(['allow', 'deny'])
  })

  it('expire a spend at the end of its window, at most a 24th of it late and never early', async () => {
    await verdictOf({ windows: [windowOf({ usdMicros: 20n })] })
    expect(await verdictOf({ at: after(3_599) })).toBe('deny')
    expect(await verdictOf({ at: after(3_750) })).toBe('allow')
  })

  it('read at most 25 rows for any number of spends', async () => {
    for (let index = 0; index < 60; index += 1)
      await verdictOf({ at: after(index * 100), windows: [windowOf({ maxUsdMicros: 10_000n })] })
    const rows = await database()
      .kysely.selectFrom('outflow_slot')
      .select('slot')
      .where('account_id', '=', accountId)
      .execute()
    expect(rows.length).toBeLessThanOrEqual(25)
  })

  it('count once in a window that two limits share', async () => {
    const windows = [windowOf({ maxUsdMicros: 1_000n }), windowOf({ minCount: 3 })]
    expect([
      await verdictOf({ windows }),
      await verdictOf({ windows }),
      await verdictOf({ windows }),
    ]).toEqual(['allow', 'allow', 'deny'])
  })

  it('count without judging when configured so', async () => {
    const justUnder = (isJudged: boolean) =>
      windowOf({ rule: 'structuring', maxUsdMicros: null, minCount: 3, isJudged })
    for (const isJudged of [false, true])
      expect(await verdictOf({ windows: [justUnder(isJudged)] })).toBe('allow')
    expect(await verdictOf({ windows: [justUnder(false)] })).toBe('allow')
    expect(await verdictOf({ windows: [justUnder(true)] })).toBe('deny')
    const preview = { accountId, windows: [windowOf(), justUnder(true)], at: noon }
    expect(await exceededOutflows(database(), preview)).toEqual(['structuring'])
  })

  it('count no spend that is denied, pending approval or without funds', async () => {
    const rule = { rule: 'asset', limit: null, used: null, requested: null, remaining: null, resetsAt: null }
    expect(await verdictOf({ violations: [rule] })).toBe('deny')
    expect(await verdictOf({ needsApproval: true })).toBe('approval_required')
    expect(await verdictOf({ money: { asset: 'USDC', units: 2_000_000n } })).toBe('insufficient_funds')
    expect([await verdictOf(), await verdictOf(), await verdictOf()]).toEqual(['allow', 'allow', 'deny'])
  })

  it('hold within one batch, in the queue and over parallel calls', async () => {
    const batch = await reserveSpends(
      database(),
      Array.from({ length: 20 }, () => reserveWindowed()),
    )
    expect(batch.filter(({ verdict }) => verdict === 'allow')).toHaveLength(2)
    accountId = await openAccount(database(), 1_000_000n)
    const reserve = createReserveQueue(database())
    const queued = await Promise.all(Array.from({ length: 40 }, () => reserve(reserveWindowed())))
    expect(queued.filter(({ verdict }) => verdict === 'allow')).toHaveLength(2)
    accountId = await openAccount(database(), 1_000_000n)
    const parallel = await Promise.all(Array.from({ length: 40 }, () => verdictOf()))
    expect(parallel.filter((verdict) => verdict === 'allow')).toHaveLength(2)
  })
})
