import { expect, it } from 'vitest'
import { external } from '../../../src/books/ledger/accounts.ts'
import { readSystemBalance } from '../../../src/books/ledger/balances.ts'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { releaseSpend } from '../../../src/books/spending/release.ts'
import { applyTransaction, closeAuthorization } from '../../../src/rails/cards/apply-transaction.ts'
import {
  endSettlements,
  retrySettlements,
  staleAuthorizations,
  unsentSettlements,
} from '../../../src/rails/cards/settlements.ts'
import { readUsage } from '../../books/spending/scene.ts'
import { onBothEngines } from '../../engines.ts'
import {
  applyCardEvents,
  buildPurchase,
  cardDependencies,
  decide,
  fund,
  issueCard,
  listOwned,
  newKey,
  newOwner,
  noon,
  settleAll,
} from './scene.ts'

onBothEngines('a purchase after its authorization', (database) => {
  it('is cleared: cash goes to the network, stablecoins to the treasury, each once', async () => {
    const owner = await newOwner(database(), { USDC: '5', USD: '10' })
    const request = buildPurchase(await issueCard(database(), owner), '8')
    const before = await readSystemBalance(database(), external('cards'), 'USD')
    await decide(cardDependencies(database()), request)
    for (let times = 0; times < 3; times += 1)
      await applyCardEvents(cardDependencies(database()), request, 'settled', [['clearing', '8']])
    expect(await listOwned(database(), owner)).toEqual(['USD 7 + 0', 'USDC 0 + 5'])
    expect(await settleAll(database(), owner)).toEqual(['USDC 5000000'])
    expect(await listOwned(database(), owner)).toEqual(['USD 7 + 0'])
    expect((await readSystemBalance(database(), external('cards'), 'USD')) - before).toBe(300n)
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('is cleared for less: the rest is released, to the budget too', async () => {
    const owner = await newOwner(database(), { USDC: '20' })
    const keyId = await newKey(database(), owner)
    const request = buildPurchase(await issueCard(database(), owner, { keyId }), '10')
    await decide(cardDependencies(database()), request)
    await applyCardEvents(cardDependencies(database()), request, 'pending', [['clearing', '4']])
    expect(await listOwned(database(), owner)).toEqual(['USDC 10 + 10'])
    await applyCardEvents(cardDependencies(database()), request, 'settled', [['clearing', '4']])
    expect(await listOwned(database(), owner)).toEqual(['USDC 16 + 4'])
    await settleAll(database(), owner)
    expect(await listOwned(database(), owner)).toEqual(['USDC 16 + 0'])
    expect(await readUsage(database(), keyId)).toEqual({ usedMicros: 4_000_000n, count: 1 })
  })

  it('is cleared for more: from every balance, and the rest by the gateway', async () => {
    const owner = await newOwner(database(), { USDC: '10', USD: '1.50' })
    const keyId = await newKey(database(), owner)
    const request = buildPurchase(await issueCard(database(), owner, { keyId }), '9')
    await decide(cardDependencies(database()), request)
    await applyCardEvents(cardDependencies(database()), request, 'settled', [['clearing', '13']])
    expect(await settleAll(database(), owner)).toEqual(['USDC 1000000', 'USDC 9000000'])
    expect(await listOwned(database(), owner)).toEqual([])
    const row = await database()
      .kysely.selectFrom('card_authorization')
      .selectAll()
      .where('account_id', '=', owner)
      .executeTakeFirstOrThrow()
    expect(row).toMatchObject({ status: 'settled', cleared: 1300n, shortfall: 150n })
    expect(await readUsage(database(), keyId)).toEqual({ usedMicros: 13_000_000n, count: 1 })
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('is counted and shown even without an approval', async () => {
    const owner = await newOwner(database(), { USDC: '100' })
    const keyId = await newKey(database(), owner)
    const card = await issueCard(database(), owner, { keyId, dailyMax: 9000n })
    const readRow = (token: string) =>
      database()
        .kysely.selectFrom('card_authorization')
        .selectAll()
        .where('processor_token', '=', token)
        .executeTakeFirstOrThrow()
    const declined = buildPurchase(card, '60')
    expect(await decide(cardDependencies(database()), declined)).toMatchObject({ reason: 'budget_exceeded' })
    await applyCardEvents(cardDependencies(database()), declined, 'declined', [['clearing', '3']])
    expect(await readRow(declined.token)).toMatchObject({ status: 'settled', cleared: 300n })
    expect(await readUsage(database(), keyId)).toEqual({ usedMicros: 3_000_000n, count: 1 })
    const forced = buildPurchase(card, '0')
    await applyCardEvents(cardDependencies(database()), forced, 'settled', [['clearing', '45']], true)
    await applyCardEvents(cardDependencies(database()), forced, 'settled', [['clearing', '45']], true)
    expect(await readUsage(database(), keyId)).toEqual({ usedMicros: 48_000_000n, count: 2 })
    const verified = buildPurchase(card, '0')
    expect(await decide(cardDependencies(database()), verified)).toMatchObject({ reason: 'approved' })
    await applyCardEvents(cardDependencies(database()), verified, 'settled', [['clearing', '2']])
    const forgotten = buildPurchase(card, '1')
    await decide(cardDependencies(database()), forgotten)
    await applyCardEvents(cardDependencies(database()), forgotten, 'expired', [])
    await applyCardEvents(cardDependencies(database()), forgotten, 'settled', [['clearing', '1']])
    expect(await readUsage(database(), keyId)).toEqual({ usedMicros: 51_000_000n, count: 4 })
    expect(await decide(cardDependencies(database()), buildPurchase(card, '39.01'))).toMatchObject({
      reason: 'daily_limit',
    })
    expect(await decide(cardDependencies(database()), buildPurchase(card, '39'))).toMatchObject({
      reason: 'approved',
    })
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('is not approved when the network declined it afterwards, and counts when it clears late', async () => {
    const owner = await newOwner(database(), { USDC: '20' })
    const keyId = await newKey(database(), owner)
    const request = buildPurchase(await issueCard(database(), owner, { keyId }), '5')
    await decide(cardDependencies(database()), request)
    await applyCardEvents(cardDependencies(database()), request, 'declined', [])
    expect(await readUsage(database(), keyId)).toEqual({ usedMicros: 0n, count: 0 })
    expect(await decide(cardDependencies(database()), request)).toMatchObject({ reason: 'too_late' })
    expect(await listOwned(database(), owner)).toEqual(['USDC 20 + 0'])
    await applyCardEvents(cardDependencies(database()), request, 'settled', [['clearing', '5']])
    expect(await readUsage(database(), keyId)).toEqual({ usedMicros: 5_000_000n, count: 1 })
  })

  it('is one purchase in either order of authorization and event, or with both concurrently', async () => {
    const owner = await newOwner(database(), { USDC: '100' })
    const card = await issueCard(database(), owner)
    for (let times = 0; times < 20; times += 1) {
      const request = buildPurchase(card, '1')
      await Promise.all([
        decide(cardDependencies(database()), request),
        applyCardEvents(cardDependencies(database()), request, 'settled', [['clearing', '1']], true),
      ])
    }
    await settleAll(database(), owner)
    expect(await listOwned(database(), owner)).toEqual(['USDC 80 + 0'])
  })

  it('accepts only its own card’s events', async () => {
    const owner = await newOwner(database(), { USDC: '20' })
    const card = await issueCard(database(), owner)
    const [one, two] = [buildPurchase(card, '5'), buildPurchase(card, '6')]
    await decide(cardDependencies(database()), one)
    await decide(cardDependencies(database()), two)
    const other = await issueCard(database(), await newOwner(database(), {}))
    const foreign = { ...one, cardToken: other.token }
    expect(await applyCardEvents(cardDependencies(database()), foreign, 'voided', [['clearing', '5']])).toBe(
      'unknown',
    )
    expect(await listOwned(database(), owner)).toEqual(['USDC 9 + 11'])
    const events = [{ token: 'the-same', kind: 'clearing', units: 500n }] as const
    for (const { token, cardToken } of [one, two, two]) {
      const message = { kind: 'transaction', token, cardToken, status: 'settled', merchantName: '' } as const
      await applyTransaction(
        cardDependencies(database()),
        { ...message, wasAuthorized: true, events },
        { isForcePosted: false },
      )
    }
    expect(await listOwned(database(), owner)).toEqual(['USDC 10 + 10'])
    expect(await settleAll(database(), owner)).toEqual(['USDC 5000000', 'USDC 5000000'])
  })

  it('is reversed in part and then in full: the last asset is released first', async () => {
    const owner = await newOwner(database(), { USDC: '5', USD: '10' })
    const keyId = await newKey(database(), owner)
    const request = buildPurchase(await issueCard(database(), owner, { keyId, dailyMax: 800n }), '8')
    await decide(cardDependencies(database()), request)
    await applyCardEvents(cardDependencies(database()), request, 'pending', [['reversal', '4']])
    expect(await listOwned(database(), owner)).toEqual(['USD 10 + 0', 'USDC 1 + 4'])
    await applyCardEvents(cardDependencies(database()), request, 'voided', [
      ['reversal', '4'],
      ['reversal', '4'],
    ])
    await applyCardEvents(cardDependencies(database()), request, 'voided', [
      ['reversal', '4'],
      ['reversal', '4'],
    ])
    expect(await listOwned(database(), owner)).toEqual(['USD 10 + 0', 'USDC 5 + 0'])
    expect(await readUsage(database(), keyId)).toEqual({ usedMicros: 0n, count: 0 })
    const again = buildPurchase({ ...(await issueCard(database(), owner)), token: request.cardToken }, '8')
    expect(await decide(cardDependencies(database()), again)).toMatchObject({ reason: 'approved' })
  })

  it('is kept when it arrives before its authorization, and force posted when none arrives', async () => {
    const owner = await newOwner(database(), { USDC: '9' })
    const card = await issueCard(database(), owner)
    const early = buildPurchase(card, '5')
    expect(await applyCardEvents(cardDependencies(database()), early, 'settled', [['clearing', '5']])).toBe(
      'early',
    )
    await decide(cardDependencies(database()), early)
    expect(await applyCardEvents(cardDependencies(database()), early, 'settled', [['clearing', '5']])).toBe(
      'applied',
    )
    const forced = buildPurchase(card, '3')
    expect(
      await applyCardEvents(cardDependencies(database()), forced, 'settled', [['clearing', '3']], true),
    ).toBe('applied')
    expect(await listOwned(database(), owner)).toEqual(['USDC 1 + 8'])
    expect(
      await applyCardEvents(cardDependencies(database()), { token: 'x', cardToken: 'nobody' }, 'settled', [
        ['clearing', '3'],
      ]),
    ).toBe('unknown')
  })

  it('expires: unclaimed holds are released, and a late clearing still finds its money', async () => {
    const owner = await newOwner(database(), { USDC: '9' })
    const request = buildPurchase(await issueCard(database(), owner), '5')
    await decide(cardDependencies(database()), request)
    const before = new Date(noon.getTime() + 1)
    expect(await staleAuthorizations(database(), { before, limit: 1000 })).toContain(request.token)
    await closeAuthorization(cardDependencies(database()), {
      token: request.token,
      status: 'expired',
      at: noon,
    })
    expect(await staleAuthorizations(database(), { before, limit: 1000 })).not.toContain(request.token)
    expect(await listOwned(database(), owner)).toEqual(['USDC 9 + 0'])
    await applyCardEvents(cardDependencies(database()), request, 'settled', [['clearing', '5']])
    expect(await listOwned(database(), owner)).toEqual(['USDC 4 + 5'])
  })

  it('is retried when the chain refused the transfer to the treasury', async () => {
    const owner = await newOwner(database(), { USDC: '5' })
    const request = buildPurchase(await issueCard(database(), owner), '5')
    await decide(cardDependencies(database()), request)
    await applyCardEvents(cardDependencies(database()), request, 'settled', [['clearing', '5']])
    const [first] = (
      await unsentSettlements(cardDependencies(database()), { chain: 'base-sepolia', at: noon, limit: 100 })
    ).filter(({ accountId }) => accountId === owner)
    await releaseSpend(database(), { decisionId: first?.decisionId ?? '', at: noon })
    // Settled or not, the merchant was paid with this money.
    expect(await listOwned(database(), owner)).toEqual(['USDC 0 + 5'])
    await endSettlements(database(), noon)
    await retrySettlements(cardDependencies(database()), noon)
    expect(await settleAll(database(), owner)).toEqual([])
    for (let times = 0; times < 2; times += 1)
      await retrySettlements(cardDependencies(database()), new Date(noon.getTime() + 2_000))
    expect(await settleAll(database(), owner)).toEqual(['USDC 5000000'])
    expect(await listOwned(database(), owner)).toEqual([])
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('results in the same books for any order and repetition of events', async () => {
    const booksAfter = async (shuffle: (steps: (() => Promise<unknown>)[]) => (() => Promise<unknown>)[]) => {
      const owner = await newOwner(database(), { USDC: '100' })
      const card = await issueCard(database(), owner)
      const steps = Array.from({ length: 12 }, (_, index) => {
        const request = buildPurchase(card, `${index + 1}`)
        const authorize = () => decide(cardDependencies(database()), request)
        const clear = async () => {
          while (
            (await applyCardEvents(cardDependencies(database()), request, 'settled', [['clearing', '1']])) ===
            'early'
          )
            await authorize()
        }
        return index % 3 === 0
          ? [authorize, clear, clear]
          : [
              authorize,
              authorize,
              async () => {
                await authorize()
                await applyCardEvents(cardDependencies(database()), request, 'voided', [
                  ['reversal', `${index + 1}`],
                ])
              },
            ]
      })
      await Promise.all(shuffle(steps.flat()).map((step) => step()))
      await settleAll(database(), owner)
      return listOwned(database(), owner)
    }
    const ordered = await booksAfter((steps) => steps)
    expect(await booksAfter((steps) => steps.toReversed())).toEqual(ordered)
    expect(ordered).toEqual(['USDC 96 + 0'])
    await fund(database(), await newOwner(database(), {}), { USD: '1' })
    expect((await trialBalance(database())).balanced).toBe(true)
  })
})
