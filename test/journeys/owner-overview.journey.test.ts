/** Reads and switches of the owner's console, over HTTP. */
import { compactVerify, createLocalJWKSet, type JSONWebKeySet } from 'jose'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { overSharedAndPostgres } from './both-engines.ts'
import { newGuest, newMailbox, type Person, requestJson, signInByEmail } from './people.ts'

const payee = `0x${'1'.repeat(40)}`
const policy = {
  perTransaction: { max: '10' },
  dailyBudget: { max: '100' },
  categories: { allow: ['transfer'] },
}

overSharedAndPostgres('the owner’s overview', ({ gateway }) => {
  const newKey = async (owner: Person) => {
    const made = { name: 'Payer', scopes: ['wallets:transfer', 'wallets:read'], policy }
    const { body } = await owner.send('POST', '/api/developer/keys', made)
    const headers = { authorization: `Bearer ${z.string().parse(body.key)}` }
    const pay = (amount: string) =>
      requestJson(gateway().origin, 'POST', '/api/wallets/transfer', {
        body: { destination: payee, amount, token: 'USDC' },
        headers,
      })
    const read = (path: string) => requestJson(gateway().origin, 'GET', path, { headers })
    return { id: String(body.id), pay, read }
  }

  it('is filled like a guest’s once an hour by an empty request to the faucet', async () => {
    const owner = await signInByEmail(gateway().origin, newMailbox('filled'))
    const fill = () => owner.send('POST', '/sandbox/faucet', {})
    const [first, second] = await Promise.all([fill(), fill()])
    const [filled, refused] = first.status === 200 ? [first, second] : [second, first]
    expect(filled).toMatchObject({
      status: 200,
      body: { token: 'USDC', amount: '1000', funds: { length: 4 } },
    })
    expect(refused).toMatchObject({ status: 429, body: { code: 'rate_limited' } })
    const { body: wallet } = await owner.send('GET', '/api/wallets')
    expect(wallet.balances).toContainEqual(expect.objectContaining({ token: 'USDC', amount: '1000' }))
    expect(wallet.balances).toContainEqual(expect.objectContaining({ token: 'EURC', amount: '500' }))
    expect(await requestJson(gateway().origin, 'POST', '/sandbox/faucet', { body: {} })).toMatchObject({
      status: 401,
      body: { code: 'unauthenticated' },
    })
    expect(await owner.send('POST', '/sandbox/faucet', { address: payee })).toMatchObject({ status: 400 })
  })

  it('has a key’s spends by category and payee, and its decisions', async () => {
    const owner = await newGuest(gateway().origin)
    const key = await newKey(owner)
    for (const amount of ['1', '2', '50']) await key.pay(amount)
    const { body } = await owner.send('GET', `/api/agents/keys/${key.id}/usage`)
    expect(body).toMatchObject({
      categories: [{ category: 'transfer', used: '3', count: 2 }],
      payees: [{ payee, used: '3', count: 2 }],
      decisions: { allowed: 2, denied: 1, approvalRequired: 0 },
    })
  })

  it('has one decision by its id, whose receipt verifies with the published keys', async () => {
    const owner = await newGuest(gateway().origin)
    const [key, other] = [await newKey(owner), await newKey(owner)]
    const { body: denied } = await key.pay('50')
    const path = `/api/agents/decisions?decisionId=${String(denied.decisionId)}`
    const parseDecisions = ({ body }: { body: Record<string, unknown> }) =>
      z.array(z.looseObject({ receipt: z.string() })).parse(body.decisions)
    const [decision, ...rest] = parseDecisions(await owner.send('GET', path))
    expect(decision).toMatchObject({ decisionId: denied.decisionId, agentId: key.id, verdict: 'deny' })
    expect(rest).toEqual([])
    const { body: jwks } = await requestJson(gateway().origin, 'GET', '/.well-known/jwks.json')
    // The published document is a key set.
    const keys = createLocalJWKSet(jwks as unknown as JSONWebKeySet)
    const { payload } = await compactVerify(decision?.receipt ?? '', keys)
    expect(new TextDecoder().decode(payload)).toContain(String(denied.decisionId))
    expect(parseDecisions(await key.read(path))).toHaveLength(1)
    expect(parseDecisions(await other.read(path))).toEqual([])
    expect(parseDecisions(await (await newGuest(gateway().origin)).send('GET', path))).toEqual([])
    const { body: page } = await owner.send('GET', `/api/agents/decisions?agentId=${other.id}`)
    expect(page.decisions).toEqual([])
  })

  it('stops all keys at once, and tells how many there were', async () => {
    const owner = await newGuest(gateway().origin)
    const keys = [await newKey(owner), await newKey(owner)]
    const stranger = await newKey(await newGuest(gateway().origin))
    expect((await owner.send('POST', '/api/agents/pause', {})).body).toEqual({ paused: 2 })
    for (const key of keys) {
      const { status, body } = await key.pay('1')
      expect([status, JSON.stringify(body.violations)]).toEqual([403, expect.stringContaining('"paused"')])
    }
    expect((await stranger.pay('1')).status).toBe(200)
    expect((await owner.send('POST', '/api/agents/pause', {})).body).toEqual({ paused: 0 })
    const { body: journal } = await owner.send('GET', '/api/security/journal')
    expect(JSON.stringify(journal).match(/"key\.paused"/g)).toHaveLength(2)
    await expect
      .poll(
        async () => {
          const { body } = await owner.send('GET', '/api/events?type=key.paused')
          return z.array(z.unknown()).parse(body.events).length
        },
        { timeout: 20_000 },
      )
      .toBe(2)
  })

  it('lists revoked agents among all', async () => {
    const owner = await newGuest(gateway().origin)
    const key = await newKey(owner)
    await owner.send('DELETE', `/api/developer/keys/${key.id}`)
    const statuses = async (query: string) => {
      const { body } = await owner.send('GET', `/api/developer/keys${query}`)
      return z
        .array(z.looseObject({ status: z.string() }))
        .parse(body.keys)
        .map(({ status }) => status)
    }
    expect([await statuses(''), await statuses('?status=all')]).toEqual([[], ['revoked']])
    expect((await owner.send('GET', '/api/agents/keys?status=all')).status).toBe(200)
  })

  it('has the worth of each balance', async () => {
    const owner = await newGuest(gateway().origin)
    const { body } = await owner.send('GET', '/api/wallets')
    const balances = z
      .array(z.looseObject({ token: z.string(), amount: z.string(), usd: z.string().nullable() }))
      .parse(body.balances)
    const worth = Object.fromEntries(balances.map(({ token, usd }) => [token, Number(usd)]))
    expect(worth).toMatchObject({ USDC: 1000, USDT: 250, PYUSD: 250 })
    expect(worth.EURC).toBeGreaterThan(250)
  })

  it('lets an administrator find accounts by id and by the start of their name', async () => {
    const admin = await signInByEmail(gateway().origin, newMailbox('admin'))
    await newGuest(gateway().origin)
    const person = await newGuest(gateway().origin)
    const search = (query: string, as = admin) => as.send('GET', `/api/admin/accounts?${query}`)
    expect((await search('search=Guest')).status).toBe(403)
    await admin.send('POST', '/sandbox/admin', {})
    const { body } = await search(`search=${person.accountId}`)
    expect(body).toEqual({
      accounts: [
        {
          id: person.accountId,
          displayName: 'Guest',
          role: 'user',
          guest: true,
          kycLevel: 'none',
          locked: false,
          createdAt: expect.any(String),
        },
      ],
      nextCursor: null,
    })
    const { body: named } = await search('search=gUe&limit=1')
    expect(named).toMatchObject({ accounts: [{ displayName: 'Guest' }], nextCursor: expect.any(String) })
    for (const pattern of ['%25', '_uest', 'uest'])
      expect((await search(`search=${pattern}`)).body.accounts).toEqual([])
  })
})
