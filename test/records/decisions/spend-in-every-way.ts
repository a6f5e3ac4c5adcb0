import { deepEqual } from 'node:assert/strict'
import { z } from 'zod'
import type { Gateway } from '../../journeys/gateway.ts'
import { newGuest, requestJson } from '../../journeys/people.ts'

const PAYEE = '0x71C7656EC7ab88b098defB751B7401B5f6d8976F'

/** Spends of a person and of two keys under budgets: allowed, refused by each limit, in several rails, with too little money. */
export async function spendInEveryWay({ origin }: Pick<Gateway, 'origin'>): Promise<void> {
  const owner = await newGuest(origin)
  const makeKey = async (policy: object) => {
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'Buyer',
      scopes: ['wallets:transfer', 'purchases:pay', 'wallets:read'],
      policy: { categories: { allow: ['transfer', 'x402'] }, ...policy },
    })
    return `Bearer ${String(z.looseObject({ key: z.string() }, { error: JSON.stringify(body) }).parse(body).key)}`
  }
  const [ample, tight] = [
    await makeKey({ perTransaction: { max: '4' }, dailyBudget: { max: '9', maxCount: 6 } }),
    await makeKey({ perTransaction: { max: '3' }, dailyBudget: { max: '5' }, weeklyBudget: { max: '6' } }),
  ]
  const ask = async (authorization: string, path: string, body: object) =>
    (
      await requestJson(origin, 'POST', path, {
        body,
        headers: { authorization, 'idempotency-key': crypto.randomUUID() },
      })
    ).status
  const pay = (authorization: string, amount: string) =>
    ask(authorization, '/api/wallets/transfer', { destination: PAYEE, amount })
  deepEqual([await pay(ample, '1.25'), await pay(ample, '5'), await pay(ample, '2')], [200, 403, 200])
  const url = `${origin}/sandbox/sellers/weather`
  deepEqual(await ask(ample, '/api/purchases', { url, maxAmount: '0.10' }), 200)
  deepEqual([await pay(tight, '3'), await pay(tight, '3'), await pay(tight, '1')], [200, 403, 200])
  for (const amount of ['7', '999999'])
    await owner.send('POST', '/api/wallets/transfer', { destination: PAYEE, amount, signature: 'sandbox' })
  await owner.send('POST', '/api/investing/order', { symbol: 'VTI', side: 'buy', notional: '20' })
}
