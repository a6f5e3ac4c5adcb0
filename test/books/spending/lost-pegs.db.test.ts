/** A stablecoin that has lost its peg: it counts for nothing, and nothing is paid with it. */
import { expect, it } from 'vitest'
import { sumOpenDebts } from '../../../src/books/debts/debts.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import type { Principal } from '../../../src/core/base/principal.ts'
import { readConfig } from '../../../src/core/config/read-config.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import { type Stablecoin, stablecoins } from '../../../src/core/money/money.ts'
import { createConfiguredPegs } from '../../../src/providers/pegs/configured.ts'
import { latestOrDollars, type Rates, valueInUsd, withPegs } from '../../../src/providers/rates/port.ts'
import { createSnapshotRates } from '../../../src/providers/rates/sandbox.ts'
import prices from '../../../tools/sandbox/prices.ts'
import getWallet from '../../../tools/wallets/get.ts'
import transfer from '../../../tools/wallets/transfer.ts'
import { onBothEngines } from '../../engines.ts'
import { noon, servicesOn } from '../../kernel/scene.ts'
import {
  applyCardEvents,
  buildPurchase,
  cardDependencies,
  decide,
  issueCard,
  listOwned,
  newOwner,
  settleAll,
} from '../../rails/cards/scene.ts'
import { payee, walletScene } from '../../tools/wallets/scene.ts'

const lost = { code: 'rates_unavailable', members: { reason: 'peg_lost' } }
const lostOf = (...tokens: Stablecoin[]): Rates =>
  withPegs(createSnapshotRates(), { findLost: async () => new Set(tokens), setPrice: null })

it('is valued at nothing, and others are at par', async () => {
  const rates = lostOf('USDC')
  await expect(valueInUsd(rates, { asset: 'USDC', units: 1n }, noon)).rejects.toMatchObject(lost)
  expect(await valueInUsd(rates, { asset: 'USDT', units: 5_000_000n }, noon)).toMatchObject({
    usdMicros: 5_000_000n,
  })
  expect(await valueInUsd(lostOf('EURC'), { asset: 'EUR', units: 100n }, noon)).toMatchObject({
    rate: '1.0705',
  })
})

it('counts as lost while its price cannot be read; cash does not', async () => {
  const unreadable = {
    findLost: () => Promise.reject(new Failure('rates_unavailable', 'gone')),
    setPrice: null,
  }
  const rates = withPegs(createSnapshotRates(), unreadable)
  await expect(valueInUsd(rates, { asset: 'USDC', units: 1n }, noon)).rejects.toMatchObject({
    code: 'rates_unavailable',
  })
  expect(await valueInUsd(rates, { asset: 'USD', units: 100n }, noon)).toMatchObject({
    usdMicros: 1_000_000n,
  })
  expect((await rates.latest(noon)).lost).toEqual(new Set(stablecoins))
  const none = withPegs(
    { latest: () => Promise.reject(new Failure('rates_unavailable', 'none')) },
    unreadable,
  )
  expect((await latestOrDollars(none, noon)).lost).toEqual(new Set(stablecoins))
})

onBothEngines('a stablecoin below its peg', (database) => {
  it('is known inside a transaction, which the embedded database has one of', async () => {
    const pegs = createConfiguredPegs(readConfig({}), { database: database(), log: silentLog })
    const rates = withPegs(createSnapshotRates(), pegs)
    await rates.latest(noon)
    const soon = new Date(noon.getTime() + 60_000)
    await database().transaction(async () => {
      expect((await rates.latest(soon)).lost).toEqual(new Set())
    })
  }, 5_000)

  it('is not sent and has no worth until its price is back', async () => {
    const config = readConfig({})
    const pegs = createConfiguredPegs(config, { database: database(), log: silentLog })
    const rates = withPegs(createSnapshotRates(), pegs)
    const services = await servicesOn(database(), { rates })
    const scene = walletScene(services)
    const owner = await scene.newOwner()
    let seconds = 0
    const later = () => {
      seconds += 2
      return { now: new Date(noon.getTime() + seconds * 1_000) }
    }
    const send = (token: string) =>
      scene.call(transfer, owner, { destination: payee, amount: '1', token, signature: 'sandbox' }, later())
    const usdOf = async (token: string) => {
      const { balances } = (await scene.call(getWallet, owner, {}, later())) as {
        balances: { token: string; usd: string | null }[]
      }
      return balances.find((row) => row.token === token)?.usd
    }
    const nobody: Principal = { kind: 'public' }
    expect(await send('PYUSD')).toMatchObject({ status: 'confirmed' })
    await scene.call(prices, nobody, { token: 'PYUSD', price: '0.979999' })
    await expect(send('PYUSD')).rejects.toMatchObject(lost)
    expect([await usdOf('PYUSD'), typeof (await usdOf('USDC'))]).toEqual([null, 'string'])
    expect(await send('USDC')).toMatchObject({ status: 'confirmed' })
    await scene.call(prices, nobody, { token: 'PYUSD', price: '0.98' })
    expect(await send('PYUSD')).toMatchObject({ status: 'confirmed' })
    await expect(scene.call(prices, nobody, { token: 'PYUSD', price: '10' })).rejects.toMatchObject({
      code: 'invalid_request',
    })
  })

  it('pays for no purchase, and clears what was approved before', async () => {
    const owner = await newOwner(database(), { USDC: '20', USD: '3' })
    const card = await issueCard(database(), owner)
    const approved = buildPurchase(card, '5')
    expect(await decide(cardDependencies(database()), approved)).toMatchObject({ reason: 'approved' })
    const parts = cardDependencies(database(), { rates: lostOf('USDC') })
    expect(await decide(parts, buildPurchase(card, '5'))).toMatchObject({ reason: 'insufficient_funds' })
    expect(await decide(parts, buildPurchase(card, '3'))).toMatchObject({ reason: 'approved' })
    await applyCardEvents(parts, approved, 'settled', [['clearing', '5']])
    await settleAll(database(), owner)
    expect(await listOwned(database(), owner)).toEqual(['USD 0 + 3', 'USDC 15 + 0'])
    expect(await sumOpenDebts(database(), owner)).toEqual([])
  })
})
