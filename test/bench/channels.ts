/**
 * Buying by payment channel from a stock seller: vouchers a second, one buyer and several, and the gateway's own part of each purchase:
 * what is left without the seller's time. Run it with `npx tsx test/bench/channels.ts`; `TEST_DATABASE_URL` for PostgreSQL.
 */
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { newGuest } from '../journeys/people.ts'
import { type ChannelSeller, startChannelSeller } from '../rails/buying/channel-sellers.ts'
import { openBench } from './x402.ts'

const VOUCHERS = 300
const WARM_UP = 50
const BUYERS = 8

const write = (text: string) => process.stdout.write(`${text}\n`)
const quantile = (values: readonly number[], part: number) =>
  values.toSorted((one, other) => one - other)[Math.floor(values.length * part)] ?? 0

type Buy = (name: string) => Promise<void>

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
      body: JSON.stringify({ url: `${seller.origin}/call/${name}`, maxAmount: '0.01' }),
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
  const start = await chain.blockNumber()
  const [all, own]: [number[], number[]] = [[], []]
  let from = performance.now()
  for (let n = 0; n < VOUCHERS; n += 1) {
    const begun = performance.now()
    await first(`one-${n}`)
    const ms = performance.now() - begun
    all.push(ms)
    own.push(ms - seller.handledMs(`one-${n}`))
  }
  const seconds = (performance.now() - from) / 1_000
  write(
    `one buyer: ${(VOUCHERS / seconds).toFixed(0)} vouchers a second, p50 ${quantile(all, 0.5).toFixed(1)} p99 ${quantile(all, 0.99).toFixed(1)} ms; ours p50 ${quantile(own, 0.5).toFixed(1)} p99 ${quantile(own, 0.99).toFixed(1)} ms`,
  )
  from = performance.now()
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
