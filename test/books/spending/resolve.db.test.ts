import { expect, it } from 'vitest'
import { available, external } from '../../../src/books/ledger/accounts.ts'
import { balances, readSystemBalance } from '../../../src/books/ledger/balances.ts'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { releaseSpend } from '../../../src/books/spending/release.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import { settleSpend } from '../../../src/books/spending/settle.ts'
import { onBothEngines } from '../../engines.ts'
import { buildSpend, noon, openAccount, openKey, place, readUsage } from './scene.ts'

const tomorrow = new Date('2026-11-21T00:30:00.000Z')

onBothEngines('settleSpend and releaseSpend', (database) => {
  const reserve = async (units: bigint) => {
    const accountId = await openAccount(database(), 100n)
    const keyId = await openKey(database(), accountId)
    const request = buildSpend({ accountId, keyId }, units)
    await reserveSpend(database(), request)
    return { accountId, keyId, decisionId: request.decisionId }
  }
  const settle = (decisionId: string) =>
    settleSpend(database(), { decisionId, destination: external(place), at: tomorrow })
  const release = (decisionId: string) => releaseSpend(database(), { decisionId, at: tomorrow })

  it('settles once: the held money leaves the books and stays counted', async () => {
    const { accountId, keyId, decisionId } = await reserve(30n)
    const outside = await readSystemBalance(database(), external(place), 'USDC')
    expect([await settle(decisionId), await settle(decisionId), await release(decisionId)]).toEqual([
      'settled',
      'already_settled',
      'already_settled',
    ])
    expect(await balances(database(), accountId)).toMatchObject([{ available: 70n, held: 0n }])
    expect(await readSystemBalance(database(), external(place), 'USDC')).toBe(outside + 30n)
    expect(await readUsage(database(), keyId)).toEqual({ usedMicros: 30n, count: 1 })
  })

  it('releases once: money and budget are restored, on the day of the count', async () => {
    const { accountId, keyId, decisionId } = await reserve(30n)
    expect([await release(decisionId), await release(decisionId), await settle(decisionId)]).toEqual([
      'released',
      'already_released',
      'already_released',
    ])
    expect(await balances(database(), accountId)).toMatchObject([{ available: 100n, held: 0n }])
    expect(await readUsage(database(), keyId)).toEqual({ usedMicros: 0n, count: 0 })
    expect(await readUsage(database(), keyId, '2026-11-21')).toEqual({ usedMicros: 0n, count: 0 })
  })

  it('settles to another owner, whichever of the two ids sorts first', async () => {
    const receiver = await openAccount(database(), 0n)
    for (const place2 of [place, 'bank']) {
      const { decisionId } = await reserve(10n)
      const destination = available(receiver, place2)
      expect(await settleSpend(database(), { decisionId, destination, at: noon })).toBe('settled')
    }
    const { accountId, decisionId } = await reserve(10n)
    await settleSpend(database(), {
      decisionId,
      destination: available(accountId, place),
      at: noon,
    })
    expect(await balances(database(), accountId)).toMatchObject([{ available: 100n, held: 0n }])
    expect((await balances(database(), receiver)).map(({ available: units }) => units)).toEqual([10n, 10n])
    expect(await trialBalance(database())).toMatchObject({ balanced: true, drifts: [] })
  })

  it('answers not_reserved for a decision without a hold', async () => {
    expect([await settle('dec_none'), await release('dec_none')]).toEqual(['not_reserved', 'not_reserved'])
  })
})
