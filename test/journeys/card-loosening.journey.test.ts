/** Authorization to loosen card controls, and the initial controls of agents' cards, over HTTP. */
import { expect, it } from 'vitest'
import { z } from 'zod'
import { overSharedAndPostgres } from './both-engines.ts'
import { enrollMfa, newMailbox, type Person, requestJson, signInByEmail } from './people.ts'

const policy = {
  perTransaction: { max: '1000' },
  dailyBudget: { max: '1000' },
  categories: { allow: ['card'] },
}
const limited = {
  limits: { daily: '50', perPurchase: '20' },
  channels: { atm: false },
  mcc: { deny: ['7995'] },
}

overSharedAndPostgres('a card', ({ gateway }) => {
  const newOwner = async (): Promise<{ fresh: Person; stale: Person }> => {
    const address = newMailbox('holder')
    const fresh = await signInByEmail(gateway().origin, address)
    await enrollMfa(fresh)
    return { fresh, stale: await signInByEmail(gateway().origin, address) }
  }
  const newKey = async (owner: Person) => {
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'Cards',
      scopes: ['cards:read', 'cards:write'],
      policy,
    })
    const headers = { authorization: `Bearer ${z.string().parse(body.key)}` }
    const send = (method: string, path: string, given: unknown) =>
      requestJson(gateway().origin, method, path, { body: given, headers })
    return { id: String(body.id), ask: send }
  }

  it('is loosened only by its owner with a fresh second factor, and tightened by any session', async () => {
    const { fresh, stale } = await newOwner()
    const key = await newKey(fresh)
    const { status, body } = await fresh.send('POST', '/api/cards', { ...limited, agentId: key.id })
    expect(status).toBe(200)
    const cardId = body.id
    for (const looser of [
      { limits: { daily: '51' } },
      { limits: { daily: null } },
      { limits: { perPurchase: null } },
      { channels: { atm: true } },
      { mcc: { deny: [] } },
      { agentId: null },
    ]) {
      const refused = await stale.send('PATCH', '/api/cards', { cardId, ...looser })
      expect([looser, refused.status, refused.body.code]).toEqual([looser, 401, 'step_up_required'])
    }
    for (const looser of [{ limits: { daily: '51' } }, { channels: { magstripe: true } }])
      expect((await stale.send('POST', '/api/cards/settings', { cardId, ...looser })).status).toBe(401)
    expect((await stale.send('POST', '/api/cards/settings', { cardId, freeze: true })).status).toBe(200)
    expect((await stale.send('POST', '/api/cards/settings', { cardId, freeze: false })).status).toBe(401)
    const tighter = { cardId, limits: { daily: '10' }, channels: { ecommerce: false } }
    expect((await stale.send('PATCH', '/api/cards', tighter)).status).toBe(200)
    expect((await fresh.send('PATCH', '/api/cards', { cardId, agentId: null })).status).toBe(200)
  })

  it('is issued to its owner only with a fresh second factor, whatever its limits', async () => {
    const { fresh, stale } = await newOwner()
    for (const limits of [{}, { limits: { daily: null } }, { limits: { daily: '5' } }]) {
      const refused = await stale.send('POST', '/api/cards', limits)
      expect([refused.status, refused.body.code]).toEqual([401, 'step_up_required'])
    }
    const loose = { limits: { daily: null } }
    expect((await fresh.send('POST', '/api/cards', loose)).body.limits).toMatchObject({ daily: null })
    expect((await fresh.send('POST', '/api/cards', {})).body).toMatchObject({
      limits: { daily: '250', perPurchase: '100' },
      channels: { ecommerce: true, contactless: true, atm: false, magstripe: false },
    })
  })

  it('is not handed to an agent without limits in one step by a session without a second factor', async () => {
    const { fresh, stale } = await newOwner()
    const key = await newKey(fresh)
    const all = { ecommerce: true, contactless: true, atm: true, magstripe: true }
    const { body: own } = await fresh.send('POST', '/api/cards', { channels: all })
    for (const kept of [
      { limits: { daily: null } },
      { limits: { daily: '101' } },
      { channels: { atm: true } },
    ]) {
      const change = { cardId: own.id, agentId: key.id, ...kept }
      const refused = await stale.send('PATCH', '/api/cards', change)
      expect([kept, refused.status, refused.body.code]).toEqual([kept, 401, 'step_up_required'])
    }
    const bound = await stale.send('PATCH', '/api/cards', { cardId: own.id, agentId: key.id })
    expect([bound.status, bound.body.limits]).toEqual([200, { daily: '100', perPurchase: '100' }])
    const { body } = await fresh.send('POST', '/api/cards', { channels: all })
    const loose = { cardId: body.id, agentId: key.id, limits: { daily: null }, channels: { atm: true } }
    expect((await fresh.send('PATCH', '/api/cards', loose)).body.limits).toMatchObject({ daily: null })
  })

  it('a card of an agent starts with a limit, without cash and stripe, regardless of its creator', async () => {
    const { fresh } = await newOwner()
    const key = await newKey(fresh)
    const { body: own } = await fresh.send('POST', '/api/cards', {})
    const cards = [
      (await key.ask('POST', '/api/cards', {})).body,
      (await fresh.send('POST', '/api/cards', { agentId: key.id })).body,
      (await fresh.send('PATCH', '/api/cards', { cardId: own.id, agentId: key.id })).body,
    ]
    for (const card of cards)
      expect(card).toMatchObject({
        agentId: key.id,
        limits: { daily: '100' },
        channels: { ecommerce: true, contactless: true, atm: false, magstripe: false },
      })
    for (const loose of [{ limits: { daily: null } }, { channels: { atm: true } }]) {
      const refused = await key.ask('POST', '/api/cards', loose)
      expect([refused.status, refused.body.code]).toEqual([403, 'insufficient_scope'])
    }
    expect((await key.ask('POST', '/api/cards', { limits: { daily: '7' } })).status).toBe(200)
  })
})
