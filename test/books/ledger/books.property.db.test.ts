import fc from 'fast-check'
import { expect, it } from 'vitest'
import { available, external, type LedgerAccount } from '../../../src/books/ledger/accounts.ts'
import { post } from '../../../src/books/ledger/post.ts'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { releaseSpend } from '../../../src/books/spending/release.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import { settleSpend } from '../../../src/books/spending/settle.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import { onBothEngines } from '../../engines.ts'
import { buildSpend, noon, openAccount, place } from '../spending/scene.ts'

const owner = fc.nat({ max: 2 })
const units = fc.bigInt({ min: 1n, max: 40n })
const asset = fc.constantFrom('USDC' as const, 'EURC' as const)
/** An owner's available money, or the outside. */
const party = fc.option(owner, { nil: null })

const step = fc.oneof(
  fc.record({
    do: fc.constant('post' as const),
    postings: fc.array(fc.record({ from: party, to: party, asset, units }), { minLength: 1, maxLength: 4 }),
  }),
  fc.record({ do: fc.constant('reserve' as const), owner, asset, units }),
  fc.record({ do: fc.constant('settle' as const), spend: fc.nat({ max: 9 }), to: party }),
  fc.record({ do: fc.constant('release' as const), spend: fc.nat({ max: 9 }) }),
)

onBothEngines('the books', (database) => {
  let runs = 0

  it('sum to zero, equal their postings and are never negative, after any course of events', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
        runs += 1
        const owners = await Promise.all([0, 1, 2].map(() => openAccount(database(), 50n)))
        const account = (index: number | null): LedgerAccount =>
          index === null ? external(place) : available(owners[index] ?? '', place)
        const spends: string[] = []
        for (const [ordinal, taken] of steps.entries()) {
          if (taken.do === 'post') {
            const postings = taken.postings
              .filter(({ from, to }) => from !== to)
              .map(({ from, to, asset, units }) => ({
                source: account(from),
                destination: account(to),
                money: { asset, units },
              }))
            await post(database(), {
              id: `${runs}:${ordinal}`,
              kind: 'test',
              reference: 'test',
              at: noon,
              postings,
            }).catch((error: unknown) => expect(error).toBeInstanceOf(Failure))
          } else if (taken.do === 'reserve') {
            const money = { asset: taken.asset, units: taken.units }
            const request = buildSpend({ accountId: owners[taken.owner] ?? '', keyId: null }, taken.units, {
              money,
            })
            await reserveSpend(database(), request)
            spends.push(request.decisionId)
          } else {
            const decisionId = spends[taken.spend] ?? 'dec_none'
            if (taken.do === 'settle')
              await settleSpend(database(), {
                decisionId,
                destination: account(taken.to),
                at: noon,
              })
            else await releaseSpend(database(), { decisionId, at: noon })
          }
        }
        const { balanced, drifts, totals } = await trialBalance(database())
        expect({ balanced, drifts }).toEqual({ balanced: true, drifts: [] })
        expect(totals.every(({ owners: sum }) => sum >= 0n)).toBe(true)
        const below = await database()
          .kysely.selectFrom('balance')
          .selectAll()
          .where('units', '<', 0n)
          .execute()
        expect(below).toEqual([])
      }),
      { numRuns: 40 },
    )
  })
})
