/**
 * Buying: a purchase through the gateway against the stock x402 client, which knows neither policy nor ledger, from the
 * same stock seller on the same chain. Both pay in turns, so that both are measured on the same machine load.
 */

import { newGuest } from '../journeys/people.ts'
import { newCustomer } from '../rails/selling/x402/scene.ts'
import { median, openBench, readOrigin } from './x402.ts'

const PURCHASES = 120
const WARM_UP = 20

/** Milliseconds of a purchase. */
export interface PurchaseTimes {
  readonly median: number
  readonly mean: number
}

/** Measures on a new chain. @param databaseUrl a PostgreSQL for the gateway; null for PGlite. */
export async function benchPurchases(
  databaseUrl: string | null,
): Promise<{ readonly stock: PurchaseTimes; readonly ours: PurchaseTimes }> {
  const { chain, gateway, child, close } = await openBench({ databaseUrl, limit: 'RATE_MUTATIONS' })
  try {
    const url = `${await readOrigin(child)}/v2/fx`

    const customer = await newCustomer(chain, 1_000_000_000n)
    const buy = await newBuyer(gateway.origin)
    const ways = [() => customer.v2(url), (turn: number) => buy(url, `bench-${turn}`)]
    const times: number[][] = ways.map(() => [])
    for (let turn = 0; turn < PURCHASES + WARM_UP; turn += 1) {
      for (const [index, way] of ways.entries()) {
        const start = performance.now()
        const response = await way(turn)
        const text = await response.text()
        if (!response.ok || !text.includes('quote_1'))
          throw new Error(`nothing was delivered: ${response.status} ${text.slice(0, 200)}`)
        if (turn >= WARM_UP) times[index]?.push(performance.now() - start)
      }
    }
    const [stock = [], ours = []] = times
    return { stock: summarizeTimes(stock), ours: summarizeTimes(ours) }
  } finally {
    await close()
  }
}

/** A key that buys under a policy. */
async function newBuyer(origin: string): Promise<(url: string, idempotencyKey: string) => Promise<Response>> {
  const person = await newGuest(origin)
  const { status, body } = await person.send('POST', '/api/developer/keys', {
    name: 'Buyer',
    scopes: ['purchases:pay'],
    policy: {
      perTransaction: { max: '1' },
      dailyBudget: { max: '100' },
      categories: { allow: ['x402'] },
    },
  })
  if (status !== 200) throw new Error(`no key was made: ${JSON.stringify(body)}`)
  return (url, idempotencyKey) =>
    fetch(`${origin}/api/purchases`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${String(body.key)}`,
        'idempotency-key': idempotencyKey,
      },
      body: JSON.stringify({ url, maxAmount: '0.01' }),
    })
}

function summarizeTimes(values: readonly number[]): PurchaseTimes {
  return { median: median(values), mean: values.reduce((sum, value) => sum + value, 0) / values.length }
}
