/** The story of a payment in words. */
import { describe, expect, it } from 'vitest'
import { offerRecourse, tellStory } from '../../src/console/words/recourse.ts'
import { recourseRoutes, stepActions, stepOutcomes } from '../../src/records/recourse/store.ts'

const entry = (kind: string, status: string, direction = 'out') =>
  ({ at: '2026-11-27T10:00:00.000Z', kind, status, direction }) as Parameters<typeof tellStory>[0]

const recourse = (members: Record<string, unknown>) =>
  ({
    recourseId: 'rec_1',
    reason: 'not_delivered',
    note: null,
    status: 'open',
    claimed: '0.01',
    recovered: '0',
    asset: 'USDC',
    delivered: false,
    deadline: '2026-12-04T10:00:00.000Z',
    steps: [],
    createdAt: '2026-11-27T10:01:00.000Z',
    endedAt: null,
    ...members,
  }) as unknown as NonNullable<Parameters<typeof tellStory>[1]>

const step = (action: string, outcome: string, evidence?: Record<string, string>) => ({
  at: '2026-11-27T10:02:00.000Z',
  action,
  outcome,
  ...(evidence === undefined ? {} : { evidence }),
})

const words = (...story: Parameters<typeof tellStory>) => tellStory(...story).map((moment) => moment.words)

describe('the story of a payment', () => {
  it('is what was paid and what came, without recourse', () => {
    expect(words(entry('purchase', 'completed'), null)).toEqual(['Paid', 'Delivered'])
    expect(words(entry('payout', 'on_its_way'), null)).toEqual(['Sent to the bank', 'On its way'])
  })

  it('is empty for what was never paid, and for money that came in', () => {
    for (const of of [
      entry('purchase', 'denied'),
      entry('card', 'failed'),
      entry('transfer', 'completed', 'in'),
    ])
      expect(words(of, null)).toEqual([])
    expect(words(entry('order', 'completed'), null)).toEqual([])
  })

  it('goes on with each step and its end', () => {
    const steps = [
      step('present_again', 'failed', { detail: 'HTTP 500' }),
      step('refund_request', 'waiting'),
      step('refund', 'done', { amount: '0.01' }),
    ]
    const ended = { status: 'recovered', recovered: '0.01', endedAt: '2026-11-27T10:03:00.000Z' }
    expect(tellStory(entry('purchase', 'undelivered'), recourse({ steps, ...ended }))).toMatchObject([
      { words: 'Paid' },
      { words: 'Nothing came', at: null },
      { words: 'Asked for the money: it never came' },
      {
        words: 'The seller was shown the payment again and sent nothing',
        detail: 'HTTP 500',
        tone: 'bad',
      },
      { words: 'The seller has the request for a refund', tone: 'waiting' },
      { words: '0.01 USDC came back', tone: 'good' },
      { words: '0.01 USDC is back', tone: 'good', at: '2026-11-27T10:03:00.000Z' },
    ])
  })

  it('says so when what was bought came after all', () => {
    const ended = { status: 'recovered', delivered: true, steps: [step('present_again', 'done')] }
    expect(words(entry('purchase', 'completed'), recourse(ended)).at(-1)).toBe('Over: nothing is owed')
  })

  it('has words for every way and its usual outcomes', () => {
    for (const action of stepActions)
      expect(
        stepOutcomes.filter((outcome) => {
          const told = words(entry('purchase', 'undelivered'), recourse({ steps: [step(action, outcome)] }))
          return !told.includes('Something else was tried')
        }),
      ).not.toEqual([])
    expect(recourseRoutes.length).toBeLessThan(stepActions.length)
  })
})

describe('the one button', () => {
  it('is urgent only where the gateway knows that nothing came', () => {
    expect(offerRecourse(entry('purchase', 'undelivered'), null)).toMatchObject({
      words: 'Get the money back',
      isUrgent: true,
    })
    expect(offerRecourse(entry('purchase', 'completed'), null)).toMatchObject({ isUrgent: false })
  })

  it('is gone once the money was asked for, for final transfers, and for what was not paid', () => {
    expect(offerRecourse(entry('purchase', 'undelivered'), recourse({}))).toBe(null)
    expect(offerRecourse(entry('transfer', 'completed'), null)).toBe(null)
    expect(offerRecourse(entry('purchase', 'failed'), null)).toBe(null)
    expect(offerRecourse(entry('payout', 'completed'), null)).toBe(null)
  })
})
