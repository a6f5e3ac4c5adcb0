import { expect, it } from 'vitest'
import { external } from '../../../src/books/ledger/accounts.ts'
import { releaseSpend } from '../../../src/books/spending/release.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import { settleSpend } from '../../../src/books/spending/settle.ts'
import { onBothEngines } from '../../engines.ts'
import { buildSpend, noon, openAccount, openKey, place, readUsage, unlimited } from './scene.ts'

const call = (key: string, fingerprint = 'same') => ({ principal: 'key:1', key, fingerprint })
const nextDay = new Date('2026-11-21T12:00:00.001Z')

onBothEngines('a spend that is repeated with its idempotency key', (database) => {
  const open = async (units: bigint, limits = unlimited) => {
    const accountId = await openAccount(database(), units)
    return { accountId, keyId: await openKey(database(), accountId), limits }
  }

  it('gets the first verdict, before and after that is resolved', async () => {
    const scene = await open(100n)
    const request = buildSpend(scene, 5n, { idempotency: call('a') })
    const { decisionId } = request
    const again = () => reserveSpend(database(), buildSpend(scene, 5n, { idempotency: call('a') }))
    await reserveSpend(database(), request)
    expect(await again()).toEqual({ verdict: 'repeated', decisionId })
    await settleSpend(database(), { decisionId, destination: external(place), at: noon })
    expect(await again()).toEqual({ verdict: 'repeated', decisionId })
    expect(await readUsage(database(), scene.keyId)).toEqual({ usedMicros: 5n, count: 1 })
  })

  it('gets the same denial, even if it would be allowed by now', async () => {
    const scene = await open(100n, { ...unlimited, dailyMaxMicros: 10n })
    const first = buildSpend(scene, 10n)
    await reserveSpend(database(), first)
    const denied = await reserveSpend(database(), buildSpend(scene, 5n, { idempotency: call('c') }))
    await releaseSpend(database(), { decisionId: first.decisionId, at: noon })
    expect(await reserveSpend(database(), buildSpend(scene, 5n, { idempotency: call('c') }))).toEqual({
      ...denied,
      replayed: true,
    })
  })

  it('gets the same lack of funds with the balance of that time', async () => {
    const scene = await open(3n)
    const poor = await reserveSpend(database(), buildSpend(scene, 5n, { idempotency: call('d') }))
    expect(poor).toMatchObject({ verdict: 'insufficient_funds', available: { units: 3n } })
    await reserveSpend(database(), buildSpend(scene, 2n))
    expect(await reserveSpend(database(), buildSpend(scene, 5n, { idempotency: call('d') }))).toEqual({
      ...poor,
      replayed: true,
    })
  })

  it('is rejected with another fingerprint, and is another call for another principal', async () => {
    const scene = await open(100n)
    await reserveSpend(database(), buildSpend(scene, 5n, { idempotency: call('e') }))
    expect(
      await reserveSpend(database(), buildSpend(scene, 6n, { idempotency: call('e', 'other') })),
    ).toEqual({
      verdict: 'fingerprint_mismatch',
    })
    const other = { ...call('e'), principal: 'key:2' }
    expect(await reserveSpend(database(), buildSpend(scene, 5n, { idempotency: other }))).toMatchObject({
      verdict: 'allow',
    })
  })

  it('is a new spend after 24 hours, unless the first one is open', async () => {
    const scene = await open(100n)
    const open1 = buildSpend(scene, 5n, { idempotency: call('f') })
    await reserveSpend(database(), open1)
    const later = () =>
      reserveSpend(database(), buildSpend(scene, 5n, { idempotency: call('f'), at: nextDay }))
    expect(await later()).toEqual({ verdict: 'repeated', decisionId: open1.decisionId })
    await releaseSpend(database(), { decisionId: open1.decisionId, at: noon })
    expect(await later()).toMatchObject({ verdict: 'allow' })
  })
})
