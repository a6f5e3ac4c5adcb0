import { expect, it } from 'vitest'
import { openAlarms } from '../../../src/books/alarms/alarms.ts'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import { readUsage } from '../../books/spending/scene.ts'
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
    expect(await readUsage(database(), keyId)).toEqual({ usedMicros: 50_000_000n, count: 2 })
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

  it('credits a return under a name of its own without an alarm', async () => {
    const owner = await newOwner(database(), { USD: '1' })
    const request = buildPurchase(await issueCard(database(), owner), '0')
    await applyCardEvents(cardDependencies(database()), request, 'settled', [['refund', '3']], true)
    expect(await listOwned(database(), owner)).toEqual(['USD 4 + 0'])
    const [event] = await database()
      .kysely.selectFrom('event')
      .select('data')
      .where('account_id', '=', owner)
      .where('type', '=', 'card.refunded')
      .execute()
    expect(event?.data).toMatchObject({ units: '300', reason: null })
    const alarms = await openAlarms(database())
    expect(alarms.filter(({ reported }) => JSON.stringify(reported).includes('"excess":"300"'))).toEqual([])
  })

  it('credits more than was paid, raises one alarm, and tells the owner by the event', async () => {
    const owner = await newOwner(database(), { USDC: '5' })
    const request = buildPurchase(await issueCard(database(), owner), '5')
    const logged: unknown[] = []
    const log = { ...silentLog, error: (...entry: unknown[]) => void logged.push(entry) }
    const parts = { ...cardDependencies(database()), log }
    await decide(parts, request)
    const openCardAlarms = async () =>
      (await openAlarms(database())).filter(
        ({ objectId, domain }) => domain === 'cards' && objectId === transactionId,
      )
    const { id: transactionId } = await database()
      .kysely.selectFrom('card_authorization')
      .select('id')
      .where('account_id', '=', owner)
      .executeTakeFirstOrThrow()
    const within = [
      ['clearing', '5'],
      ['refund', '5'],
    ] as const
    await applyCardEvents(parts, request, 'settled', within)
    expect(await openCardAlarms()).toEqual([])
    expect(logged).toEqual([])

    for (let times = 0; times < 2; times += 1)
      await applyCardEvents(parts, request, 'settled', [...within, ['refund', '2'], ['refund', '0.5']])
    expect(await openCardAlarms()).toMatchObject([
      {
        reason: 'refund_beyond_payment',
        reported: { cleared: '500', refunded: '750', excess: '250' },
        times: 2,
      },
    ])
    expect(logged).toMatchObject([[{ reason: 'refund_beyond_payment', reported: { excess: '200' } }, /./]])
    await settleAll(database(), owner)
    expect(await listOwned(database(), owner)).toEqual(['USD 7.5 + 0'])
    const events = await database()
      .kysely.selectFrom('event')
      .select('data')
      .where('account_id', '=', owner)
      .where('type', '=', 'card.refunded')
      .execute()
    expect(events).toHaveLength(3)
    expect(events.map(({ data }) => data)).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ units: '500', reason: null }),
        expect.objectContaining({ units: '200', reason: 'refund_beyond_payment' }),
        expect.objectContaining({ units: '50', reason: 'refund_beyond_payment' }),
      ]),
    )
    expect((await trialBalance(database())).balanced).toBe(true)
  })
})
