import { expect, it } from 'vitest'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { usageOf } from '../../books/spending/scene.ts'
import { onBothEngines } from '../../engines.ts'
import {
  applyCardEvents,
  buildPurchase,
  cardDependencies,
  decide,
  issueCard,
  listOwned,
  newKey,
  newOwner,
  settleAll,
} from './scene.ts'

onBothEngines('a purchase that is returned', (database) => {
  it('is refunded in cash', async () => {
    const owner = await newOwner(database(), { USDC: '5' })
    const request = buildPurchase(await issueCard(database(), owner), '5')
    await decide(cardDependencies(database()), request)
    await applyCardEvents(cardDependencies(database()), request, 'settled', [
      ['clearing', '5'],
      ['refund', '2'],
    ])
    await applyCardEvents(cardDependencies(database()), request, 'settled', [
      ['clearing', '5'],
      ['refund', '2'],
      ['refund', '3'],
    ])
    await settleAll(database(), owner)
    expect(await listOwned(database(), owner)).toEqual(['USD 5 + 0'])
  })

  it('counts once when its return is reversed, and debits the refunded cash', async () => {
    const owner = await newOwner(database(), { USDC: '200' })
    const keyId = await newKey(database(), owner)
    const card = await issueCard(database(), owner, { keyId, dailyMax: 10000n, priority: ['USDC'] })
    const request = buildPurchase(card, '40')
    await decide(cardDependencies(database()), request)
    const partly = [
      ['clearing', '30'],
      ['refund', '30'],
      ['return_reversal', '30'],
    ] as const
    for (let times = 0; times < 2; times += 1)
      await applyCardEvents(cardDependencies(database()), request, 'pending', partly)
    expect(await listOwned(database(), owner)).toEqual(['USDC 160 + 40'])
    await applyCardEvents(cardDependencies(database()), request, 'settled', [...partly, ['clearing', '10']])
    expect(await listOwned(database(), owner)).toEqual(['USDC 160 + 40'])
    const forced = buildPurchase(card, '0')
    const events = [
      ['clearing', '9'],
      ['refund', '9'],
      ['return_reversal', '10'],
    ] as const
    await applyCardEvents(cardDependencies(database()), forced, 'settled', events, true)
    expect(await usageOf(database(), keyId)).toEqual({ usedMicros: 50_000_000n, count: 2 })
    const rows = await database()
      .kysely.selectFrom('card_authorization')
      .select(['cleared', 'refunded', 'shortfall'])
      .where('account_id', '=', owner)
      .orderBy('cleared', 'desc')
      .execute()
    expect(rows).toEqual([
      { cleared: 4000n, refunded: 0n, shortfall: 0n },
      { cleared: 1000n, refunded: 0n, shortfall: 0n },
    ])
    await settleAll(database(), owner)
    expect(await listOwned(database(), owner)).toEqual(['USDC 150 + 0'])
    expect(await decide(cardDependencies(database()), buildPurchase(card, '50.01'))).toMatchObject({
      reason: 'daily_limit',
    })
    expect(await decide(cardDependencies(database()), buildPurchase(card, '50'))).toMatchObject({
      reason: 'approved',
    })
    expect((await trialBalance(database())).balanced).toBe(true)
  })
})
