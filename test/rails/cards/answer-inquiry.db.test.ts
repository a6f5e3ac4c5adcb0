import { expect, it } from 'vitest'
import type { CardAuthorizationDependencies } from '../../../src/rails/cards/authorize.ts'
import type { Card } from '../../../src/rails/cards/store.ts'
import { capAccount } from '../../books/spending/scene.ts'
import { onBothEngines } from '../../engines.ts'
import { buildPurchase, cardDependencies, dataKey, decide, issueCard, newKey, newOwner } from './scene.ts'

onBothEngines('a balance inquiry', (database) => {
  it('reports at most the spendable balance, and zero if nothing can be spent', async () => {
    const owner = await newOwner(database(), { USDC: '100', USD: '50' })
    const inquire = async (card: Card, changes: Partial<CardAuthorizationDependencies> = {}) =>
      decide(cardDependencies(database(), changes), buildPurchase(card, '0', { type: 'inquiry' }))
    const free = await issueCard(database(), owner)
    const kycLimits = { none: 33_339_999n, basic: null, full: null }
    expect(await inquire(free)).toMatchObject({ balance: 15_000n })
    expect(
      await inquire(free, {
        settings: {
          mode: 'production',
          kycLimits,
          dataKey,
          cardSpreadBps: 0,
          cardFloatMicros: 50_000_000n,
          cardPullMs: 2_500,
        },
      }),
    ).toMatchObject({
      balance: 3333n,
    })
    expect(await inquire(await issueCard(database(), owner, { purchaseMax: 700n }))).toMatchObject({
      balance: 700n,
    })
    const daily = await issueCard(database(), owner, { dailyMax: 2000n })
    await decide(cardDependencies(database()), buildPurchase(daily, '5'))
    expect(await inquire(daily)).toMatchObject({ balance: 1500n })
    await decide(cardDependencies(database()), buildPurchase(daily, '15'))
    expect(await inquire(daily)).toMatchObject({ reason: 'approved', balance: 0n })

    const keyId = await newKey(database(), owner, { perTransaction: { max: '50' }, assets: ['USDC', 'USD'] })
    const bound = await issueCard(database(), owner, { keyId })
    expect(await inquire(bound)).toMatchObject({ balance: 5000n })
    await decide(cardDependencies(database()), buildPurchase(bound, '50'))
    await decide(cardDependencies(database()), buildPurchase(bound, '40'))
    expect(await inquire(bound)).toMatchObject({ balance: 1000n })
    await capAccount(database(), owner, 96_000_000n)
    expect(await inquire(bound)).toMatchObject({ balance: 600n })
    const forbidden = await newKey(database(), owner, { categories: { allow: [] } })
    expect(await inquire(await issueCard(database(), owner, { keyId: forbidden }))).toMatchObject({
      reason: 'policy_denied',
    })
    const off = { read: async () => ({ rail: 'card-payments', enabled: false, reason: null }) as const }
    expect(await inquire(free, { railControls: off })).toMatchObject({ reason: 'rail_disabled' })
    await database()
      .kysely.updateTable('access_key')
      .set({ status: 'paused' })
      .where('id', '=', keyId)
      .execute()
    const paused = await inquire(bound)
    expect(paused).toMatchObject({ reason: 'key_not_active' })
    expect(paused).not.toHaveProperty('balance')
  })
  it('reports what the week and the month leave', async () => {
    const owner = await newOwner(database(), { USDC: '1000' })
    const inquire = async (policy: Record<string, unknown>, spent: string) => {
      const card = await issueCard(database(), owner, { keyId: await newKey(database(), owner, policy) })
      await decide(cardDependencies(database()), buildPurchase(card, spent))
      return decide(cardDependencies(database()), buildPurchase(card, '0', { type: 'inquiry' }))
    }
    const both = { weeklyBudget: { max: '53' }, monthlyBudget: { max: '52' } }
    expect(await inquire(both, '50')).toMatchObject({ balance: 200n })
    expect(await inquire({ weeklyBudget: { max: '90', maxCount: 1 } }, '1')).toMatchObject({ balance: 0n })
    await capAccount(database(), owner, null, { week: 60_000_000n, month: 58_000_000n })
    expect(await inquire({}, '1')).toMatchObject({ balance: 600n })
  })
})
