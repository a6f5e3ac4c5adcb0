/** One shop on two real chains: a purchase is one, whichever chain it was begun on. */
import { x402Client } from '@x402/core/client'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment } from '@x402/fetch'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startAnvilChain } from '../../../../src/chain/node/anvil.ts'
import { silentLog } from '../../../../src/core/base/log.ts'
import { createChains } from '../../../../src/providers/chain/chains.ts'
import type { Chain } from '../../../../src/providers/chain/port.ts'
import { openShop, type Shop } from './scene.ts'
import { hasAnvil } from './world.ts'

const PRICE = 10_000n

describe.skipIf(!hasAnvil())('a shop on two chains', () => {
  const chains: Chain[] = []
  let shop: Shop
  beforeAll(async () => {
    const start = (name: 'base-sepolia' | 'arbitrum-sepolia') =>
      startAnvilChain({ name, log: silentLog, binary: process.env.ANVIL_BIN })
    const [one, other] = await Promise.all([start('base-sepolia'), start('arbitrum-sepolia')])
    chains.push(one, other)
    shop = await openShop(createChains([one, other]).chains)
  }, 60_000)
  afterAll(async () => {
    await shop?.close()
    for (const chain of chains) await chain.close()
  })

  /** A buyer with the price on both chains. @param extra extensions or headers that name the purchase. */
  const newBuyer = async ({ identifier, key }: { identifier?: string; key?: string } = {}) => {
    const account = privateKeyToAccount(generatePrivateKey())
    for (const chain of chains) await chain.mint([{ token: 'USDC', to: account.address, units: PRICE }])
    const buyOn = async ({ id }: Pick<Chain, 'id'>) => {
      const client = new x402Client()
        .register(`eip155:${id}`, new ExactEvmScheme(account))
        .onBeforePaymentCreation(async ({ paymentRequired }) => {
          if (identifier === undefined) return
          const extensions = { 'payment-identifier': { info: { required: false, id: identifier } } }
          Object.assign(paymentRequired, { extensions })
        })
      const headers: Record<string, string> = key === undefined ? {} : { 'idempotency-key': key }
      const response = await wrapFetchWithPayment(fetch, client)(shop.url, { headers })
      return { status: response.status, body: await response.json() }
    }
    const spent = () =>
      Promise.all(chains.map(async (chain) => PRICE - (await chain.readBalance('USDC', account.address))))
    return { buyOn, spent }
  }
  const both = () => {
    const [one, other] = chains
    if (one === undefined || other === undefined) throw new Error('both chains were started')
    return [one, other] as const
  }

  it.each([
    ['payment identifier', { identifier: 'a-purchase-on-two-chains' }],
    ['idempotency key', { key: 'a-purchase-on-two-chains' }],
  ])('charges once under one %s, although it is paid on the other chain too', async (_name, named) => {
    const [one, other] = both()
    const { buyOn, spent } = await newBuyer(named)
    const first = await buyOn(one)
    expect(first.status).toBe(200)
    expect(await buyOn(other)).toEqual(first)
    expect(await spent()).toEqual([PRICE, 0n])
  })

  it('sells twice where nothing names the purchase', async () => {
    const { buyOn, spent } = await newBuyer()
    for (const chain of both()) expect((await buyOn(chain)).status).toBe(200)
    expect(await spent()).toEqual([PRICE, PRICE])
  })
})
