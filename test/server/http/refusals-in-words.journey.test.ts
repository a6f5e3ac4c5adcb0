/** A refused request says which member, bound, method or path is wrong, and what was probably meant. */
import { beforeAll, describe, expect, it } from 'vitest'
import { sharedGateway } from '../../journeys/gateway.ts'
import { newGuest, type Person, requestJson } from '../../journeys/people.ts'
import { openTransports } from '../../mcp/ways.ts'

describe('a refusal', () => {
  const origin = sharedGateway()
  let person: Person
  let apiKey: string
  beforeAll(async () => {
    person = await newGuest(origin)
    const { body } = await person.send('POST', '/api/developer/keys', {
      name: 'Reader',
      scopes: ['wallets:read', 'swaps:quote'],
    })
    apiKey = String(body.key)
  }, 60_000)
  const ask = async (method: string, path: string, body?: object) => {
    const { body: problem } = await person.send(method, path, body)
    return problem
  }

  it('names the member that is missing', async () => {
    const problem = await ask('POST', '/api/wallets/transfer', { amount: '1' })
    expect(problem.detail).toBe('destination is required')
    expect(problem.issues).toEqual([{ path: 'destination', message: 'is required' }])
  })

  it('names the choices of a member that is missing', async () => {
    const problem = await ask('POST', '/api/banking', {})
    expect(problem.detail).toBe('currency is required: one of USD, EUR, GBP, INR')
  })

  it('suggests the member that was probably meant', async () => {
    const problem = await ask('POST', '/api/wallets/transfer', {
      destinaton: `0x${'1'.repeat(40)}`,
      amount: '1',
    })
    expect(problem.issues).toEqual([
      { path: 'destination', message: 'is required' },
      { path: 'destinaton', message: 'is not known here; did you mean destination?' },
    ])
  })

  it('suggests a member within a member, and lists the known ones when none is near', async () => {
    const within = await ask('POST', '/api/cards', { limits: { dayly: '5' } })
    expect(within.detail).toBe('limits.dayly is not known here; did you mean daily?')
    const far = await ask('POST', '/api/cards', { limits: { hourly_budget: '5' } })
    expect(far.detail).toBe('limits.hourly_budget is not known here; known are daily, perPurchase')
  })

  it('names the bounds', async () => {
    expect((await ask('GET', '/api/activity?limit=500')).detail).toBe('limit: must be from 1 to 100')
    expect((await ask('GET', '/api/activity?limit=1000')).detail).toBe('limit: must be from 1 to 100')
    expect((await ask('GET', '/api/activity?search=')).detail).toBe('search: must not be empty')
    expect((await ask('GET', '/api/activity?from=yesterday')).detail).toMatch(
      /^from: must be a time in ISO 8601/,
    )
    expect((await ask('GET', '/api/activity?limit=ten')).detail).toBe('limit: must be a whole number')
  })

  it('names the methods of a path', async () => {
    const problem = await ask('PUT', '/api/wallets')
    expect(problem).toMatchObject({ code: 'method_not_allowed', hint: expect.stringContaining('Send GET') })
  })

  it('suggests the path that was probably meant, and never an id', async () => {
    expect((await ask('GET', '/api/walets')).hint).toMatch(/^Did you mean \/api\/wallets\? /)
    expect((await ask('GET', '/api/aprovals/appr_1')).hint).toMatch(
      /^Did you mean \/api\/approvals\/\{id\}\? /,
    )
    expect((await ask('GET', '/api/something/else')).hint).toBe('GET /api/openapi.json lists every route.')
  })

  it('says how JSON is written', async () => {
    const response = await fetch(`${origin}/api/auth/guest`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{name: 1,}',
    })
    expect(await response.json()).toMatchObject({
      code: 'invalid_request',
      hint: expect.stringContaining('double quotes'),
    })
  })

  it('says who may do what a key may not', async () => {
    const headers = { authorization: `Bearer ${apiKey}` }
    const asKey = (path: string) => requestJson(origin, 'GET', path, { headers })
    expect((await asKey('/api/developer/keys')).body).toMatchObject({
      code: 'insufficient_scope',
      hint: expect.stringContaining('owner'),
    })
    expect((await ask('GET', '/api/admin/reviews')).hint).toContain('bursar admin grant')
  })

  it('says the same over both eras of MCP', async () => {
    const ways = await openTransports({ gateway: { origin }, apiKey })
    for (const { body } of await ways.everywhere('swaps_quote', () => ({ fromTokn: 'USDC' }))) {
      expect(body.issues).toContainEqual({
        path: 'fromTokn',
        message: 'is not known here; did you mean fromToken?',
      })
      expect(body.issues).toContainEqual({ path: 'toToken', message: 'is required' })
    }
    const misspelt = { name: 'wallet_get', arguments: {} }
    await expect(ways.old.callTool(misspelt)).rejects.toThrow('Did you mean wallets_get?')
    await expect(ways.modern.callTool(misspelt)).rejects.toThrow('Did you mean wallets_get?')
    await ways.close()
  })
})
