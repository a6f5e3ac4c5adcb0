/** Purchases that are decided together are decided as one after the other: answers, balances, limits and authentic decisions. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { isAuthentic } from '../../../src/books/spending/authenticate.ts'
import { type ContentRow, contentColumns, contentOf } from '../../../src/books/spending/decision-content.ts'
import type { CardAuthorizationDependencies } from '../../../src/rails/cards/authorize.ts'
import type { Card } from '../../../src/rails/cards/store.ts'
import type { Database } from '../../../src/storage/database.ts'
import { createGathering } from '../../../src/storage/gather.ts'
import { usageOf } from '../../books/spending/scene.ts'
import { onBothEngines } from '../../engines.ts'
import {
  buildPurchase,
  cardDependencies,
  dataKey,
  decide,
  issueCard,
  listOwned,
  newKey,
  newOwner,
} from './scene.ts'

const plans = fc.array(
  fc.record({
    holder: fc.integer({ min: 0, max: 2 }),
    cents: fc.integer({ min: 0, max: 1500 }),
    allowsPartial: fc.boolean(),
    mcc: fc.constantFrom('5411', '7995'),
    /** Repeats the purchase before it, perhaps with another amount. */
    repeats: fc.constantFrom('no' as const, 'no' as const, 'the same' as const, 'another amount' as const),
  }),
  { minLength: 2, maxLength: 24 },
)

/** Dependencies that read nothing else between the card and its decision, so that calls stay in order. */
function dependenciesOn(database: Database): CardAuthorizationDependencies {
  return cardDependencies(database, {
    railControls: {
      ...cardDependencies(database).railControls,
      read: async (rail) => ({ rail, enabled: true, reason: null }),
    },
  })
}

/** A card with tight limits and money in three assets. */
async function newHolder(database: Database) {
  const owner = await newOwner(database, { USDC: '20', EURC: '5', USD: '8' })
  const keyId = await newKey(database, owner, {
    perTransaction: { max: '14' },
    dailyBudget: { max: '30', maxCount: 6 },
    mcc: { deny: ['7995'] },
  })
  return { owner, keyId, card: await issueCard(database, owner, { keyId, dailyMax: 2500n }) }
}

function toDollars(cents: number): string {
  return (cents / 100).toFixed(2)
}

async function read(database: Database, owner: string, keyId: string) {
  const rows = await database.call<ContentRow & { readonly mac: string | null }>(
    {
      name: 'test_decisions',
      text: `select ${contentColumns}, d.mac from decision d where d.account_id = $1 order by d.id`,
    },
    [owner],
  )
  return {
    owned: await listOwned(database, owner),
    usage: await usageOf(database, keyId),
    verdicts: rows.map(({ verdict }) => verdict).sort(),
    areAuthentic: rows.every((row) => isAuthentic(dataKey, contentOf(row), row.mac)),
  }
}

onBothEngines('purchases that are decided at once', (database) => {
  it('get the answers that they get one after the other', async () => {
    const parts = dependenciesOn(database())
    await fc.assert(
      fc.asyncProperty(plans, async (given) => {
        const runs = []
        for (const isTogether of [false, true]) {
          const holders = await Promise.all([0, 1, 2].map(() => newHolder(database())))
          const last = new Map<number, { readonly token: string; readonly webhookId: `evt_${string}` }>()
          const calls = given.map(({ holder, cents, allowsPartial, mcc, repeats }, index) => {
            const { card } = holders[holder] ?? { card: undefined }
            if (card === undefined) throw new Error('there is no such holder')
            const merchant = { id: 'SHOP', name: 'Corner Shop', mcc, country: 'USA' }
            const before = last.get(holder)
            const own = { token: `${card.id}-${index}`, webhookId: `evt_${card.id}-${index}` } as const
            const { token, webhookId } = repeats === 'no' ? own : (before ?? own)
            last.set(holder, { token, webhookId })
            const dollars = toDollars(repeats === 'another amount' ? cents + 1 : cents)
            const request = buildPurchase(card, dollars, { token, allowsPartial, merchant })
            return () => decide(parts, request, webhookId)
          })
          const answers = []
          if (isTogether) answers.push(...(await Promise.all(calls.map((call) => call()))))
          else for (const call of calls) answers.push(await call())
          runs.push({
            answers: answers.map(({ reason, approved }) => `${reason} ${approved}`),
            holders: await Promise.all(holders.map(({ owner, keyId }) => read(database(), owner, keyId))),
          })
        }
        const [single, together] = runs
        expect(together).toEqual(single)
        expect(together?.holders.map(({ areAuthentic }) => areAuthentic)).toEqual([true, true, true])
      }),
      { numRuns: 12 },
    )
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('spend no cent twice, and do not wait in a circle, from several processes', async () => {
    const cards: Card[] = []
    for (let index = 0; index < 6; index += 1) {
      const owner = await newOwner(database(), { USDC: '10', EURC: '1' })
      cards.push(await issueCard(database(), owner, { priority: ['USDC'] }))
    }
    // Each gathers its own batches, as a process does.
    const processes = [0, 1, 2, 3].map(() =>
      dependenciesOn({
        ...database(),
        gather: createGathering(database().engine, (statement, elements) =>
          database().call(statement, [elements]),
        ),
      }),
    )
    const answers = await Promise.all(
      processes.flatMap((parts, index) => {
        const ordered = [...cards.slice(index), ...cards.slice(0, index)]
        if (index % 2 === 1) ordered.reverse()
        return [...ordered, ...ordered].map((card) => decide(parts, buildPurchase(card, '3')))
      }),
    )
    expect(answers.filter(({ reason }) => reason === 'approved')).toHaveLength(18)
    expect(answers.filter(({ reason }) => reason === 'insufficient_funds')).toHaveLength(30)
    for (const { accountId } of cards)
      expect(await listOwned(database(), accountId)).toEqual(['EURC 1 + 0', 'USDC 1 + 9'])
  })
})
