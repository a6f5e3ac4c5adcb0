/**
 * Requests for money over HTTP, on real chains and both engines: made, paid in three ways by real clients, and attacked by payers who
 * lie. What arrives counts for one request, once.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { createTestClient, createWalletClient, erc20Abi, http, publicActions } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { sandboxTokens } from '../../src/chain/rpc/networks.ts'
import type { Chain } from '../../src/providers/chain/port.ts'
import { connectSellers } from '../rails/buying/channel-sellers.ts'
import { misleadingFetch, newCustomer, spyingFetch } from '../rails/selling/x402/scene.ts'
import { overBothEnginesOnNodes } from './both-engines.ts'
import { readAddress } from './keyed-owners.ts'
import { newGuest, type Person, requestJson } from './people.ts'

const made = z.looseObject({
  requestId: z.string(),
  url: z.url(),
  x402Url: z.url().catch(''),
  reference: z.string(),
  status: z.string(),
  payments: z.array(z.looseObject({ kind: z.string(), id: z.string(), late: z.boolean() })),
})
type Made = z.output<typeof made>
const HOSTILE = '<img src=x onerror=alert(1)>\u202E =HYPERLINK("http://evil.example") "\'&'
const MONTH_MS = 40 * 86_400_000

overBothEnginesOnNodes('requests', (world) => {
  let chain: Chain
  let owner: Person
  const origin = () => world.gateway().origin
  beforeAll(async () => {
    chain = await connectSellers(world.rpcUrl())
    owner = await newGuest(origin())
  }, 60_000)
  afterAll(() => chain?.close(), 60_000)

  const ask = async (body: object = {}, by: Person = owner) => {
    const answer = await by.send('POST', '/api/requests', { amount: '7', memo: 'Invoice 12', ...body })
    expect(answer.status, JSON.stringify(answer.body)).toBe(200)
    return made.parse(answer.body)
  }
  const read = async ({ requestId }: Made, by: Person = owner) =>
    (await by.send('GET', `/api/requests/${requestId}`)).body
  const untilStatus = async (request: Made, status: string, by: Person = owner) => {
    await expect.poll(async () => (await read(request, by)).status, { interval: 200 }).toBe(status)
    return made.parse(await read(request, by))
  }
  const readPage = async ({ url }: Made) => {
    const response = await fetch(url)
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  const readUsdc = async (by: Person) => {
    const { body } = await by.send('GET', '/api/wallets')
    const rows = z.array(z.looseObject({ token: z.string(), amount: z.string() })).parse(body.balances)
    return Number(rows.find(({ token }) => token === 'USDC')?.amount)
  }
  /** A transfer by a stranger, who has nothing but an address and an amount. */
  const sendFromOutside = async (to: string, units: bigint) => {
    const account = privateKeyToAccount(generatePrivateKey())
    await chain.mint([{ token: 'USDC', to: account.address, units }])
    const transport = http(world.rpcUrl())
    await createTestClient({ mode: 'anvil', transport }).setBalance({
      address: account.address,
      value: 10n ** 18n,
    })
    const wallet = createWalletClient({ account, chain: baseSepolia, transport }).extend(publicActions)
    const hash = await wallet.writeContract({
      address: sandboxTokens.USDC.address,
      abi: erc20Abi,
      functionName: 'transfer',
      args: [z.templateLiteral(['0x', z.string()]).parse(to), units],
    })
    await wallet.waitForTransactionReceipt({ hash })
  }
  const listEvents = async (by: Person, types: readonly string[]) => {
    const { body } = await by.send('GET', `/api/events?limit=100&type=${types.join(',')}`)
    return z
      .array(z.looseObject({ type: z.string() }))
      .parse(body.events)
      .map(({ type }) => type)
  }

  it('is made with a page that shows what it says, and nothing else of the account', async () => {
    const request = await ask({ payee: 'Ada’s Shop' })
    expect(request).toMatchObject({ status: 'open', amount: '7', asset: 'USDC', received: '0', payments: [] })
    const { status, headers, text } = await readPage(request)
    expect(status).toBe(200)
    expect(headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(headers.get('x-robots-tag')).toContain('noindex')
    expect(headers.get('cache-control')).toBe('no-store')
    for (const shown of ['Pay 7 USDC', 'Ada’s Shop', 'Invoice 12', 'uint256=7000000', '<svg'])
      expect(text).toContain(shown)
    expect(text.toLowerCase()).toContain((await readAddress(owner)).toLowerCase())
    for (const hidden of [request.requestId, owner.accountId, 'Guest', request.reference])
      expect(text).not.toContain(hidden)
    expect(await readPage({ ...request, url: `${origin()}/pay/${request.requestId}` })).toMatchObject({
      status: 404,
    })
  })

  it('is paid once by a plain transfer of its amount, from the chain or from another wallet here', async () => {
    const payer = await newGuest(origin())
    for (const pay of [
      (to: string) => sendFromOutside(to, 8_000_001n),
      (destination: string) =>
        payer.send('POST', '/api/wallets/transfer', {
          destination,
          amount: '8.000001',
          token: 'USDC',
          signature: 'x',
        }),
    ]) {
      const request = await ask({ amount: '8.000001' })
      const before = await readUsdc(owner)
      await pay(await readAddress(owner))
      const paid = await untilStatus(request, 'paid')
      expect(paid).toMatchObject({
        received: '8.000001',
        overpaid: '0',
        payments: [{ kind: 'transfer', late: false }],
      })
      expect(await readUsdc(owner)).toBeCloseTo(before + 8.000001, 6)
      const [{ id } = { id: '' }] = paid.payments
      const { body: activity } = await owner.send('GET', '/api/activity?direction=in')
      expect(activity.entries).toContainEqual(expect.objectContaining({ id, memo: 'Invoice 12' }))
      const { text } = await readPage(request)
      expect(text).toContain('This is paid')
      expect(text).not.toContain('ethereum:')
    }
    expect(await listEvents(owner, ['request.paid'])).toHaveLength(2)
  }, 60_000)

  it('is paid by stock x402 clients of both versions, which get a receipt, and costs nobody anything twice', async () => {
    for (const version of ['v1', 'v2'] as const) {
      const request = await ask({ amount: '0.05' })
      const spy = spyingFetch()
      const customer = await newCustomer(chain, 1_000_000n, spy.fetch)
      const response = await customer[version](request.x402Url)
      expect(response.status).toBe(200)
      expect(response.headers.get(version === 'v1' ? 'x-payment-response' : 'payment-response')).toMatch(/\w/)
      const answer = z
        .looseObject({ payment: z.looseObject({ id: z.string(), transaction: z.string() }) })
        .parse(await response.json())
      const paid = await untilStatus(request, 'paid')
      expect(paid.payments).toMatchObject([{ kind: 'x402', id: answer.payment.id, amount: '0.05' }])
      // The same payment again, and a new one.
      const again = await fetch(request.x402Url, { headers: spy.payment() })
      expect(await again.json()).toEqual(answer)
      expect((await customer[version](request.x402Url)).status).toBe(409)
      const { balance } = await readBalance(customer.address)
      expect(balance).toBe(950_000n)
      expect(await read(request)).toMatchObject({ received: '0.05', overpaid: '0' })
    }
  }, 60_000)

  const readBalance = async (address: `0x${string}`) => {
    const client = createWalletClient({ chain: baseSepolia, transport: http(world.rpcUrl()) }).extend(
      publicActions,
    )
    const balance = await client.readContract({
      address: sandboxTokens.USDC.address,
      abi: erc20Abi,
      functionName: 'balanceOf',
      args: [address],
    })
    return { balance }
  }

  it('charges one of several payers who race, and the others nothing', async () => {
    const request = await ask({ amount: '0.021' })
    const customers = await Promise.all(['v1', 'v2', 'v2', 'v1'].map(() => newCustomer(chain, 1_000_000n)))
    const answers = await Promise.all(
      customers.map((customer, index) => customer[index % 2 === 0 ? 'v1' : 'v2'](request.x402Url)),
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(3)
    const balances = await Promise.all(customers.map(({ address }) => readBalance(address)))
    expect(balances.filter(({ balance }) => balance === 979_000n)).toHaveLength(1)
    expect(balances.filter(({ balance }) => balance === 1_000_000n)).toHaveLength(3)
    expect(await untilStatus(request, 'paid')).toMatchObject({ received: '0.021', overpaid: '0' })
  }, 60_000)

  it('keeps apart an x402 payment and a transfer of the same amount', async () => {
    const [first, second] = [await ask({ amount: '0.33' }), await ask({ amount: '0.33' })]
    const customer = await newCustomer(chain, 1_000_000n)
    expect((await customer.v2(second.x402Url)).status).toBe(200)
    expect((await untilStatus(second, 'paid')).payments).toMatchObject([{ kind: 'x402' }])
    expect(await read(first)).toMatchObject({ status: 'open', received: '0' })
    await sendFromOutside(await readAddress(owner), 330_000n)
    expect((await untilStatus(first, 'paid')).payments).toMatchObject([{ kind: 'transfer' }])
    expect(await read(second)).toMatchObject({ received: '0.33' })
  }, 60_000)

  it('does not guess between two requests of one amount: the owner links the payment, once', async () => {
    const [first, second] = [await ask({ amount: '3.5' }), await ask({ amount: '3.5' })]
    await sendFromOutside(await readAddress(owner), 3_500_000n)
    const unmatched = z.array(z.looseObject({ id: z.string(), amount: z.string() }))
    const readUnmatched = async () =>
      unmatched.parse((await read(second)).unmatched).filter(({ amount }) => amount === '3.5')
    await expect.poll(readUnmatched, { interval: 200 }).toHaveLength(1)
    expect([await read(first), await read(second)]).toMatchObject([{ status: 'open' }, { status: 'open' }])
    const [{ id: entryId } = { id: '' }] = await readUnmatched()
    const link = ({ requestId }: Made, by = owner) =>
      by.send('POST', `/api/requests/${requestId}/payments`, { entryId })
    const stranger = await newGuest(origin())
    expect(await link(second, stranger)).toMatchObject({ status: 404 })
    expect(await link(await ask({}, stranger), stranger)).toMatchObject({ status: 404 })
    const links = await Promise.all([link(first), link(second), link(second)])
    expect(links.map(({ status }) => status).sort()).toEqual([200, 409, 409])
    const statuses = [await read(first), await read(second)].map(({ status }) => status)
    expect(statuses.sort()).toEqual(['open', 'paid'])
  }, 60_000)

  it('is paid by bank under its reference, in parts, too much, and back', async () => {
    const { body: account } = await owner.send('POST', '/api/banking', { currency: 'USD' })
    const becomes = z
      .looseObject({ destination: z.looseObject({ token: z.string() }).nullable() })
      .parse(account).destination
    const asset = becomes?.token ?? 'USD'
    const request = await ask({ amount: '100', asset, virtualAccountId: account.id })
    const page = (await readPage(request)).text
    expect(page).toContain(request.reference)
    expect(page).not.toContain(String(account.accountHolderName))
    const deposit = (amount: string, reference?: string) =>
      requestJson(origin(), 'POST', '/sandbox/deposits', {
        body: { accountId: account.id, amount, ...(reference === undefined ? {} : { reference }) },
      })
    await deposit('100')
    await deposit('100', `Inv 12 RF00${request.reference.slice(4)}`)
    await pause(1_500)
    expect(await read(request)).toMatchObject({ status: 'open', received: '0' })
    const spaced =
      request.reference
        .toLowerCase()
        .match(/.{1,4}/g)
        ?.join(' ') ?? ''
    await deposit('40', `Invoice no. 12, ${spaced}`)
    await untilStatus(request, 'partly_paid')
    expect((await readPage(request)).text).toContain('Pay 60 ')
    await deposit('90', request.reference)
    const paid = await untilStatus(request, 'paid')
    expect(paid).toMatchObject({
      received: '130',
      overpaid: '30',
      payments: [{ kind: 'bank' }, { kind: 'bank' }],
    })
    expect(await listEvents(owner, ['request.partly_paid'])).toHaveLength(1)
  }, 60_000)

  it('expires and is canceled: late money is booked and shown as late', async () => {
    const canceled = await ask({ amount: '1.11' })
    const path = `/api/requests/${canceled.requestId}`
    expect(await owner.send('DELETE', path)).toMatchObject({ status: 200, body: { status: 'canceled' } })
    expect(await owner.send('DELETE', path)).toMatchObject({ status: 200, body: { status: 'canceled' } })
    const customer = await newCustomer(chain, 10_000_000n)
    expect((await customer.v1(canceled.x402Url)).status).toBe(409)
    expect((await readPage(canceled)).text).toContain('was canceled')
    const { body: account } = await owner.send('POST', '/api/banking', { currency: 'EUR' })
    const destination = z.looseObject({ token: z.string() }).nullable().parse(account.destination)
    const asset = destination?.token ?? 'EUR'
    const expired = await ask({
      amount: '5',
      asset,
      virtualAccountId: account.id,
      expiresAt: new Date(Date.now() + 4_000).toISOString(),
    })
    const late = await ask({ amount: '2.22', expiresAt: new Date(Date.now() + 4_000).toISOString() })
    await untilStatus(expired, 'expired')
    expect((await readPage(late)).text).toContain('has expired')
    expect((await customer.v2(late.x402Url)).status).toBe(409)
    expect(await owner.send('DELETE', `/api/requests/${late.requestId}`)).toMatchObject({ status: 409 })
    await requestJson(origin(), 'POST', '/sandbox/deposits', {
      body: { accountId: account.id, amount: '5', reference: expired.reference },
    })
    await expect.poll(async () => (await read(expired)).received, { interval: 200 }).toBe('5')
    expect(await read(expired)).toMatchObject({ status: 'expired', payments: [{ kind: 'bank', late: true }] })
    await expect
      .poll(() => listEvents(owner, ['request.canceled', 'request.expired', 'request.paid_late']), {
        interval: 200,
      })
      .toEqual(expect.arrayContaining(['request.canceled', 'request.expired', 'request.paid_late']))
  }, 60_000)

  it('shows a hostile text as text, on the page, in lists and in statements', async () => {
    const request = await ask({ amount: '0.77', memo: HOSTILE, payee: '</title><script>alert(1)</script>' })
    expect(request.memo).not.toContain('\u202E')
    const { text } = await readPage(request)
    expect(text).toContain('&lt;img src=x onerror=alert(1)&gt;')
    for (const mark of ['<img', '<script>alert', '\u202E']) expect(text).not.toContain(mark)
    await sendFromOutside(await readAddress(owner), 770_000n)
    await untilStatus(request, 'paid')
    const month = new Date().toISOString().slice(0, 7)
    const read = async (path: string, accept: string) => {
      const response = await fetch(`${origin()}${path}`, {
        headers: { authorization: `Bearer ${owner.token}`, accept },
      })
      expect(response.status).toBe(200)
      return response.text()
    }
    for (const path of ['/api/activity?limit=100', `/api/statements/${month}`]) {
      const csv = await read(path, 'text/csv')
      expect(csv).not.toMatch(/(^|,)"?[=+@]HYPERLINK/m)
    }
    const xml = await read(`/api/statements/${month}`, 'application/xml')
    expect(xml).not.toContain('<img')
    for (const memo of ['two\nlines', '\u200B', 'x'.repeat(141)])
      expect(await owner.send('POST', '/api/requests', { amount: '1', memo })).toMatchObject({ status: 400 })
  }, 60_000)

  it('lets an agent ask with scopes of its own, and see and cancel only its own', async () => {
    const newKey = async (scopes: readonly string[]) => {
      const { body } = await owner.send('POST', '/api/developer/keys', { name: 'Asker', scopes })
      const send = (method: string, path: string, sent?: unknown, key?: string) =>
        requestJson(origin(), method, path, {
          body: sent,
          headers: {
            authorization: `Bearer ${String(body.key)}`,
            ...(key === undefined ? {} : { 'idempotency-key': key }),
          },
        })
      return { id: String(body.id), send }
    }
    const key = await newKey(['requests:create', 'requests:read'])
    const reader = await newKey(['requests:read'])
    const body = { amount: '4', memo: 'Work' }
    expect(await reader.send('POST', '/api/requests', body)).toMatchObject({
      status: 403,
      body: { code: 'insufficient_scope' },
    })
    const { body: account } = await owner.send('POST', '/api/banking', { currency: 'GBP' })
    expect(await key.send('POST', '/api/requests', { ...body, virtualAccountId: account.id })).toMatchObject({
      status: 403,
      body: { code: 'insufficient_scope', scopes: ['banking:read'] },
    })
    const first = await key.send('POST', '/api/requests', body, 'once')
    expect(first).toMatchObject({ status: 200, body: { agentId: key.id } })
    expect(await key.send('POST', '/api/requests', body, 'once')).toEqual(first)
    expect(await key.send('POST', '/api/requests', { ...body, amount: '5' }, 'once')).toMatchObject({
      status: 422,
    })
    const others = await ask({ amount: '4.01' })
    for (const [asking, method] of [
      [key, 'GET'],
      [key, 'DELETE'],
      [reader, 'GET'],
    ] as const)
      expect(await asking.send(method, `/api/requests/${others.requestId}`)).toMatchObject({ status: 404 })
    expect((await key.send('GET', '/api/requests')).body.requests).toMatchObject([
      { requestId: first.body.requestId },
    ])
    expect((await reader.send('GET', '/api/requests')).body.requests).toEqual([])
    expect(await reader.send('DELETE', `/api/requests/${String(first.body.requestId)}`)).toMatchObject({
      status: 403,
    })
    expect(await key.send('DELETE', `/api/requests/${String(first.body.requestId)}`)).toMatchObject({
      status: 200,
      body: { status: 'canceled' },
    })
  })

  it('takes no lies: another amount, another payee, or the payment of another request', async () => {
    const [request, other] = [await ask({ amount: '0.019' }), await ask({ amount: '0.019' })]
    const wallet = await readAddress(owner)
    for (const change of [
      (text: string) => text.replaceAll('19000', '1'),
      (text: string) => text.replaceAll(wallet, `0x${'ab'.repeat(20)}`),
    ]) {
      const liar = await newCustomer(chain, 2_000_000n, misleadingFetch(change))
      for (const version of ['v1', 'v2'] as const) {
        const response = await liar[version](request.x402Url).catch(() => null)
        expect(response?.status ?? 402).toBe(402)
      }
      expect(await readBalance(liar.address)).toEqual({ balance: 2_000_000n })
    }
    const spy = spyingFetch()
    const customer = await newCustomer(chain, 2_000_000n, spy.fetch)
    expect((await customer.v2(other.x402Url)).status).toBe(200)
    const reused = await fetch(request.x402Url, { headers: spy.payment() })
    expect(reused.status).not.toBe(200)
    await untilStatus(other, 'paid')
    expect(await read(request)).toMatchObject({ status: 'open', received: '0' })
  }, 60_000)

  it('refuses what nobody could pay, and what is over', async () => {
    for (const body of [
      { amount: '0' },
      { amount: '1.0000001' },
      { amount: '1', asset: 'USD' },
      { amount: '1', expiresAt: new Date(Date.now() - 1_000).toISOString() },
      { amount: '1', expiresAt: new Date(Date.now() + 12 * MONTH_MS).toISOString() },
    ])
      expect(await owner.send('POST', '/api/requests', body)).toMatchObject({ status: 400 })
    const stranger = await newGuest(origin())
    const { body: account } = await stranger.send('POST', '/api/banking', { currency: 'USD' })
    const theirs = { amount: '1', asset: 'USD', virtualAccountId: account.id }
    expect(await owner.send('POST', '/api/requests', theirs)).toMatchObject({ status: 404 })
  })
})
