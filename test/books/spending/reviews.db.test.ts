/** Reviews: requested by a denial, decided once, and used by one spend within a day. */
import { beforeEach, expect, it } from 'vitest'
import { screeningViolation } from '../../../policies/aml/screening.ts'
import { releaseSpend } from '../../../src/books/spending/release.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import {
  applyReview,
  decideReview,
  findReviewVerdict,
  REVIEW_RELEASE_MS,
} from '../../../src/books/spending/reviews.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import { onBothEngines } from '../../engines.ts'
import { buildSpend, noon, openAccount } from './scene.ts'

const subject = 'person transfer 10 usdc'
const after = (ms: number) => new Date(noon.getTime() + ms)

onBothEngines('reviews', (database) => {
  let accountId: string
  let reviewer: string
  beforeEach(async () => {
    accountId = await openAccount(database(), 1_000n)
    reviewer = await openAccount(database(), 0n)
  })
  const spend = (released: string | null, at = noon) =>
    reserveSpend(
      database(),
      buildSpend({ accountId, keyId: null }, 10n, { at, review: { subject, released } }),
    )
  const denySpend = async (lists: readonly string[]) => {
    const violations = [screeningViolation({ result: 'review', lists })]
    const request = buildSpend({ accountId, keyId: null }, 10n, {
      violations,
      review: { subject, released: null },
    })
    await reserveSpend(database(), request)
    return `rev_${request.decisionId.slice(4)}`
  }
  const release = async () => {
    const id = await denySpend(['velocity'])
    const decision = { id, decidedBy: reviewer, status: 'released', reason: 'Known.', at: noon } as const
    await decideReview({ database: database(), log: silentLog }, decision)
    return id
  }
  const verdictAt = (at: Date) => findReviewVerdict(database(), { accountId, subject, at })

  it('are valid for 24 hours, in the preview and in the reservation', async () => {
    const id = await release()
    expect(await verdictAt(after(REVIEW_RELEASE_MS - 1))).toEqual({
      status: 'released',
      id,
      lists: ['velocity'],
    })
    expect(await verdictAt(after(REVIEW_RELEASE_MS))).toBeNull()
    expect((await spend(id, after(REVIEW_RELEASE_MS))).verdict).toBe('deny')
    expect((await spend(id, after(REVIEW_RELEASE_MS - 1))).verdict).toBe('allow')
  })

  it('are used by one spend, unless it was released', async () => {
    const id = await release()
    const passed = await spend(id)
    expect(passed.verdict).toBe('allow')
    expect(await spend(id)).toMatchObject({
      verdict: 'deny',
      violations: [{ rule: 'aml_screening', limit: 'velocity', requested: 'review' }],
    })
    if (passed.verdict !== 'allow') throw new Error('it did not pass')
    await releaseSpend(database(), { decisionId: passed.decisionId, at: noon })
    expect((await spend(id)).verdict).toBe('allow')
  })

  it('apply to their own account alone', async () => {
    const id = await release()
    accountId = await openAccount(database(), 1_000n)
    expect((await spend(id)).verdict).toBe('deny')
    expect((await spend('rev_00000000000000000000000000')).verdict).toBe('deny')
  })

  it('are not requested when data or a listed name decides', async () => {
    for (const lists of [['travel_rule'], ['named_party', 'travel_rule']]) await denySpend(lists)
    const rows = database().kysely.selectFrom('aml_review').selectAll().where('account_id', '=', accountId)
    expect(await rows.execute()).toEqual([])
    await denySpend(['travel_rule', 'structuring'])
    expect(await rows.execute()).toMatchObject([{ lists: ['structuring'], status: 'open' }])
  })

  it('never override a sanctions list, nor a rule that did not request them', async () => {
    const verdict = { status: 'released', id: 'rev_1', lists: ['velocity'] } as const
    const judge = (result: 'clear' | 'review' | 'blocked', lists: readonly string[]) =>
      applyReview({ result, lists }, verdict).screening.result
    expect(judge('blocked', ['velocity'])).toBe('blocked')
    expect(judge('review', ['velocity', 'structuring'])).toBe('review')
    expect(judge('review', ['velocity'])).toBe('clear')
  })
})
