import { expect, it } from 'vitest'
import { balances } from '../../../src/books/ledger/balances.ts'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { newId } from '../../../src/core/base/ids.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import { toDecimal, toMoney } from '../../../src/core/money/money.ts'
import type { CardAuthorization } from '../../../src/providers/card-processor/port.ts'
import { issueCard, newCard } from '../../../src/rails/cards/issue-card.ts'
import { type CardOrder, orderCard } from '../../../src/rails/cards/order-card.ts'
import { findReserve, releaseReserve, reserveAmount } from '../../../src/rails/cards/reserve-amount.ts'
import { endSingleUse, endSingleUses, viewOneCard } from '../../../src/rails/cards/single-use.ts'
import { type Card, findAnyCard } from '../../../src/rails/cards/store.ts'
import { finishOrders } from '../../../src/server/jobs/finish-orders.ts'
import type { Database } from '../../../src/storage/database.ts'
import { readUsage } from '../../books/spending/scene.ts'
import { onBothEngines } from '../../engines.ts'
import {
  applyCardEvents,
  beginPull,
  buildCoverage,
  buildPurchase,
  cardDependencies,
  decide,
  endPull,
  issueCard as issueOther,
  listOwned,
  newKey,
  newOwner,
  noon,
} from './scene.ts'

const hour = 3_600_000
const open = { mcc: null, name: null, country: null }

onBothEngines('a card for one purchase', (database) => {
  const processor = {
    issue: async ({ cardId }: { cardId: string }) => ({
      token: cardId,
      brand: 'Visa',
      last4: '4242',
      expMonth: 11,
      expYear: 2030,
    }),
  }
  const parts = (changes: object = {}) => ({
    ...cardDependencies(database()),
    cardProcessor: processor,
    bankingProvider: { open: () => Promise.reject(new Error('none')) },
    journal: async () => {},
    ...changes,
  })

  function order(accountId: string, dollars: string, changes: object = {}): Promise<CardOrder> {
    const {
      keyId = null,
      merchant = open,
      expiresAt = null,
    } = changes as Partial<{
      keyId: string
      merchant: typeof open
      expiresAt: Date
    }>
    const wish = { units: toMoney('USD', dollars).units, merchant, task: 'task', expiresAt }
    const wanted = { ...newCard, accountId, keyId, cardholderName: 'Ada', dailyMax: null, purchaseMax: null }
    return orderCard(
      { database: database(), newId },
      { wanted: { ...wanted, singleUse: wish }, call: null, at: noon },
    )
  }

  async function issue(accountId: string, dollars: string, changes: object = {}): Promise<Card> {
    const ordered = await order(accountId, dollars, changes)
    const reserve = await reserveAmount(parts(), ordered, { approvedBy: null, now: noon })
    expect(reserve.reason).toBe('approved')
    return issueCard(parts(), ordered)
  }

  const ask = async (card: Card, dollars: string, changes: Partial<CardAuthorization> = {}) => {
    const request = buildPurchase(card, dollars, changes)
    const { reason, approved } = await decide(parts(), request)
    return { request, answer: reason === 'approved' ? `${approved}` : reason }
  }
  const view = async (card: Card) => {
    const { status, singleUse } = await viewOneCard(
      database(),
      (await findAnyCard(database(), card.id)) ?? card,
    )
    return `${status} ${singleUse?.status} ${singleUse?.remaining}`
  }
  const used = async (keyId: string) => {
    const [row] = await database()
      .kysely.selectFrom('budget_usage')
      .select(['used_micros', 'count'])
      .where('key_id', '=', keyId)
      .execute()
    return `${(row?.used_micros ?? 0n) / 10_000n} in ${row?.count ?? 0}`
  }

  it('reserves its amount at issue, and its purchase takes the money from there', async () => {
    const owner = await newOwner(database(), { USDC: '30', USD: '50' })
    const keyId = await newKey(database(), owner)
    const card = await issue(owner, '40', { keyId })
    expect(await listOwned(database(), owner)).toEqual(['USD 40 + 10', 'USDC 0 + 30'])
    expect(await used(keyId)).toBe('4000 in 1')
    const { request, answer } = await ask(card, '25')
    expect(answer).toBe('2500')
    expect(await listOwned(database(), owner)).toEqual(['USD 40 + 10', 'USDC 0 + 30'])
    expect(await used(keyId)).toBe('4000 in 1')
    expect(await view(card)).toBe('active authorized 15')
    await applyCardEvents(parts(), request, 'settled', [['clearing', '20']])
    expect(await listOwned(database(), owner)).toEqual(['USD 50 + 0', 'USDC 10 + 20'])
    expect(await used(keyId)).toBe('2000 in 1')
    expect(await view(card)).toBe('canceled used 0')
    expect((await ask(card, '1')).answer).toBe('card_canceled')
  })

  it('takes increments up to its amount, once each', async () => {
    const owner = await newOwner(database(), { USDC: '100' })
    const card = await issue(owner, '30')
    const { request } = await ask(card, '10', { eventToken: 'e1' })
    const more = { token: request.token, eventToken: 'e2' }
    expect((await ask(card, '15', more)).answer).toBe('1500')
    expect((await ask(card, '15', more)).answer).toBe('1500')
    expect((await ask(card, '6', { ...more, eventToken: 'e3' })).answer).toBe('purchase_limit')
    expect((await ask(card, '5', { ...more, eventToken: 'e4' })).answer).toBe('500')
    expect(await view(card)).toBe('active authorized 0')
    await applyCardEvents(parts(), request, 'settled', [['clearing', '30']])
    expect(await listOwned(database(), owner)).toEqual(['USDC 70 + 30'])
  })

  it('declines at another merchant, above its amount and a second time, and is used up by none of it', async () => {
    const owner = await newOwner(database(), { USDC: '100' })
    const card = await issue(owner, '30', { merchant: { mcc: '5411', name: 'corner', country: 'US' } })
    const shop = { id: 'S', name: 'CORNER SHOP*12', mcc: '5411', country: 'USA' }
    const answers = []
    for (const merchant of [
      { ...shop, mcc: '7995' },
      { ...shop, mcc: null },
      { ...shop, name: 'The Corner Shop' },
      { ...shop, country: 'CAN' },
      { ...shop, country: null },
    ])
      answers.push((await ask(card, '10', { merchant })).answer)
    answers.push((await ask(card, '30.01', { merchant: shop })).answer)
    expect(new Set(answers.slice(0, 5))).toEqual(new Set(['merchant_denied']))
    expect(answers[5]).toBe('purchase_limit')
    expect((await ask(card, '0', { merchant: shop })).answer).toBe('0')
    expect((await ask(card, '30.01', { merchant: shop, allowsPartial: true })).answer).toBe('3000')
    expect((await ask(card, '1', { merchant: shop })).answer).toBe('card_used')
    expect(await listOwned(database(), owner)).toEqual(['USDC 70 + 30'])
  })

  it('gives one of two purchases at a time the money', async () => {
    const owner = await newOwner(database(), { USDC: '100' })
    const card = await issue(owner, '30')
    const both = await Promise.all([ask(card, '20'), ask(card, '20')])
    expect(both.map(({ answer }) => answer).sort()).toEqual(['2000', 'card_used'])
    expect(await listOwned(database(), owner)).toEqual(['USDC 70 + 30'])
  })

  it('can be used again after a purchase that the processor declined, and not after one that was voided', async () => {
    const owner = await newOwner(database(), { USDC: '100' })
    const keyId = await newKey(database(), owner)
    const card = await issue(owner, '30', { keyId })
    const first = await ask(card, '30')
    await applyCardEvents(parts(), first.request, 'declined', [])
    expect(await view(card)).toBe('active open 30')
    const second = await ask(card, '12')
    expect(second.answer).toBe('1200')
    await applyCardEvents(parts(), second.request, 'voided', [])
    expect(await view(card)).toBe('canceled used 0')
    expect(await listOwned(database(), owner)).toEqual(['USDC 100 + 0'])
    expect(await used(keyId)).toBe('0 in 0')
  })

  it('frees an approval that came too late, and stays open', async () => {
    const owner = await newOwner(database(), { USDC: '100' })
    const card = await issue(owner, '30')
    const late = parts({ clock: () => new Date(noon.getTime() + 5_000) })
    const request = buildPurchase(card, '30', { eventToken: 'e1' })
    expect((await decide(late, request)).reason).toBe('too_late')
    expect(await view(card)).toBe('active open 30')
    const kept = await ask(card, '10', { eventToken: 'e1' })
    const more = buildPurchase(card, '5', { token: kept.request.token, eventToken: 'e2' })
    expect((await decide(late, more)).reason).toBe('too_late')
    expect((await decide(late, more)).reason).toBe('too_late')
    expect(await view(card)).toBe('active authorized 15')
    await applyCardEvents(parts(), kept.request, 'settled', [['clearing', '10']])
    expect(await listOwned(database(), owner)).toEqual(['USDC 90 + 10'])
  })

  it.each(['expired', 'canceled'] as const)(
    'returns what is not authorized when it is %s, and no more',
    async (status) => {
      const owner = await newOwner(database(), { USDC: '100' })
      const keyId = await newKey(database(), owner)
      const unused = await issue(owner, '20', { keyId })
      const taken = await issue(owner, '30', { keyId })
      const { request } = await ask(taken, '12')
      for (const { id: cardId } of [unused, taken]) {
        expect(await endSingleUse(database(), { cardId, status, at: noon })).toBe(true)
        expect(await endSingleUse(database(), { cardId, status, at: noon })).toBe(false)
      }
      expect([await view(unused), await view(taken)]).toEqual(Array(2).fill(`canceled ${status} 0`))
      expect(await listOwned(database(), owner)).toEqual(['USDC 88 + 12'])
      expect(await used(keyId)).toBe('1200 in 1')
      await applyCardEvents(parts(), request, 'settled', [['clearing', '10']])
      expect(await listOwned(database(), owner)).toEqual(['USDC 90 + 10'])
      expect(await used(keyId)).toBe('1000 in 1')
    },
  )

  it('frees everything once when its end and the void of its purchase meet', async () => {
    const owner = await newOwner(database(), { USDC: '100' })
    const keyId = await newKey(database(), owner)
    const card = await issue(owner, '30', { keyId })
    const { request } = await ask(card, '12')
    await Promise.all([
      endSingleUse(database(), { cardId: card.id, status: 'canceled', at: noon }),
      applyCardEvents(parts(), request, 'voided', []),
    ])
    expect(await listOwned(database(), owner)).toEqual(['USDC 100 + 0'])
    expect(await used(keyId)).toBe('0 in 0')
  })

  it('pays a clearing that was never authorized, and books what is above its amount as a debt', async () => {
    const owner = await newOwner(database(), { USDC: '30' })
    const keyId = await newKey(database(), owner)
    const card = await issue(owner, '30', { keyId })
    const { request } = await ask(card, '10')
    await applyCardEvents(parts(), request, 'settled', [['clearing', '45']])
    expect(await listOwned(database(), owner)).toEqual(['USDC 0 + 30'])
    const [debt] = await database()
      .kysely.selectFrom('debt')
      .selectAll()
      .where('account_id', '=', owner)
      .execute()
    expect([debt?.owed, debt?.asset]).toEqual([1500n, 'USD'])
    expect(await used(keyId)).toBe('4500 in 1')
    expect(await view(card)).toBe('canceled used 0')

    const other = await newOwner(database(), { USDC: '100' })
    const forced = await issue(other, '30')
    const unasked = { token: newId('evt', noon), cardToken: forced.token }
    await applyCardEvents(parts(), unasked, 'settled', [['clearing', '25']], true)
    expect(await listOwned(database(), other)).toEqual(['USDC 75 + 25'])
    expect(await view(forced)).toBe('canceled used 0')
  })

  it('declines for a paused or revoked key and a locked account, whose revocation ends it', async () => {
    const owner = await newOwner(database(), { USDC: '100' })
    const root = await newKey(database(), owner)
    const child = await newKey(database(), owner)
    await setKey(database(), child, { path: [root] })
    const card = await issue(owner, '30', { keyId: child })
    expect([await used(root), await used(child)]).toEqual(['3000 in 1', '3000 in 1'])
    await setKey(database(), root, { status: 'paused' })
    expect((await ask(card, '10')).answer).toBe('key_not_active')
    await setKey(database(), root, { status: 'active' })
    await setAccount(database(), owner, 'locked')
    expect((await ask(card, '10')).answer).toBe('account_locked')
    await setAccount(database(), owner, 'active')
    const { request } = await ask(card, '10')
    await setKey(database(), root, { status: 'revoked' })
    expect((await ask(card, '1', { token: request.token, eventToken: 'more' })).answer).toBe('key_not_active')
    await endSingleUses(database(), { accountId: owner, at: noon })
    expect(await view(card)).toBe('canceled canceled 0')
    expect(await listOwned(database(), owner)).toEqual(['USDC 90 + 10'])
    expect([await used(root), await used(child)]).toEqual(['1000 in 1', '1000 in 1'])
  })

  it('is not judged by a policy that has changed, but by its rules about the merchant', async () => {
    const owner = await newOwner(database(), { USDC: '100' })
    const keyId = await newKey(database(), owner, { mcc: { deny: ['7995'] } })
    const card = await issue(owner, '30', { keyId })
    await issue(owner, '50', { keyId })
    const merchant = { id: 'S', name: 'Casino', mcc: '7995', country: 'USA' }
    expect((await ask(card, '10', { merchant })).answer).toBe('policy_denied')
    expect((await ask(card, '30')).answer).toBe('3000')
  })

  it('is denied above the policy and without money, and holds nothing', async () => {
    const owner = await newOwner(database(), { USDC: '20' })
    const keyId = await newKey(database(), owner)
    const reasons = []
    for (const dollars of ['60', '30'])
      reasons.push(
        (
          await reserveAmount(parts(), await order(owner, dollars, { keyId }), {
            approvedBy: null,
            now: noon,
          })
        ).reason,
      )
    expect(reasons).toEqual(['budget_exceeded', 'insufficient_funds'])
    expect(await listOwned(database(), owner)).toEqual(['USDC 20 + 0'])
    expect(await used(keyId)).toBe('0 in 0')
  })

  it('is backed by the escrow of a wallet that its owner can empty', async () => {
    const owner = await newOwner(database(), { USDC: '200' }, 'passkey')
    const readCoverages = async () => [await buildCoverage(database(), owner, { left: '1000' })]
    const ordered = await order(owner, '120')
    const covered = parts({ readCoverages })
    expect((await reserveAmount(covered, ordered, { approvedBy: null, now: noon })).reason).toBe('approved')
    const card = await issueCard(covered, ordered)
    expect(await places(database(), owner)).toEqual(['base-sepolia 80 + 0', 'escrow.base-sepolia 0 + 120'])
    const { request } = await ask(card, '50')
    await applyCardEvents(parts(), request, 'settled', [['clearing', '50']])
    expect(await places(database(), owner)).toEqual(['base-sepolia 80 + 0', 'escrow.base-sepolia 70 + 50'])
  })

  it('passes a hold on that is on its way to the escrow', async () => {
    const owner = await newOwner(database(), { USDC: '60' }, 'passkey')
    const covered = parts({
      readCoverages: async () => [await buildCoverage(database(), owner, { left: '1000' })],
    })
    const ordered = await order(owner, '20')
    await reserveAmount(covered, ordered, { approvedBy: null, now: noon })
    const card = await issueCard(covered, ordered)
    expect(await places(database(), owner)).toEqual(['base-sepolia 40 + 20'])
    const pull = await beginPull(database(), owner)
    const { request } = await ask(card, '5')
    await endSingleUse(database(), { cardId: card.id, status: 'expired', at: noon })
    await endPull(database(), pull ?? '')
    expect(await places(database(), owner)).toEqual(['base-sepolia 40 + 0', 'escrow.base-sepolia 15 + 5'])
    await applyCardEvents(parts(), request, 'voided', [])
    expect(await places(database(), owner)).toEqual(['base-sepolia 40 + 0', 'escrow.base-sepolia 20 + 0'])
  })

  it('survives an end of the process at each step of its issue', async () => {
    const owner = await newOwner(database(), { USDC: '100' })
    const later = { clock: () => new Date(noon.getTime() + 60_000) }
    const idle = new AbortController().signal
    const unreserved = await order(owner, '30')
    const reserved = await order(owner, '20')
    await reserveAmount(parts(), reserved, { approvedBy: null, now: noon })
    await reserveAmount(parts(), reserved, { approvedBy: null, now: noon })
    expect(await listOwned(database(), owner)).toEqual(['USDC 80 + 20'])
    await finishOrders(parts(later), idle)
    expect(await findAnyCard(database(), unreserved.id)).toBeUndefined()
    expect(await view({ id: reserved.id } as Card)).toBe('active open 20')
    await finishOrders(parts(later), idle)
    expect(await listOwned(database(), owner)).toEqual(['USDC 80 + 20'])
    const expiresAt = new Date(noon.getTime() + hour)
    expect(await endSingleUses(database(), { accountId: owner, at: new Date(expiresAt.getTime() - 1) })).toBe(
      0,
    )
    expect(await endSingleUses(database(), { accountId: owner, at: expiresAt })).toBe(1)
    expect(await listOwned(database(), owner)).toEqual(['USDC 100 + 0'])
  })

  it('frees its amount when the processor refuses it for good, and keeps it while the outcome is unknown', async () => {
    const owner = await newOwner(database(), { USDC: '100' })
    for (const [isFinal, left] of [
      [false, 'USDC 70 + 30'],
      [true, 'USDC 100 + 0'],
    ] as const) {
      const ordered = await order(owner, '30')
      await reserveAmount(parts(), ordered, { approvedBy: null, now: noon })
      const refusing = { issue: () => Promise.reject(new Failure('provider_unavailable', 'no', { isFinal })) }
      await expect(issueCard(parts({ cardProcessor: refusing }), ordered)).rejects.toThrow('no')
      expect(await listOwned(database(), owner)).toEqual([left])
      await releaseReserve(database(), { cardId: ordered.id, at: noon })
      expect((await findReserve(database(), ordered.id))?.reason).toBe('too_late')
    }
  })

  it('ends in the same books whatever meets: purchases, increments, their ends, and the end of the card', async () => {
    const owner = await newOwner(database(), { USDC: '1000' })
    const keyId = await newKey(database(), owner, { dailyBudget: { max: '1000' } })
    const cleared: number[] = []
    const cards = await Promise.all(Array.from({ length: 12 }, () => issue(owner, '20', { keyId })))
    await Promise.all(
      cards.map(async (card, index) => {
        const [first, second] = ['7', '9'].map((dollars) =>
          buildPurchase(card, dollars, { eventToken: 'first' }),
        )
        if (first === undefined || second === undefined) return
        const tries = [first, second].map(async (request) => {
          const { reason } = await decide(parts(), request)
          if (reason !== 'approved') return
          const more = buildPurchase(card, '4', { token: request.token, eventToken: 'more' })
          const status = (['settled', 'voided', 'declined'] as const)[index % 3] ?? 'voided'
          const clearing = status === 'settled' ? [['clearing', '6'] as const] : []
          if (status === 'settled') cleared.push(600)
          await Promise.all([decide(parts(), more), applyCardEvents(parts(), request, status, clearing)])
        })
        const cardEnd = { cardId: card.id, status: 'canceled', at: noon } as const
        await Promise.all([...tries, ...(index % 2 === 0 ? [endSingleUse(database(), cardEnd)] : [])])
        await endSingleUse(database(), cardEnd)
      }),
    )
    const spent = cleared.reduce((sum, cents) => sum + cents, 0)
    const dollars = (cents: number) => toDecimal({ asset: 'USD', units: BigInt(cents) })
    expect(await listOwned(database(), owner)).toEqual([
      `USDC ${dollars(100_000 - spent)} + ${dollars(spent)}`,
    ])
    expect(await used(keyId)).toBe(`${spent} in ${cleared.length}`)
    const left = await database()
      .kysely.selectFrom('card_hold')
      .innerJoin('card_authorization', 'card_authorization.id', 'card_hold.authorization_id')
      .select('micros')
      .where('account_id', '=', owner)
      .where('micros', '>', 0n)
      .execute()
    expect(left).toEqual([])
  })

  it('leaves balanced books', async () => {
    expect((await trialBalance(database())).balanced).toBe(true)
  })
})

onBothEngines('an increment of another card', (database) => {
  it('is judged and held like a purchase, and ends with it', async () => {
    const owner = await newOwner(database(), { USDC: '100' })
    const keyId = await newKey(database(), owner)
    const card = await issueOther(database(), owner, { keyId })
    const first = buildPurchase(card, '20', { eventToken: 'e1' })
    const more = (dollars: string, eventToken: string) =>
      decide(cardDependencies(database()), buildPurchase(card, dollars, { token: first.token, eventToken }))
    await decide(cardDependencies(database()), first)
    expect((await more('30', 'e2')).reason).toBe('approved')
    expect((await more('30', 'e2')).reason).toBe('approved')
    expect((await more('51', 'e3')).reason).toBe('budget_exceeded')
    expect(await listOwned(database(), owner)).toEqual(['USDC 50 + 50'])
    await applyCardEvents(cardDependencies(database()), first, 'voided', [])
    expect(await listOwned(database(), owner)).toEqual(['USDC 100 + 0'])
    const usage = await database()
      .kysely.selectFrom('budget_usage')
      .selectAll()
      .where('key_id', '=', keyId)
      .execute()
    expect(usage.map(({ used_micros, count }) => [used_micros, count])).toEqual([[0n, 0]])
  })

  it('gives back to the day that counted it, the latest first', async () => {
    const owner = await newOwner(database(), { USDC: '1000' })
    const keyId = await newKey(database(), owner)
    const card = await issueOther(database(), owner, { keyId, dailyMax: 10_000n })
    const nextDay = new Date(noon.getTime() + 24 * 60 * 60_000)
    const days = ['2026-11-20', '2026-11-21']
    const buy = (dollars: string, changes: Partial<CardAuthorization>, now: Date) =>
      decide(cardDependencies(database()), buildPurchase(card, dollars, changes), newId('evt', noon), now)
    const read = async () => ({
      key: await Promise.all(
        days.map(async (day) => {
          const { usedMicros, count } = await readUsage(database(), keyId, day)
          return `${usedMicros / 1_000_000n} in ${count}`
        }),
      ),
      card: (
        await database()
          .kysely.selectFrom('card_usage')
          .select('units')
          .where('card_id', '=', card.id)
          .orderBy('day')
          .execute()
      ).map(({ units }) => units / 100n),
    })
    await buy('40', {}, noon)
    const hotel = buildPurchase(card, '20', { eventToken: 'e1' })
    await buy('20', hotel, noon)
    expect((await buy('50', { token: hotel.token, eventToken: 'e2' }, nextDay)).reason).toBe('approved')
    expect(await read()).toEqual({ key: ['60 in 2', '50 in 1'], card: [60n, 50n] })
    await applyCardEvents(cardDependencies(database()), hotel, 'pending', [['reversal', '30']])
    expect(await read()).toEqual({ key: ['60 in 2', '20 in 1'], card: [60n, 20n] })
    await applyCardEvents(cardDependencies(database()), hotel, 'voided', [['reversal', '30']])
    expect(await read()).toEqual({ key: ['40 in 1', '0 in 0'], card: [40n, 0n] })
  })

  it('gives back to the key that counted it, though the card has another since', async () => {
    const owner = await newOwner(database(), { USDC: '1000' })
    const [parent, first, second] = [
      await newKey(database(), owner),
      await newKey(database(), owner),
      await newKey(database(), owner),
    ]
    await database()
      .kysely.updateTable('access_key')
      .set({ path: [parent] })
      .where('id', 'in', [first, second])
      .execute()
    const card = await issueOther(database(), owner, { keyId: first })
    const hotel = buildPurchase(card, '20', { eventToken: 'e1' })
    await decide(cardDependencies(database()), buildPurchase(card, '25'))
    await decide(cardDependencies(database()), hotel)
    await database()
      .kysely.updateTable('card')
      .set(({ eb }) => ({ key_id: second, version: eb('version', '+', 1) }))
      .where('id', '=', card.id)
      .execute()
    const more = buildPurchase(card, '50', { token: hotel.token, eventToken: 'e2' })
    expect((await decide(cardDependencies(database()), more)).reason).toBe('approved')
    await applyCardEvents(cardDependencies(database()), hotel, 'voided', [])
    for (const keyId of [parent, first])
      expect(await readUsage(database(), keyId)).toEqual({ usedMicros: 25_000_000n, count: 1 })
    expect(await readUsage(database(), second)).toEqual({ usedMicros: 0n, count: 0 })
  })
})

async function places(database: Database, accountId: string): Promise<readonly string[]> {
  const rows = await balances(database, accountId)
  const amount = (units: bigint) => toDecimal({ asset: 'USDC', units })
  return rows
    .filter(({ available, held }) => available + held > 0n)
    .map(({ place, available, held }) => `${place} ${amount(available)} + ${amount(held)}`)
    .sort()
}

async function setKey(database: Database, id: string, set: object): Promise<void> {
  await database.kysely.updateTable('access_key').set(set).where('id', '=', id).execute()
}

async function setAccount(database: Database, id: string, status: 'active' | 'locked'): Promise<void> {
  await database.kysely.updateTable('account').set({ status }).where('id', '=', id).execute()
}
