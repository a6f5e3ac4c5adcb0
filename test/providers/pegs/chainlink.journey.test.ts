/** Chainlink's feeds on a real node: a contract that answers as a feed does, with the words that a test stores. */
import { type Hex, numberToHex, toHex } from 'viem'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findAnvil, spawnAnvil } from '../../../src/chain/node/anvil-process.ts'
import { createNodeClient, localNodeOptions } from '../../../src/chain/rpc/client.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import { createChainlinkPegs } from '../../../src/providers/pegs/chainlink.ts'
import { hasAnvil } from '../../rails/selling/x402/world.ts'

const feed = `0x${'f'.repeat(40)}` as const
/** Returns the words at 0 to 4, whatever is asked; the first is also the number of decimals. */
const code = `0x${[0, 1, 2, 3, 4]
  .map((slot) => `60${hexByte(slot)}5460${hexByte(slot * 32)}52`)
  .join('')}60a06000f3` as const

function hexByte(value: number): string {
  return value.toString(16).padStart(2, '0')
}

describe.skipIf(!hasAnvil())('prices from the chain', () => {
  let anvil: Awaited<ReturnType<typeof spawnAnvil>>
  const now = new Date('2026-11-20T12:00:00.000Z')
  beforeAll(async () => {
    anvil = await spawnAnvil(findAnvil(process.env.ANVIL_BIN), 0, 10_000, 'base-sepolia')
    await request('anvil_setCode', [feed, code])
  })
  afterAll(() => anvil?.stop())

  const request = (method: string, params: readonly unknown[]) =>
    createNodeClient(localNodeOptions('base-sepolia', anvil.url)).transport.request({ method, params })
  const store = async (slot: number, value: bigint) =>
    request('anvil_setStorageAt', [feed, numberToHex(slot, { size: 32 }), toHex(value, { size: 32 })])
  /** @param price with eight decimals. */
  const publish = async (price: bigint, at = now) => {
    await store(0, 8n)
    await store(1, BigInt.asUintN(256, price))
    await store(3, BigInt(Math.floor(at.getTime() / 1_000)))
  }
  const pegs = (address: Hex = feed) =>
    createChainlinkPegs({ url: anvil.url, feeds: new Map([['USDC', address]]), log: silentLog })

  it.each([
    [100_000_000n, []],
    [98_000_000n, []],
    [97_999_900n, ['USDC']],
    [50_000_000n, ['USDC']],
    [101_000_000n, []],
  ])('prices at %i hundred-millionths of a dollar lose the pegs of %j', async (price, lost) => {
    await publish(price)
    expect([...(await pegs().findLost(now))]).toEqual(lost)
  })

  it('are read again when they are no longer fresh, and not before', async () => {
    await publish(100_000_000n)
    const watched = pegs()
    expect((await watched.findLost(now)).size).toBe(0)
    await publish(90_000_000n)
    expect((await watched.findLost(new Date(now.getTime() + 10_000))).size).toBe(0)
    expect((await watched.findLost(new Date(now.getTime() + 20_000))).size).toBe(1)
  })

  it('count as none when they are old, not positive, or not there', async () => {
    const unavailable = { code: 'rates_unavailable' }
    await publish(100_000_000n, new Date(now.getTime() - 27 * 3_600_000))
    await expect(pegs().findLost(now)).rejects.toMatchObject(unavailable)
    for (const price of [0n, -1n]) {
      await publish(price)
      await expect(pegs().findLost(now)).rejects.toMatchObject(unavailable)
    }
    await expect(pegs(`0x${'e'.repeat(40)}`).findLost(now)).rejects.toMatchObject(unavailable)
  })
})
