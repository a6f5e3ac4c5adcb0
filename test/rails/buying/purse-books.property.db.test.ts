/** The books of purses under any order of purchases: money is never made, lost or spent twice between wallet, purse and world. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { external, pursePlace } from '../../../src/books/ledger/accounts.ts'
import { balances } from '../../../src/books/ledger/balances.ts'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { releaseSpend } from '../../../src/books/spending/release.ts'
import { reserveSpend, reserveSpends } from '../../../src/books/spending/reserve.ts'
import { settleSpend } from '../../../src/books/spending/settle.ts'
import type { SpendRequest } from '../../../src/books/spending/spend-request.ts'
import { insertPurchase, openPurse, whereIsMoney } from '../../../src/rails/buying/store.ts'
import { callForRow } from '../../../src/storage/database.ts'
import { noon, openAccount, openKey, place, spendOf } from '../../books/spending/scene.ts'
import { onBothEngines } from '../../engines.ts'
import { signedPurchase } from './signed-purchase.ts'

const FUNDS = 100n

/** A step: a purchase of some units, or the fate of an open one. */
const step = fc.oneof(
  fc.record({
    kind: fc.constant('buy' as const),
    units: fc.bigInt({ min: 1n, max: 30n }),
    isBatch: fc.boolean(),
  }),
  fc.record({
    kind: fc.constantFrom('fill' as const, 'settle' as const, 'release' as const),
    at: fc.nat(20),
  }),
)

interface Open {
  readonly decisionId: string
  readonly units: bigint
  place: 'wallet' | 'purse'
  /** What the wallet holds for it. */
  readonly inWallet: bigint
}

onBothEngines('the books of a purse', (database) => {
  const fill = async (decisionId: string, purseId: string) =>
    (
      await callForRow<{ verdict: string }>(
        database(),
        { name: 'test_purse_fill', text: 'select verdict from purse_fill($1, $2, $3)' },
        [decisionId, purseId, noon],
      )
    ).verdict

  const open = async () => {
    const accountId = await openAccount(database(), FUNDS)
    const keyId = await openKey(database(), accountId)
    const address = `0x${Buffer.from(keyId).toString('hex').slice(-40)}` as const
    await openPurse(
      { database: database(), dataKey: Buffer.alloc(32, 1) },
      { id: keyId, accountId, address, home: address, chunk: 20n, at: noon },
    )
    const request = (units: bigint): SpendRequest =>
      spendOf({ accountId, keyId }, units, { operation: 'purchases.buy', purse: { id: keyId, chunk: 20n } })
    const write = ({ decisionId }: SpendRequest, units: bigint) =>
      insertPurchase(database(), signedPurchase({ accountId, keyId, decisionId, address, units }))
    const readBooked = async () => {
      const rows = await balances(database(), accountId)
      const at = (name: string) => rows.find((row) => row.place === name)
      const [wallet, purse] = [at(place), at(pursePlace(keyId))]
      return {
        wallet: [wallet?.available ?? 0n, wallet?.held ?? 0n],
        purse: [purse?.available ?? 0n, purse?.held ?? 0n],
      }
    }
    return { keyId, request, write, readBooked }
  }

  it('follow the model', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const { keyId, request, write, readBooked } = await open()
        const model = { wallet: [FUNDS, 0n], purse: [0n, 0n] } as {
          wallet: [bigint, bigint]
          purse: [bigint, bigint]
        }
        const pending: Open[] = []
        for (const each of steps) {
          if (each.kind === 'buy') {
            const { units } = each
            const asked = request(units)
            const decided = each.isBatch
              ? (await reserveSpends(database(), [asked]))[0]
              : await reserveSpend(database(), asked)
            const chunk = units > 20n ? units : 20n
            const isInPurse = model.purse[0] >= units
            // While a chunk is on its way, others hold only what they need.
            const isFilling = pending.some((other) => other.place === 'wallet')
            const inWallet = isInPurse ? 0n : model.wallet[0] >= chunk && !isFilling ? chunk : units
            const isAllowed = isInPurse || model.wallet[0] >= inWallet
            expect(decided?.verdict).toBe(isAllowed ? 'allow' : 'insufficient_funds')
            if (!isAllowed) continue
            const paying = isInPurse ? model.purse : model.wallet
            const taken = isInPurse ? units : inWallet
            paying[0] -= taken
            paying[1] += taken
            // A signature is kept only for money that is in the purse.
            expect(await write(asked, units)).toBe(isInPurse ? 'signed' : 'reserved')
            expect(await write(asked, units)).toBe('none')
            const place = isInPurse ? 'purse' : 'wallet'
            const money = { decision_id: asked.decisionId, purse_id: keyId }
            expect(await whereIsMoney(database(), money)).toEqual({ place, units: taken })
            pending.push({
              decisionId: asked.decisionId,
              units,
              place,
              inWallet,
            })
            continue
          }
          const [chosen] = pending.splice(each.at % Math.max(pending.length, 1), 1)
          if (chosen === undefined) continue
          const { decisionId, units, inWallet } = chosen
          if (each.kind === 'fill') {
            expect(await fill(decisionId, keyId)).toBe(
              chosen.place === 'wallet' ? 'settled' : 'already_settled',
            )
            if (chosen.place === 'wallet') {
              model.wallet[1] -= inWallet
              model.purse[1] += units
              model.purse[0] += inWallet - units
            }
            expect(await fill(decisionId, keyId)).toBe('already_settled')
            pending.push({ ...chosen, place: 'purse' })
          } else {
            const side = chosen.place === 'purse' ? model.purse : model.wallet
            const moved = chosen.place === 'purse' ? units : inWallet
            side[1] -= moved
            if (each.kind === 'release') {
              side[0] += moved
              expect(await releaseSpend(database(), { decisionId, at: noon })).toBe('released')
              // Money that comes too late does not reach the purse.
              expect(await fill(decisionId, keyId)).toMatch(/^already_/)
            } else
              expect(
                await settleSpend(database(), { decisionId, destination: external(place), at: noon }),
              ).toBe('settled')
          }
        }
        expect(await readBooked()).toEqual(model)
      }),
      { numRuns: 25 },
    )
    expect(await trialBalance(database())).toMatchObject({ balanced: true, drifts: [] })
  }, 120_000)
})
