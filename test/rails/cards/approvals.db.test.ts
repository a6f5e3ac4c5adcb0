/** Approvals of declined purchases: each lets one purchase of its card at its merchant pass. */
import { expect, it } from 'vitest'
import { decideApproval, findApproval, listApprovals } from '../../../src/books/approvals/approvals.ts'
import { newId } from '../../../src/core/base/ids.ts'
import { createRunApproved } from '../../../src/kernel/run-approved.ts'
import type { CardAuthorization } from '../../../src/providers/card-processor/port.ts'
import { updateCard } from '../../../src/rails/cards/store.ts'
import type { Database } from '../../../src/storage/database.ts'
import { onBothEngines } from '../../engines.ts'
import {
  buildPurchase,
  cardDependencies,
  decide,
  issueCard,
  listOwned,
  newKey,
  newOwner,
  noon,
} from './scene.ts'

const SECOND = 1000
const WINDOW = 15 * 60 * SECOND
const after = (ms: number) => new Date(noon.getTime() + ms)
const page = { after: null, limit: 50 }

async function openScene(database: Database, policy: Record<string, unknown> = {}) {
  const accountId = await newOwner(database, { USDC: '1000' })
  const keyId = await newKey(database, accountId, {
    perTransaction: { max: '100' },
    dailyBudget: { max: '900' },
    approval: { above: '5', ttlSec: 600 },
    ...policy,
  })
  const card = await issueCard(database, accountId, { keyId })
  const parts = cardDependencies(database)
  const buy = async (dollars: string, changes: Partial<CardAuthorization> = {}, at = noon) =>
    (await decide(parts, buildPurchase(card, dollars, changes), newId('evt', noon), at)).reason
  const list = () => listApprovals(database, { accountId, status: undefined, page, now: noon })
  const pendingId = async () => (await list()).find(({ status }) => status === 'pending')?.id ?? ''
  const answer = (id: string, status: 'approved' | 'rejected' | 'withdrawn', at = noon) =>
    decideApproval(database, { accountId, keyId: null, id, status, note: null, at })
  /** Declines a purchase and approves it. @returns its approval. */
  const approve = async (dollars: string, changes: Partial<CardAuthorization> = {}) => {
    expect(await buy(dollars, changes)).toBe('approval_required')
    const id = await pendingId()
    expect(await answer(id, 'approved')).toMatchObject({ id, status: 'approved' })
    return id
  }
  const read = (id: string) => findApproval(database, { accountId, keyId: null, id, now: noon })
  return { accountId, keyId, card, parts, buy, list, pendingId, answer, approve, read }
}

onBothEngines('an approval of a card purchase', (database) => {
  it('is written with the decline, once for the same purchase while it is open', async () => {
    const { keyId, card, buy, list, answer } = await openScene(database())
    expect(await buy('10')).toBe('approval_required')
    expect(await buy('10')).toBe('approval_required')
    const [first, ...others] = await list()
    expect(others).toEqual([])
    expect(first).toMatchObject({
      keyId,
      cardId: card.id,
      operation: 'cards.authorize',
      status: 'pending',
      violations: [],
      reason: null,
      expiresAt: after(600 * SECOND),
    })
    expect(JSON.parse(first?.input ?? '')).toEqual({
      cardId: card.id,
      merchant: 'Corner Shop',
      mcc: '5411',
      amount: '10',
      currency: 'USD',
      channel: 'ecommerce',
    })
    await buy('11')
    await buy('10', { merchant: { id: 'OTHER', name: 'Corner Shop', mcc: '5411', country: 'USA' } })
    expect(await list()).toHaveLength(3)
    await answer(first?.id ?? '', 'rejected')
    expect(await buy('10')).toBe('approval_required')
    expect(await buy('10', {}, after(601 * SECOND))).toBe('approval_required')
    expect(await list()).toHaveLength(5)
  })

  it('is not written when the purchase is declined for another reason or needs no approval', async () => {
    const { buy, list } = await openScene(database(), {
      dailyBudget: { max: '20' },
      perTransaction: { max: '20' },
    })
    expect(await buy('21')).toBe('budget_exceeded')
    expect(await buy('5')).toBe('approved')
    expect(await buy('16')).toBe('budget_exceeded')
    const poor = await openScene(database(), {
      dailyBudget: { max: '5000' },
      perTransaction: { max: '5000' },
    })
    expect(await poor.buy('1001')).toBe('insufficient_funds')
    expect([await list(), await poor.list()]).toEqual([[], []])
  })

  it('is for its card, merchant, amount and key only', async () => {
    const { accountId, keyId, card, parts, buy, approve, read } = await openScene(database())
    const id = await approve('10')
    const other = await issueCard(database(), accountId, { keyId })
    expect((await decide(parts, buildPurchase(other, '10'))).reason).toBe('approval_required')
    expect(await buy('10.01')).toBe('approval_required')
    for (const merchant of [
      { id: 'SHOP', name: 'Other Shop', mcc: '5411', country: 'USA' },
      { id: 'OTHER', name: 'Corner Shop', mcc: '5411', country: 'USA' },
      { id: '', name: 'Corner Shop', mcc: '5411', country: 'USA' },
    ])
      expect(await buy('10', { merchant })).toBe('approval_required')
    const stranger = await newKey(database(), accountId, { approval: { above: '5' } })
    const rebound = await updateCard(database(), { ...card, keyId: stranger })
    expect(await buy('10')).toBe('approval_required')
    await updateCard(database(), { ...rebound, keyId })
    expect(await buy('9.99')).toBe('approved')
    expect(await read(id)).toMatchObject({ answer: { amount: '9.99', usedAt: noon.toISOString() } })
    expect(await buy('10')).toBe('approval_required')
    expect(await listOwned(database(), accountId)).toEqual(['USDC 990.01 + 9.99'])
  })

  it('passes until 15 minutes after it was given, and never before', async () => {
    const { buy, answer, list, pendingId, approve } = await openScene(database())
    await buy('10')
    const [open] = await list()
    expect(await buy('10')).toBe('approval_required')
    await answer(open?.id ?? '', 'approved')
    expect(await buy('10', {}, after(WINDOW))).toBe('approval_required')
    expect(await buy('10', {}, after(WINDOW - 1))).toBe('approved')
    const id = await approve('12')
    expect(id).not.toBe(open?.id)
    for (const status of ['rejected', 'withdrawn'] as const) {
      await buy('13')
      await answer(await pendingId(), status)
      expect(await buy('13')).toBe('approval_required')
    }
  })

  it('passes one of several racing retries, in each of many rounds', async () => {
    const { accountId, buy, approve, pendingId, answer } = await openScene(database())
    for (let round = 0; round < 25; round += 1) {
      await approve('10')
      const reasons = await Promise.all(Array.from({ length: 4 }, () => buy('10')))
      expect(reasons.sort()).toEqual([
        'approval_required',
        'approval_required',
        'approval_required',
        'approved',
      ])
      await answer(await pendingId(), 'withdrawn')
    }
    expect(await listOwned(database(), accountId)).toEqual(['USDC 750 + 250'])
  })

  it('is lost or used, never both, when the card is frozen during the retry', async () => {
    const { accountId, buy, approve, read, card, pendingId, answer } = await openScene(database())
    let passed = 0
    let { version } = card
    for (let round = 0; round < 25; round += 1) {
      const id = await approve('10')
      const change = (status: 'active' | 'frozen') =>
        updateCard(database(), { ...card, status, version: version++ })
      const [reason] = await Promise.all([buy('10'), change('frozen')])
      await change('active')
      const found = await read(id)
      expect(found?.answer !== null).toBe(reason === 'approved')
      expect(found?.endedAt !== null).toBe(reason !== 'approved')
      passed += reason === 'approved' ? 1 : 0
      await answer(await pendingId(), 'withdrawn')
    }
    const held = passed * 10
    expect(await listOwned(database(), accountId)).toEqual([`USDC ${1000 - held} + ${held}`])
  })

  it('ends with a paused or revoked key, a frozen or canceled card and a locked account', async () => {
    const ends = [
      ['access_key', 'paused'],
      ['access_key', 'revoked'],
      ['card', 'frozen'],
      ['card', 'canceled'],
      ['account', 'locked'],
    ] as const
    for (const [table, status] of ends) {
      const { accountId, keyId, card, buy, approve, read } = await openScene(database())
      const id = await approve('10')
      const set = (values: Record<string, unknown>) =>
        database()
          .kysely.updateTable(table)
          .set(values)
          .where('id', '=', { access_key: keyId, card: card.id, account: accountId }[table])
          .execute()
      await set({ status })
      await set({ status: 'active' })
      expect([table, status, await buy('10')]).toEqual([table, status, 'approval_required'])
      const ended = await read(id)
      expect(ended).toMatchObject({
        status: 'approved',
        answer: null,
        problem: null,
        endedAt: expect.any(Date),
      })
    }
  })

  it('is kept for at most ten purchases of a key, and still declines the others', async () => {
    const { buy, list } = await openScene(database())
    const reasons = await Promise.all(Array.from({ length: 14 }, (_each, index) => buy(`${10 + index}.50`)))
    expect(new Set(reasons)).toEqual(new Set(['approval_required']))
    expect(await list()).toHaveLength(10)
  })

  it('has no outcome until it is used or has ended, and then a final one', async () => {
    const { buy, approve, read, parts } = await openScene(database())
    const run = createRunApproved(() => undefined)
    const finish = async (id: string, now: Date) => {
      const approval = await read(id)
      if (approval === undefined) throw new Error('the approval is missing')
      const never = () => Promise.reject(new Error('no call runs'))
      // Only these members are read.
      return run({ ...parts, now } as unknown as Parameters<typeof run>[0], approval, never)
    }
    const used = await approve('10')
    expect(await finish(used, noon)).toMatchObject({ answer: null, problem: null })
    expect(await buy('10')).toBe('approved')
    expect(await finish(used, after(WINDOW))).toMatchObject({ answer: { amount: '10' }, problem: null })
    const unused = await approve('11')
    expect(await finish(unused, after(WINDOW - 1))).toMatchObject({ problem: null })
    expect(await finish(unused, after(WINDOW))).toMatchObject({
      answer: null,
      problem: { code: 'conflict', reason: 'expired' },
    })
    expect(await buy('11')).toBe('approval_required')
  })
})
