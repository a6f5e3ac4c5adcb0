import { expect, it } from 'vitest'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { newId } from '../../../src/core/base/ids.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import type { CardAuthorization } from '../../../src/providers/card-processor/port.ts'
import { type Card, findOwnCard, updateCard } from '../../../src/rails/cards/store.ts'
import { capAccount, usageOf } from '../../books/spending/scene.ts'
import { onBothEngines } from '../../engines.ts'
import {
  applyCardEvents,
  buildPurchase,
  cardDependencies,
  dataKey,
  decide,
  fund,
  give,
  issueCard,
  listOwned,
  newKey,
  newOwner,
  noon,
  pullHolds,
  settleAll,
} from './scene.ts'

const cardPolicy = {
  perTransaction: { max: '50' },
  dailyBudget: { max: '100' },
  categories: { allow: ['card'] },
}

onBothEngines('a card decision', (database) => {
  it('holds the first asset of the priority and returns the same answer to repeats', async () => {
    const owner = await newOwner(database(), { USDC: '100', USD: '50' })
    const card = await issueCard(database(), owner)
    const request = buildPurchase(card, '12.50')
    const first = await decide(cardDependencies(database()), request, 'evt_one')
    expect(first).toMatchObject({ reason: 'approved', approved: 1250n })
    const again = await Promise.all(
      Array.from({ length: 5 }, () => decide(cardDependencies(database()), request, 'evt_one')),
    )
    expect(new Set(again.map(({ reason, approved }) => `${reason} ${approved}`))).toEqual(
      new Set(['approved 1250']),
    )
    expect(await listOwned(database(), owner)).toEqual(['USD 50 + 0', 'USDC 87.5 + 12.5'])
  })

  it('accepts no other request under a known token as a repeat', async () => {
    const owner = await newOwner(database(), { USDC: '100' })
    const card = await issueCard(database(), owner)
    const request = buildPurchase(card, '5')
    await decide(cardDependencies(database()), request, 'evt_small')
    const others = [
      { ...request, units: 50_000n },
      { ...request, units: 100n },
      { ...request, token: 'other' },
      { ...request, token: 'other', units: 50_000n },
      { ...request, merchant: { ...request.merchant, id: 'OTHER' } },
      { ...request, merchant: { ...request.merchant, mcc: '5812' } },
      { ...request, channel: 'contactless' as const },
      { ...request, allowsPartial: true },
      { ...request, type: 'credit' as const },
      { ...request, cardToken: (await issueCard(database(), owner)).token },
    ]
    for (const other of others)
      expect(await decide(cardDependencies(database()), other, 'evt_small')).toMatchObject({
        reason: 'unavailable',
        approved: 0n,
      })
    expect(await listOwned(database(), owner)).toEqual(['USDC 95 + 5'])
  })

  it('splits over several assets at the current rate, rounding the hold up', async () => {
    const owner = await newOwner(database(), { USDC: '5', EURC: '2', USD: '10' })
    const card = await issueCard(database(), owner, { priority: ['EURC', 'USDC', 'USD'] })
    expect(await decide(cardDependencies(database()), buildPurchase(card, '10'))).toMatchObject({
      reason: 'approved',
    })
    // 2 EURC are 2.141 USD, 5 USDC are 5 USD; 2.859 USD are 2.86 in cents.
    expect(await listOwned(database(), owner)).toEqual(['EURC 0 + 2', 'USD 7.14 + 2.86', 'USDC 0 + 5'])
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('converts at the rate less a spread, and not between assets of one currency', async () => {
    const owner = await newOwner(database(), { USDC: '5', EURC: '100' })
    const card = await issueCard(database(), owner, { priority: ['USDC', 'EURC'] })
    const parts = cardDependencies(database())
    const spread = {
      ...parts,
      settings: { ...parts.settings, cardSpreadBps: 50, cardFloatMicros: 50_000_000n, cardPullMs: 2_500 },
    }
    const purchase = buildPurchase(card, '15')
    expect(await decide(spread, purchase)).toMatchObject({ reason: 'approved' })
    // 5 USDC are 5 USD; 10 USD at 1.0705 less half a percent are 9.388372 EURC, rounded up.
    expect(await listOwned(database(), owner)).toEqual(['EURC 90.611628 + 9.388372', 'USDC 0 + 5'])
    await applyCardEvents(spread, purchase, 'settled', [['clearing', '15']])
    await settleAll(database(), owner)
    expect(await listOwned(database(), owner)).toEqual(['EURC 90.611628 + 0'])
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('never uses assets outside the priority, nor a wallet that the gateway cannot move', async () => {
    const owner = await newOwner(database(), { USDC: '100', USD: '1' })
    const card = await issueCard(database(), owner, { priority: ['USD'] })
    expect(await decide(cardDependencies(database()), buildPurchase(card, '2'))).toMatchObject({
      reason: 'insufficient_funds',
    })
    const own = await newOwner(database(), { USDC: '100' }, 'passkey')
    expect(
      await decide(cardDependencies(database()), buildPurchase(await issueCard(database(), own), '2')),
    ).toMatchObject({
      reason: 'insufficient_funds',
    })
  })

  it('approves a part if the terminal supports it', async () => {
    const owner = await newOwner(database(), { USDC: '7.777777' })
    const card = await issueCard(database(), owner)
    expect(await decide(cardDependencies(database()), buildPurchase(card, '10'))).toMatchObject({
      reason: 'insufficient_funds',
    })
    expect(
      await decide(cardDependencies(database()), buildPurchase(card, '10', { allowsPartial: true })),
    ).toMatchObject({
      reason: 'approved',
      asked: 1000n,
      approved: 777n,
    })
    expect(await listOwned(database(), owner)).toEqual(['USDC 0.007777 + 7.77'])
  })

  it.each<[string, Partial<Card>, Partial<CardAuthorization>]>([
    ['card_frozen', { status: 'frozen' }, {}],
    ['card_canceled', { status: 'canceled' }, {}],
    ['channel_off', { channels: ['contactless'] }, {}],
    ['channel_off', { channels: ['ecommerce'] }, { channel: null }],
    ['merchant_denied', { mccDeny: ['5411'] }, {}],
    ['merchant_denied', { mccAllow: ['5812'] }, {}],
    ['purchase_limit', { purchaseMax: 999n }, {}],
    ['daily_limit', { dailyMax: 999n }, {}],
  ])('declines with %s', async (reason, controls, request) => {
    const owner = await newOwner(database(), { USDC: '100' })
    const card = await issueCard(database(), owner, controls)
    if (controls.status !== undefined) await updateCard(database(), { ...card, status: controls.status })
    expect(await decide(cardDependencies(database()), buildPurchase(card, '10', request))).toMatchObject({
      reason,
      approved: 0n,
    })
    expect(await listOwned(database(), owner)).toEqual(['USDC 100 + 0'])
  })

  it('enforces the daily limit to the cent', async () => {
    const owner = await newOwner(database(), { USDC: '100' })
    const card = await issueCard(database(), owner, { dailyMax: 2000n })
    const answers = []
    for (const amount of ['12', '8.01', '8', '0.01'])
      answers.push((await decide(cardDependencies(database()), buildPurchase(card, amount))).reason)
    expect(answers).toEqual(['approved', 'daily_limit', 'approved', 'daily_limit'])
  })

  it('declines the next purchase of a frozen card', async () => {
    const owner = await newOwner(database(), { USDC: '100' })
    const card = await issueCard(database(), owner)
    expect(await decide(cardDependencies(database()), buildPurchase(card, '1'))).toMatchObject({
      reason: 'approved',
    })
    await updateCard(database(), { ...card, status: 'frozen' })
    expect(await decide(cardDependencies(database()), buildPurchase(card, '1'))).toMatchObject({
      reason: 'card_frozen',
    })
    const frozen = await findOwnCard(database(), { accountId: owner, id: card.id })
    await updateCard(database(), { ...card, ...frozen, status: 'active' })
    expect(await decide(cardDependencies(database()), buildPurchase(card, '1'))).toMatchObject({
      reason: 'approved',
    })
  })

  it('decides on what holds now, however well it remembers the card', async () => {
    const owner = await newOwner(database(), { USDC: '1000' })
    const keyId = await newKey(database(), owner)
    const card = await issueCard(database(), owner, { keyId })
    let now = card
    const kycLimits = { none: 0n, basic: 20_000_000n, full: null }
    const parts = {
      ...cardDependencies(database()),
      settings: {
        mode: 'production' as const,
        kycLimits,
        dataKey,
        cardSpreadBps: 0,
        cardFloatMicros: 50_000_000n,
        cardPullMs: 2_500,
      },
    }
    const readReason = async (amount = '1') => (await decide(parts, buildPurchase(card, amount))).reason
    const setCard = async (controls: Partial<Card>) => {
      now = await updateCard(database(), { ...now, ...controls })
    }
    const setKey = (values: Record<string, unknown>) =>
      database().kysely.updateTable('access_key').set(values).where('id', '=', keyId).execute()
    const setOwner = (values: Record<string, unknown>) =>
      database().kysely.updateTable('account').set(values).where('id', '=', owner).execute()
    const changes: readonly (readonly [reason: string, change: () => unknown, undo: () => unknown])[] = [
      ['card_frozen', () => setCard({ status: 'frozen' }), () => setCard({ status: 'active' })],
      ['purchase_limit', () => setCard({ purchaseMax: 99n }), () => setCard({ purchaseMax: null })],
      ['kyc_required', () => setOwner({ kyc_level: 'none' }), () => setOwner({ kyc_level: 'basic' })],
      ['account_locked', () => setOwner({ status: 'locked' }), () => setOwner({ status: 'active' })],
      ['key_not_active', () => setKey({ expires_at: noon }), () => setKey({ expires_at: null })],
      ['policy_denied', () => setKey({ status: 'paused' }), () => setKey({ status: 'active' })],
      ['key_not_active', () => setKey({ status: 'revoked' }), () => setKey({ status: 'active' })],
      [
        'policy_denied',
        () => setKey({ policy: null, policy_version: 2 }),
        () => setKey({ policy: JSON.stringify(cardPolicy), policy_version: 3 }),
      ],
    ]
    await setOwner({ kyc_level: 'basic' })
    for (const [reason, change, undo] of changes) {
      expect(await readReason()).toBe('approved')
      await change()
      expect(await readReason()).toBe(reason)
      await undo()
      expect(await readReason()).toBe('approved')
    }
    // The wallet passes to its owner, and nothing is known of the chain.
    await pullHolds(database(), owner)
    await give(database(), owner)
    expect(await readReason()).toBe('insufficient_funds')
  })

  it('applies the policy of the key it is bound to, in the key’s own budget', async () => {
    const owner = await newOwner(database(), { USDC: '1000' })
    const keyId = await newKey(database(), owner, { mcc: { deny: ['7995'] } })
    const card = await issueCard(database(), owner, { keyId })
    const authorizeWith = async (amount: string, changes = {}) =>
      (await decide(cardDependencies(database()), buildPurchase(card, amount, changes))).reason
    expect(await authorizeWith('50.01')).toBe('budget_exceeded')
    expect(
      await authorizeWith('10', { merchant: { id: 'X', name: 'Casino', mcc: '7995', country: null } }),
    ).toBe('policy_denied')
    expect(await authorizeWith('50')).toBe('approved')
    expect(await authorizeWith('50')).toBe('approved')
    expect(await authorizeWith('0.01')).toBe('budget_exceeded')
    expect(await usageOf(database(), keyId)).toEqual({ usedMicros: 100_000_000n, count: 2 })
    const decisions = await database()
      .kysely.selectFrom('decision')
      .selectAll()
      .where('key_id', '=', keyId)
      .orderBy('id')
      .execute()
    expect(decisions.map(({ verdict }) => verdict).sort()).toEqual(['allow', 'allow', 'deny', 'deny', 'deny'])
    expect(decisions.every(({ operation }) => operation === 'cards.authorize')).toBe(true)
  })

  it('applies the week’s and the month’s budget of the key, and of all keys', async () => {
    const owner = await newOwner(database(), { USDC: '1000' })
    const keyId = await newKey(database(), owner, {
      weeklyBudget: { max: '60' },
      monthlyBudget: { max: '70', maxCount: 3 },
    })
    const card = await issueCard(database(), owner, { keyId })
    const authorizeAt = async (days: number, amount: string) => {
      const at = new Date(noon.getTime() + days * 86_400_000)
      return (await decide(cardDependencies(database()), buildPurchase(card, amount), newId('evt', at), at))
        .reason
    }
    // From a Friday to the next.
    expect(await authorizeAt(0, '50')).toBe('approved')
    expect(await authorizeAt(1, '10.01')).toBe('budget_exceeded')
    expect(await authorizeAt(1, '10')).toBe('approved')
    expect(await authorizeAt(3, '10.01')).toBe('budget_exceeded')
    expect(await authorizeAt(3, '5')).toBe('approved')
    expect(await authorizeAt(4, '1')).toBe('budget_exceeded')
    await capAccount(database(), owner, null, { month: 20_000_000n })
    // December.
    expect(await authorizeAt(14, '20.01')).toBe('budget_exceeded')
    expect(await authorizeAt(14, '20')).toBe('approved')
  })

  it('uses only the assets and chains that the policy allows', async () => {
    const owner = await newOwner(database(), { USDC: '100', PYUSD: '100' })
    const keyId = await newKey(database(), owner, { assets: ['PYUSD'] })
    const card = await issueCard(database(), owner, { keyId })
    expect(await decide(cardDependencies(database()), buildPurchase(card, '10'))).toMatchObject({
      reason: 'approved',
    })
    expect(await listOwned(database(), owner)).toEqual(['PYUSD 90 + 10', 'USDC 100 + 0'])
    const nowhere = await issueCard(database(), owner, {
      keyId: await newKey(database(), owner, { assets: [] }),
    })
    expect(await decide(cardDependencies(database()), buildPurchase(nowhere, '10'))).toMatchObject({
      reason: 'policy_denied',
    })
  })

  it('declines with the key: paused, revoked, expired, over the owner’s cap, or in need of approval', async () => {
    const owner = await newOwner(database(), { USDC: '1000' })
    const set = (keyId: string, values: Record<string, unknown>) =>
      database().kysely.updateTable('access_key').set(values).where('id', '=', keyId).execute()
    const authorizeWith = async (keyId: string) =>
      (
        await decide(
          cardDependencies(database()),
          buildPurchase(await issueCard(database(), owner, { keyId }), '10'),
        )
      ).reason
    const [paused, revoked, ended, fresh] = await Promise.all(
      Array.from({ length: 4 }, () => newKey(database(), owner)),
    )
    await set(paused ?? '', { status: 'paused' })
    await set(revoked ?? '', { status: 'revoked' })
    await set(ended ?? '', { expires_at: noon })
    expect(await authorizeWith(paused ?? '')).toBe('policy_denied')
    expect(await authorizeWith(revoked ?? '')).toBe('key_not_active')
    expect(await authorizeWith(ended ?? '')).toBe('key_not_active')
    expect(await authorizeWith(await newKey(database(), owner, { approval: { above: '5' } }))).toBe(
      'approval_required',
    )
    await capAccount(database(), owner, 9_000_000n)
    expect(await authorizeWith(fresh ?? '')).toBe('budget_exceeded')
    await database().kysely.updateTable('account').set({ status: 'locked' }).where('id', '=', owner).execute()
    expect(await authorizeWith(fresh ?? '')).toBe('account_locked')
    expect(await listOwned(database(), owner)).toEqual(['USDC 1000 + 0'])
  })

  it('never approves more than the balance or the limit under concurrent requests', async () => {
    const owner = await newOwner(database(), { USDC: '50', USDT: '10.5', USD: '4' })
    const card = await issueCard(database(), owner)
    const answers = await Promise.all(
      Array.from({ length: 40 }, () => decide(cardDependencies(database()), buildPurchase(card, '3'))),
    )
    expect(answers.filter(({ reason }) => reason === 'approved')).toHaveLength(21)
    expect(await listOwned(database(), owner)).toEqual(['USD 1.5 + 2.5', 'USDC 0 + 50', 'USDT 0 + 10.5'])
    await fund(database(), owner, { USDC: '1000' })
    const limited = await issueCard(database(), owner, { dailyMax: 1000n })
    const more = await Promise.all(
      Array.from({ length: 20 }, () => decide(cardDependencies(database()), buildPurchase(limited, '1.50'))),
    )
    expect(more.filter(({ reason }) => reason === 'approved')).toHaveLength(6)
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('answers a balance inquiry without a hold, and debits nothing for an incoming credit', async () => {
    const owner = await newOwner(database(), { USDC: '10', EURC: '10' })
    const card = await issueCard(database(), owner)
    expect(
      await decide(cardDependencies(database()), buildPurchase(card, '0', { type: 'inquiry', units: 0n })),
    ).toMatchObject({
      reason: 'approved',
      balance: 2070n,
    })
    expect(
      await decide(cardDependencies(database()), buildPurchase(card, '5', { type: 'credit' })),
    ).toMatchObject({
      reason: 'approved',
    })
    expect(await listOwned(database(), owner)).toEqual(['EURC 10 + 0', 'USDC 10 + 0'])
  })

  it('needs no rates for dollars, and spends nothing else without them', async () => {
    const rates = { latest: () => Promise.reject(new Failure('rates_unavailable', 'gone')) }
    const parts = cardDependencies(database(), { rates })
    const owner = await newOwner(database(), { EURC: '10', USDC: '10' })
    const card = await issueCard(database(), owner)
    expect(await decide(parts, buildPurchase(card, '5'))).toMatchObject({ reason: 'approved' })
    expect(await decide(parts, buildPurchase(card, '6'))).toMatchObject({ approved: 0n })
    expect(await listOwned(database(), owner)).toEqual(['EURC 10 + 0', 'USDC 5 + 5'])
  })

  it('declines while rail controls are unavailable, and while the rail is off', async () => {
    const owner = await newOwner(database(), { USDC: '10' })
    const request = buildPurchase(await issueCard(database(), owner), '5')
    const noControls = { read: () => Promise.reject(new Failure('controls_unavailable', 'gone')) }
    const off = { read: async () => ({ rail: 'card-payments', enabled: false, reason: null }) as const }
    expect(await decide(cardDependencies(database(), { railControls: noControls }), request)).toMatchObject({
      reason: 'unavailable',
    })
    expect(await decide(cardDependencies(database(), { railControls: off }), request)).toMatchObject({
      reason: 'rail_disabled',
    })
    expect(await listOwned(database(), owner)).toEqual(['USDC 10 + 0'])
  })

  it('reverses an approval that came too late', async () => {
    const owner = await newOwner(database(), { USDC: '10' })
    const card = await issueCard(database(), owner)
    const late = cardDependencies(database(), { clock: () => new Date(noon.getTime() + 5_000) })
    const request = buildPurchase(card, '5')
    expect(await decide(late, request)).toMatchObject({ reason: 'too_late', approved: 0n })
    expect(await decide(cardDependencies(database()), request)).toMatchObject({ reason: 'too_late' })
    expect(await listOwned(database(), owner)).toEqual(['USDC 10 + 0'])
  })
})
