/** The published client against a real gateway: the whole money journey, and calls that fail on the way. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { beforeAll, describe, expect, it } from 'vitest'
import { Bursar, BursarProblem, BursarUnreachable, PaymentRequired } from '../../src/client/index.ts'
import { newKey } from '../../src/commands/key-file.ts'
import { sharedGateway } from '../journeys/gateway.ts'

const PAYEE = '0x00000000000000000000000000000000000A11cE'

/** The object that `bursar agent new` writes. */
function newAgentKey() {
  const { keyId, publicKey, privateKey } = newKey()
  const { d = '' } = privateKey.export({ format: 'jwk' })
  return { keyId, publicKey, privateKey: { ...publicKey, d } }
}

async function readProblem(call: PromiseLike<unknown>): Promise<BursarProblem> {
  try {
    await call
  } catch (error) {
    if (error instanceof BursarProblem) return error
    throw error
  }
  throw new Error('The call was not refused.')
}

/** Serves until the test file ends. @returns the origin, and the requests that came, such as `POST /api/auth/guest`. */
async function serve(answer: (url: string, response: ServerResponse) => void) {
  const requests: string[] = []
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`)
    answer(request.url ?? '', response)
  })
  await once(server.listen(0, '127.0.0.1').unref(), 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  return { origin: `http://127.0.0.1:${address.port}`, requests }
}

describe('the client and what stands before the gateway', () => {
  it('follows no redirect: neither credential nor payment goes elsewhere, and no GET stands for a payment', async () => {
    const elsewhere = await serve((_, response) => response.end('{"status":"confirmed"}'))
    for (const status of [301, 302, 303, 307, 308]) {
      const moved = await serve((url, response) =>
        response.writeHead(status, { location: `${elsewhere.origin}${url}` }).end(),
      )
      const client = new Bursar({ url: moved.origin, apiKey: 'bsk_x', retries: 0 })
      await expect(client.wallets.transfer({ destination: PAYEE, amount: '1' })).rejects.toBeInstanceOf(
        BursarUnreachable,
      )
      expect(moved.requests).toEqual(['POST /api/wallets/transfer'])
    }
    expect(elsewhere.requests).toEqual([])
  })

  it('takes no id that changes the path, and gives no key to an operation that knows none', async () => {
    const { origin, requests } = await serve((_, response) => response.destroy())
    const client = new Bursar({ url: origin, apiKey: 'bsk_x', retries: 1 })
    for (const id of ['.', '..', ''])
      await expect(client.agents.keys.pause({ id })).rejects.toBeInstanceOf(TypeError)
    expect(requests).toEqual([])
    await expect(client.auth.guest({}, { idempotencyKey: 'once' })).rejects.toBeInstanceOf(BursarUnreachable)
    expect(requests).toEqual(['POST /api/auth/guest'])
  })

  it('waits as long as it is told, up to a minute', async () => {
    let retryAfter = 1
    const { origin, requests } = await serve((_, response) =>
      response
        .writeHead(429, { 'retry-after': String(retryAfter) })
        .end(JSON.stringify({ code: 'rate_limited', status: 429, detail: 'Too many.', retryAfter })),
    )
    const client = new Bursar({ url: origin, retries: 1 })
    const began = performance.now()
    expect((await readProblem(client.rails.list())).code).toBe('rate_limited')
    expect(performance.now() - began).toBeGreaterThan(990)
    expect(requests).toHaveLength(2)
    retryAfter = 61
    expect((await readProblem(client.rails.list())).problem.retryAfter).toBe(61)
    expect(requests).toHaveLength(3)
  })

  it('says that its key is bad, and comes back ever later to what is no stream', async () => {
    const { origin, requests } = await serve((_, response) => response.end('<p>Come back soon</p>'))
    const agentKey = { keyId: 'x', privateKey: { kty: 'OKP', crv: 'Ed25519', x: 'x', d: 'x' } }
    await expect(new Bursar({ url: origin, agentKey }).listen().next()).rejects.toThrow()
    expect(requests).toEqual([])
    const signal = AbortSignal.timeout(3_000)
    expect(await new Bursar({ url: origin }).listen({ signal }).next()).toEqual({
      done: true,
      value: undefined,
    })
    // After 0.25 to 0.75, 0.5 to 1.5, 1 to 3 seconds.
    expect(requests.length).toBeLessThan(5)
  })
})

describe('the client', () => {
  const gateway = { origin: sharedGateway() }
  let owner: Bursar
  let agentKey: ReturnType<typeof newAgentKey>
  let agent: Bursar
  beforeAll(async () => {
    const { sessionToken } = await new Bursar({ url: gateway.origin }).auth.guest()
    owner = new Bursar({ url: gateway.origin, session: sessionToken })
    agentKey = newAgentKey()
    await owner.agents.keys.create({
      name: 'Shopper',
      publicKey: agentKey.publicKey,
      scopes: [
        'wallets:read',
        'wallets:transfer',
        'events:read',
        'cards:read',
        'investing:trade',
        'investing:read',
      ],
      policy: {
        currency: 'USD',
        perTransaction: { max: '5' },
        dailyBudget: { max: '100' },
        categories: { allow: ['transfer', 'invest'] },
      },
    })
    agent = new Bursar({ url: gateway.origin, agentKey })
  })

  const usdc = async () => {
    const { balances } = await owner.wallets.get()
    return Number(balances.find(({ token }) => token === 'USDC')?.amount)
  }

  it('pays as an agent under its policy, and is told which rule denies more', async () => {
    const before = await usdc()
    const paid = await agent.wallets.transfer({ destination: PAYEE, amount: '1.50', token: 'USDC' })
    expect(paid).toMatchObject({ status: 'confirmed', amount: '1.5' })
    expect(await usdc()).toBeCloseTo(before - 1.5, 6)

    const denied = await readProblem(
      agent.wallets.transfer({ destination: PAYEE, amount: '6', token: 'USDC' }),
    )
    expect(denied).toMatchObject({ code: 'policy_denied', status: 403 })
    expect(denied.violations.map(({ rule }) => rule)).toContain('per_transaction')
    expect(denied.hint).toEqual(expect.any(String))
    expect(await usdc()).toBeCloseTo(before - 1.5, 6)
  })

  it('issues a card, sees its purchases, buys shares and closes nothing that is not its own', async () => {
    const card = await owner.cards.issue({})
    const { approved } = await owner.sandbox.authorizations({
      cardId: card.id,
      amount: '12.34',
      merchant: 'Shop',
    })
    expect(approved).toBe('12.34')
    const transactions = []
    for await (const one of owner.cards.transactions({ id: card.id })) transactions.push(one)
    expect(transactions).toEqual([expect.objectContaining({ amount: '12.34' })])
    const order = await agent.investing.order({ symbol: 'VTI', side: 'buy', notional: '4' })
    expect(order.id).toMatch(/^ord_/)
    expect((await readProblem(agent.banking.list())).code).toBe('insufficient_scope')
    expect(
      (await readProblem(agent.wallets.transfers.get({ id: 'tx_01jd0000000000000000000000' }))).code,
    ).toBe('not_found')
  })

  it('reads a list page by page, each entry once', async () => {
    for (let count = 0; count < 4; count += 1)
      await agent.wallets.transfer({ destination: PAYEE, amount: '0.01', token: 'USDC' })
    const first = await agent.wallets.transfers.list({ limit: 2 })
    expect(first.transfers).toHaveLength(2)
    expect(first.nextCursor).toEqual(expect.any(String))
    const ids: string[] = []
    for await (const { transferId } of agent.wallets.transfers.list({ limit: 2 })) ids.push(transferId)
    expect(ids.length).toBeGreaterThanOrEqual(5)
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.slice(0, 2)).toEqual(first.transfers.map(({ transferId }) => transferId))
  })

  it('hears what happens, and goes on where a broken stream ended', async () => {
    let streams = 0
    const breaking: typeof fetch = async (input, init) => {
      const response = await fetch(input, init)
      if (!String(response.headers.get('content-type')).startsWith('text/event-stream')) return response
      streams += 1
      if (streams > 1) return response
      // The first stream breaks after its position, before any event.
      const reader = response.body?.getReader()
      const { value = new Uint8Array() } = (await reader?.read()) ?? {}
      await reader?.cancel()
      return new Response(value, response)
    }
    const watching = new Bursar({ url: gateway.origin, agentKey, fetch: breaking })
    const ending = new AbortController()
    const events = watching.listen({ types: ['transfer.confirmed'], signal: ending.signal })
    const heard = events.next()
    await expect.poll(() => streams).toBeGreaterThan(0)
    const { transferId } = await agent.wallets.transfer({ destination: PAYEE, amount: '0.02', token: 'USDC' })
    const { value: event } = await heard
    expect(event).toMatchObject({ type: 'transfer.confirmed', object: { kind: 'transfer', id: transferId } })
    expect(streams).toBe(2)
    ending.abort()
    expect(await events.next()).toEqual({ done: true, value: undefined })
    const listed = []
    for await (const one of agent.events.list({ type: 'transfer.confirmed', limit: 2 })) listed.push(one.id)
    expect(listed.length).toBeGreaterThan(2)
    expect(new Set(listed).size).toBe(listed.length)
  })

  it('pays once when the answer is lost on its way, and tries again by itself', async () => {
    let sent = 0
    const losing: typeof fetch = async (input, init) => {
      const response = await fetch(input, init)
      sent += 1
      if (sent > 2) return response
      await response.arrayBuffer()
      throw new TypeError('fetch failed')
    }
    const before = await usdc()
    const careful = new Bursar({ url: gateway.origin, agentKey, fetch: losing })
    const paid = await careful.wallets.transfer({ destination: PAYEE, amount: '0.25', token: 'USDC' })
    expect(paid.status).toBe('confirmed')
    expect(sent).toBe(3)
    expect(await usdc()).toBeCloseTo(before - 0.25, 6)
  })

  it('repeats nothing that could happen twice, and stops when it is told to', async () => {
    let sent = 0
    const failing: typeof fetch = async () => {
      sent += 1
      throw new TypeError('fetch failed')
    }
    const offline = new Bursar({ url: gateway.origin, fetch: failing, retries: 2 })
    await expect(offline.auth.guest()).rejects.toBeInstanceOf(BursarUnreachable)
    expect(sent).toBe(1)
    await expect(offline.rails.list()).rejects.toBeInstanceOf(BursarUnreachable)
    expect(sent).toBe(4)
    const signal = AbortSignal.timeout(50)
    const patient = new Bursar({ url: gateway.origin, fetch: failing, retries: 50 })
    await expect(patient.rails.list({}, { signal })).rejects.toMatchObject({ name: 'TimeoutError' })
  })

  it('takes one credential, and says when an operation is sold', async () => {
    expect(() => new Bursar({ url: gateway.origin, agentKey, apiKey: 'bsk_x' })).toThrow(/one credential/)
    const buyer = new Bursar({ url: gateway.origin })
    await expect(buyer.x402.fx({ from: 'USD', to: 'EUR', amount: '10' })).rejects.toBeInstanceOf(
      PaymentRequired,
    )
    const { demoApiKey } = await buyer.sandbox.credentials()
    const program = new Bursar({ url: gateway.origin, apiKey: demoApiKey })
    expect((await program.context()).scopes).toContain('wallets:read')
    expect(
      (await readProblem(new Bursar({ url: gateway.origin, apiKey: 'bsk_sandbox_no' }).wallets.get())).code,
    ).toBe('unknown_key')
  })
})
