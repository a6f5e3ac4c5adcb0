import { expect, it } from 'vitest'
import { external } from '../../../src/books/ledger/accounts.ts'
import { balances } from '../../../src/books/ledger/balances.ts'
import { releaseSpend } from '../../../src/books/spending/release.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import { settleSpend } from '../../../src/books/spending/settle.ts'
import { onBothEngines } from '../../engines.ts'
import { buildSpend, noon, openAccount, openKey, place, readUsage } from './scene.ts'
import { settlePart } from './take-part.ts'

onBothEngines('a spend that settles in parts', (database) => {
  const reserveUnits = async (units: bigint) => {
    const accountId = await openAccount(database(), 1_000n)
    const keyId = await openKey(database(), accountId)
    const request = buildSpend({ accountId, keyId }, units)
    expect(await reserveSpend(database(), request)).toMatchObject({ verdict: 'allow' })
    const { decisionId } = request
    return {
      decisionId,
      take: (part: string, of: bigint) =>
        settlePart(database(), {
          decisionId,
          id: `${decisionId}:${part}`,
          units: of,
          destination: external(place),
          at: noon,
        }),
      release: () => releaseSpend(database(), { decisionId, at: noon }),
      settle: () => settleSpend(database(), { decisionId, destination: external(place), at: noon }),
      balance: async () =>
        (await balances(database(), accountId)).map(({ available, held }) => [available, held])[0],
      used: () => readUsage(database(), keyId),
    }
  }

  it('settles each part once, and never more than the hold', async () => {
    const spend = await reserveUnits(100n)
    expect(await spend.take('a', 30n)).toBe('taken')
    expect(await spend.take('a', 30n)).toBe('already_taken')
    expect(await spend.take('b', 71n)).toBe('too_much')
    expect(await spend.balance()).toEqual([900n, 70n])
    expect(await spend.take('b', 70n)).toBe('taken')
    expect(await spend.take('c', 1n)).toBe('already_settled')
    expect(await spend.release()).toBe('already_settled')
    expect(await spend.balance()).toEqual([900n, 0n])
  })

  it('counts the settled part once the rest is released', async () => {
    const spend = await reserveUnits(100n)
    await spend.take('a', 30n)
    expect(await spend.release()).toBe('released')
    expect(await spend.balance()).toEqual([970n, 0n])
    expect(await spend.used()).toEqual({ usedMicros: 30n, count: 1 })
    expect(await spend.release()).toBe('already_settled')
  })

  it('settles the rest', async () => {
    const spend = await reserveUnits(100n)
    await spend.take('a', 30n)
    expect(await spend.settle()).toBe('settled')
    expect(await spend.balance()).toEqual([900n, 0n])
    expect(await spend.used()).toEqual({ usedMicros: 100n, count: 1 })
  })

  it('settles nothing once it was released', async () => {
    const spend = await reserveUnits(100n)
    expect(await spend.release()).toBe('released')
    expect(await spend.take('a', 1n)).toBe('already_released')
    expect(await spend.used()).toEqual({ usedMicros: 0n, count: 0 })
  })
})
