/** Money back from escrow, with the sandbox's own sellers on the simulated chain: given back when asked, refunded, or reclaimed. */
import { beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { overBothEngines } from './both-engines.ts'
import { newGuest, type Person } from './people.ts'

const SLOW = { timeout: 90_000, interval: 300 }
const steps = z.array(z.looseObject({ action: z.string(), outcome: z.string() }))

overBothEngines('recourse on what is in escrow', {}, (world) => {
  let owner: Person
  let bearer = ''

  beforeAll(async () => {
    owner = await newGuest(world.gateway().origin)
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'Buyer',
      scopes: ['purchases:pay'],
      policy: {
        perTransaction: { max: '0.05' },
        dailyBudget: { max: '0.05' },
        categories: { allow: ['x402'] },
      },
    })
    bearer = `Bearer ${String(body.key)}`
  }, 60_000)

  const buy = async (name: string) => {
    const { origin } = world.gateway()
    const response = await fetch(`${origin}/api/purchases`, {
      method: 'POST',
      headers: {
        authorization: bearer,
        'content-type': 'application/json',
        'idempotency-key': crypto.randomUUID(),
      },
      body: JSON.stringify({ url: `${origin}/sandbox/sellers/${name}`, maxAmount: '0.05' }),
    })
    return z.looseObject({ purchaseId: z.string() }).parse(await response.json())
  }
  const read = async (id: string) => (await owner.send('GET', `/api/purchases/${id}`)).body
  const open = async (id: string) => {
    const object = { kind: 'purchase', id }
    return (await owner.send('POST', '/api/recourse', { object, reason: 'not_as_described' })).body
  }
  const untilEnded = async ({ recourseId }: Record<string, unknown>) => {
    const readIt = async () => (await owner.send('GET', `/api/recourse/${String(recourseId)}`)).body
    await expect.poll(async () => (await readIt()).status, SLOW).not.toBe('open')
    const ended = await readIt()
    return {
      ended,
      tried: steps.parse(ended.steps).map(({ action, outcome }) => `${action} ${outcome}`),
    }
  }

  it('is given back by the seller escrow when it is asked before its capture', async () => {
    const { purchaseId, ...bought } = await buy('escrow')
    expect(bought).toMatchObject({ status: 'settlement_pending', response: { status: 200 } })
    const { ended, tried } = await untilEnded(await open(purchaseId))
    expect(tried).toEqual(['void waiting', 'void done'])
    expect(ended).toMatchObject({ status: 'recovered', recovered: '0.01', route: 'void' })
    expect(await read(purchaseId)).toMatchObject({ status: 'delivered', charged: '0' })
  }, 120_000)

  it('is captured by the seller escrow, and refunded when it is asked later', async () => {
    const { purchaseId } = await buy('escrow')
    await expect
      .poll(() => read(purchaseId), SLOW)
      .toMatchObject({ status: 'delivered', charged: '0.01', scheme: 'auth-capture' })
    const { ended } = await untilEnded(await open(purchaseId))
    expect(ended).toMatchObject({ status: 'recovered', recovered: '0.01', route: 'refund_request' })
    expect(await read(purchaseId)).toMatchObject({ charged: '0.01', refunded: '0.01' })
  }, 120_000)

  it('is reclaimed from the seller reclaimable, which does nothing', async () => {
    const { purchaseId, ...bought } = await buy('reclaimable')
    expect(bought).toMatchObject({ status: 'settlement_pending', charged: '0' })
    const opened = await open(purchaseId)
    expect(opened).toMatchObject({ status: 'open', recovered: '0' })
    const { ended, tried } = await untilEnded(opened)
    expect(tried).toEqual(['void failed', 'reclaim waiting', 'reclaim done'])
    expect(ended).toMatchObject({ status: 'recovered', recovered: '0.01', route: 'reclaim' })
    expect(await read(purchaseId)).toMatchObject({ status: 'failed', charged: '0' })
  }, 200_000)
})
