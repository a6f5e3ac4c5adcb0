/**
 * Buying by payment channel from a stock seller: vouchers a second, one buyer and several, and the gateway's own part of each purchase:
 * what is left without the seller's time; in turns with the stock client, which knows neither policy nor books. Run it with `npx tsx test/bench/channels.ts`; `TEST_DATABASE_URL` for PostgreSQL.
 */
import { toClientEvmSigner } from '@x402/evm'
import { BatchSettlementEvmScheme as Buys } from '@x402/evm/batch-settlement/client'
import { wrapFetchWithPaymentFromConfig } from '@x402/fetch'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import type { Chain } from '../../src/providers/chain/port.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { newGuest } from '../journeys/people.ts'
import { type ChannelSeller, startChannelSeller } from '../rails/buying/channel-sellers.ts'
import { openBench } from './x402.ts'

const VOUCHERS = 150
const WARM_UP = 20
const BUYERS = 8

const write = (text: string) => process.stdout.write(`${text}\n`)
const quantile = (values: readonly number[], part: number) =>
  values.toSorted((one, other) => one - other)[Math.floor(values.length * part)] ?? 0

type Buy = (name: string) => Promise<void>

/** The stock client, with an own channel to the seller. */
async function newStockBuyer(chain: Chain, seller: ChannelSeller): Promise<Buy> {
  const account = privateKeyToAccount(generatePrivateKey())
  await chain.mint([{ token: 'USDC', to: account.address, units: 100_000_000n }])
  const client = new Buys(toClientEvmSigner(account, chain.signer))
  const pay = wrapFetchWithPaymentFromConfig(fetch, { schemes: [{ network: 'eip155:84532', client }] })
  return async (name) => {
    const response = await pay(`${seller.origin}/call/x`, { headers: { 'x-call': name } })
    if (!response.ok) throw new Error(`the stock client got ${response.status}`)
    await response.text()
  }
}

async function newBuyer(origin: string, seller: ChannelSeller): Promise<Buy> {
  const person = await newGuest(origin)
  const { body } = await person.send('POST', '/api/developer/keys', {
    name: 'Buyer',
    scopes: ['purchases:pay'],
    policy: { perTransaction: { max: '1' }, dailyBudget: { max: '100' }, categories: { allow: ['x402'] } },
  })
  return async (name) => {
    const response = await fetch(`${origin}/api/purchases`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${String(body.key)}`,
        'content-type': 'application/json',
        'idempotency-key': `${String(body.keyId ?? body.id)}-${name}`,
      },
      body: JSON.stringify({
        url: `${seller.origin}/call/x`,
        headers: { 'x-call': name },
        maxAmount: '0.01',
      }),
    })
    const text = await response.text()
    if (!text.includes('"delivered"')) throw new Error(text)
  }
}

const database = testServerUrl === undefined ? null : await createTestDatabase(testServerUrl)
const { chain, gateway, close } = await openBench({
  databaseUrl: database?.url ?? null,
  limit: 'RATE_MUTATIONS',
})
// A deposit of 1.00 is two thousand prices, so that no channel is opened meanwhile.
const seller = await startChannelSeller(chain, { minDeposit: '1000000' })
try {
  const buyers = await Promise.all(Array.from({ length: BUYERS }, () => newBuyer(gateway.origin, seller)))
  const [first] = buyers
  if (first === undefined) throw new Error('no buyer')
  for (const [n, buy] of buyers.entries()) await buy(`open-${n}`)
  for (let n = 0; n < WARM_UP; n += 1) await first(`warm-${n}`)
  const stock = await newStockBuyer(chain, seller)
  for (let n = 0; n < 5; n += 1) await stock(`stock-warm-${n}`)
  const times = { stock: [] as number[], all: [] as number[], own: [] as number[] }
  const time = async (work: Promise<void>) => {
    const begun = performance.now()
    await work
    return performance.now() - begun
  }
  for (let n = 0; n < VOUCHERS; n += 1) {
    times.stock.push(await time(stock(`stock-${n}`)))
    const ms = await time(first(`one-${n}`))
    times.all.push(ms)
    times.own.push(ms - seller.handledMs(`one-${n}`))
  }
  for (const [name, values] of Object.entries(times))
    write(`${name}: p50 ${quantile(values, 0.5).toFixed(1)} p99 ${quantile(values, 0.99).toFixed(1)} ms`)
  write(`ours to stock: ${(quantile(times.all, 0.5) / quantile(times.stock, 0.5)).toFixed(2)} at the median`)
  const start = await chain.blockNumber()
  const from = performance.now()
  await Promise.all(
    buyers.map(async (buy, lane) => {
      for (let n = 0; n < VOUCHERS; n += 1) await buy(`many-${lane}-${n}`)
    }),
  )
  const rate = (BUYERS * VOUCHERS * 1_000) / (performance.now() - from)
  write(`${BUYERS} buyers: ${rate.toFixed(0)} vouchers a second`)
  write(`transactions meanwhile: ${(await chain.blockNumber()) - start}`)
} finally {
  await seller.close()
  await close()
  await database?.drop()
}
process.exit(0)
