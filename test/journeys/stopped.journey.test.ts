/** Effects of a lock, a pause and a revocation on open orders and pending approvals, over HTTP. */
import { expect, it } from 'vitest'
import { z } from 'zod'
import { overSharedAndPostgres } from './both-engines.ts'
import { newGuest, type Person, personFrom, requestJson } from './people.ts'

const policy = {
  perTransaction: { max: '100' },
  dailyBudget: { max: '100' },
  categories: { allow: ['invest', 'transfer'] },
  approval: { above: '20', ttlSec: 3600 },
}
/** A limit that the market never reaches. */
const waiting = { symbol: 'VTI', side: 'buy', notional: '10', type: 'limit', limitPrice: '1' }
const orders = z.array(z.looseObject({ id: z.string(), status: z.string() }))

overSharedAndPostgres('a key', ({ gateway }) => {
  /** Sends requests with a key. */
  const senderOf = (key: string) => {
    const headers = { authorization: `Bearer ${key}` }
    return (method: string, path: string, given?: unknown) =>
      requestJson(
        gateway().origin,
        method,
        path,
        given === undefined ? { headers } : { body: given, headers },
      )
  }
  const newKey = async (owner: Person) => {
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'Trader',
      scopes: ['investing:trade', 'investing:read', 'wallets:transfer'],
      policy,
    })
    const send = senderOf(z.string().parse(body.key))
    return { id: String(body.id), send }
  }
  const newScene = async () => {
    const owner = await newGuest(gateway().origin)
    const key = await newKey(owner)
    const { body: own } = await owner.send('POST', '/api/investing/order', waiting)
    const { body: order } = await key.send('POST', '/api/investing/order', waiting)
    const { body: keyRequest } = await key.send('POST', '/api/wallets/transfer', {
      destination: `0x${'1'.repeat(40)}`,
      amount: '30',
      signature: 'x',
    })
    expect([own.status, order.status, keyRequest.code]).toEqual(['accepted', 'accepted', 'approval_required'])
    return {
      owner,
      key,
      own: String(own.id),
      order: String(order.id),
      approval: String(keyRequest.approvalId),
    }
  }
  const standing = async (owner: Person, { own, order, approval }: Awaited<ReturnType<typeof newScene>>) => {
    const all = orders.parse((await owner.send('GET', '/api/investing/orders')).body.orders)
    const of = (id: string) => all.find((one) => one.id === id)?.status
    const { status } = (await owner.send('GET', `/api/approvals/${approval}`)).body
    return { own: of(own), order: of(order), approval: status }
  }

  it.each(['pause', 'revoke'])('closes everything that a %s stops', async (how) => {
    const scene = await newScene()
    const path = `/api/developer/keys/${scene.key.id}`
    if (how === 'pause') await scene.owner.send('PATCH', path, { status: 'paused' })
    else await scene.owner.send('DELETE', path)
    expect(await standing(scene.owner, scene)).toEqual({
      own: 'accepted',
      order: 'canceled',
      approval: 'rejected',
    })
  })

  it('reads and cancels its own orders alone', async () => {
    const { owner, key, own, order } = await newScene()
    const seen = orders.parse((await key.send('GET', '/api/investing/orders')).body.orders)
    expect(seen.map(({ id }) => id)).toEqual([order])
    const other = await newKey(owner)
    for (const foreign of [own, order]) {
      const refused = await other.send('DELETE', `/api/investing/orders/${foreign}`)
      expect([refused.status, refused.body.code]).toEqual([404, 'not_found'])
    }
    expect((await key.send('DELETE', `/api/investing/orders/${order}`)).body.status).toBe('canceled')
    expect((await owner.send('DELETE', `/api/investing/orders/${own}`)).body.status).toBe('canceled')
  })

  it('has order names of its own: the same name of another caller is another order', async () => {
    const { owner, key } = await newScene()
    const named = { ...waiting, clientOrderId: 'rent' }
    const { body: first } = await key.send('POST', '/api/investing/order', named)
    const other = await newKey(owner)
    const { body: second } = await other.send('POST', '/api/investing/order', named)
    const { body: third } = await owner.send('POST', '/api/investing/order', named)
    expect(new Set([first.id, second.id, third.id]).size).toBe(3)
    const changed = await other.send('POST', '/api/investing/order', { ...named, notional: '11' })
    expect([changed.status, String(changed.body.detail).includes(String(first.id))]).toEqual([409, false])
    for (const [caller, id] of [
      [key, first.id],
      [other, second.id],
      [owner, third.id],
    ] as const)
      expect((await caller.send('POST', '/api/investing/order', named)).body.id).toBe(id)
    const seen = orders.parse((await other.send('GET', '/api/investing/orders')).body.orders)
    expect(seen.map(({ id }) => id)).toEqual([second.id])
  })

  it('changes nothing while it is paused, and still reads', async () => {
    const owner = await newGuest(gateway().origin)
    const scopes = ['cards:write', 'cards:read', 'banking:write', 'compliance:write', 'investing:trade']
    const keyRequest = { name: 'Paused', scopes, policy }
    const { body } = await owner.send('POST', '/api/developer/keys', keyRequest)
    const send = senderOf(z.string().parse(body.key))
    await owner.send('PATCH', `/api/developer/keys/${body.id}`, { status: 'paused' })
    const beneficiary = { name: 'Grace Hopper', country: 'US' }
    for (const [path, given] of [
      ['/api/cards', { limits: { daily: '5' } }],
      ['/api/banking', { currency: 'GBP' }],
      [
        '/api/compliance/travel-rule',
        { amount: '5000', token: 'USDC', destination: `0x${'1'.repeat(40)}`, beneficiary },
      ],
    ] as const) {
      const refused = await send('POST', path, given)
      expect([path, refused.status, refused.body.code]).toEqual([path, 403, 'insufficient_scope'])
    }
    const spent = await send('POST', '/api/investing/order', waiting)
    expect([spent.status, spent.body.code]).toEqual([403, 'policy_denied'])
    expect((await send('GET', '/api/cards')).status).toBe(200)
    await owner.send('PATCH', `/api/developer/keys/${body.id}`, { status: 'active' })
    expect((await send('POST', '/api/cards', { limits: { daily: '5' } })).status).toBe(200)
  })

  it('a key and its owner have nothing open after a lock', async () => {
    const scene = await newScene()
    await scene.owner.send('POST', '/api/security/lock', {})
    const start = { channel: 'guest', destination: scene.owner.accountId }
    const { body } = await requestJson(gateway().origin, 'POST', '/api/auth/recovery/start', { body: start })
    const shown = { challengeId: body.challengeId, code: body.code }
    const back = await requestJson(gateway().origin, 'POST', '/api/auth/recovery/complete', { body: shown })
    expect(await standing(personFrom(gateway().origin, back.body), scene)).toEqual({
      own: 'canceled',
      order: 'canceled',
      approval: 'rejected',
    })
  })
})
