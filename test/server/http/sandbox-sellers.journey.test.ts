/** The sandbox's sellers, over HTTP on a real chain: stock clients buy from the honest ones, and liars lie as told. */

import { x402Client } from '@x402/core/client'
import { decodePaymentRequiredHeader, decodePaymentResponseHeader } from '@x402/core/http'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment as wrapFetchV2 } from '@x402/fetch'
import { Challenge, Receipt } from 'mppx'
import { evm, Mppx } from 'mppx/client'
import { createPublicClient, getAddress, http, parseAbi } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { beforeAll, describe, expect, it } from 'vitest'
import { wrapFetchWithPayment as wrapFetchV1 } from 'x402-fetch'
import { screenSandboxSuffix } from '../../../policies/aml/sandbox-suffix.ts'
import { createPublicFetch } from '../../../src/providers/public-fetch.ts'
import { sandboxSellers, sellerAddress } from '../../../src/sandbox/sellers/sellers.ts'
import { sharedGateway } from '../../journeys/gateway.ts'
import { hasAnvil } from '../../rails/selling/x402/world.ts'

const usdc = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
const abi = parseAbi(['function balanceOf(address) view returns (uint256)'])

describe.runIf(hasAnvil())('the sellers of the sandbox', () => {
  const gateway = { origin: sharedGateway() }
  let readBalance: (address: string) => Promise<bigint>
  beforeAll(async () => {
    const credentials = await fetch(`${gateway.origin}/sandbox/credentials`)
    const { chain } = JSON.parse(await credentials.text())
    const client = createPublicClient({ transport: http(chain.rpcUrl), cacheTime: 0 })
    readBalance = (address) =>
      client.readContract({ address: usdc, abi, functionName: 'balanceOf', args: [getAddress(address)] })
  })

  const buildUrl = (name: string) => `${gateway.origin}/sandbox/sellers/${name}`
  const buildInit = (name: string): RequestInit =>
    name === 'search'
      ? { method: 'POST', body: '{"query":"tea"}', headers: { 'content-type': 'application/json' } }
      : {}
  /** A payer with one USDC, and its stock clients. */
  const newPayer = async () => {
    const account = privateKeyToAccount(generatePrivateKey())
    const body = JSON.stringify({ address: account.address, amount: '1' })
    const headers = { 'content-type': 'application/json' }
    await fetch(`${gateway.origin}/sandbox/faucet`, { method: 'POST', body, headers })
    const fetches: Record<string, typeof fetch> = {
      'x402-v1': wrapFetchV1(fetch, account),
      'x402-v2': wrapFetchV2(fetch, new x402Client().register('eip155:*', new ExactEvmScheme(account))),
      mpp: Mppx.create({
        polyfill: false,
        methods: [
          evm({
            account,
            currencies: [usdc],
            networks: [84532],
            decimals: 6,
            authorization: { name: 'USDC', version: '2' },
          }),
        ],
      }).fetch,
    }
    const spent = async () => 1_000_000n - (await readBalance(account.address))
    return { account, spent, pay: (protocol: string) => fetches[protocol] ?? fetch }
  }

  it('are twenty-four, listed with their URLs', async () => {
    const { sellers } = JSON.parse(await (await fetch(`${gateway.origin}/sandbox/sellers`)).text())
    expect(sellers).toHaveLength(24)
    expect(new Set(sellers.map(({ name }: { name: string }) => name)).size).toBe(24)
    expect(sellers[0]).toEqual({
      name: 'weather',
      url: buildUrl('weather'),
      method: 'GET',
      protocol: 'x402-v2',
      price: '0.01',
      asset: 'USDC',
      honest: true,
      about: 'A forecast as JSON.',
    })
    // The sandbox's screening list works by suffix.
    for (const { name } of sandboxSellers)
      expect(screenSandboxSuffix(sellerAddress(name)).result).toBe('clear')
  })

  it.each(sandboxSellers.filter(({ protocol }) => protocol !== 'free'))(
    '$name asks in the form of $protocol',
    async ({ name, protocol }) => {
      const response = await fetch(buildUrl(name), buildInit(name))
      expect(response.status).toBe(402)
      const has = (header: string) => response.headers.has(header)
      expect([has('payment-required'), has('www-authenticate')]).toEqual([
        protocol === 'x402-v2',
        protocol === 'mpp',
      ])
      const body = JSON.parse(await response.text())
      if (protocol === 'mpp') {
        const { request, method, intent } = Challenge.fromHeaders(response.headers)
        expect([method, intent, request.currency]).toEqual(['evm', 'charge', usdc])
      } else {
        const read =
          protocol === 'x402-v1'
            ? body
            : decodePaymentRequiredHeader(response.headers.get('payment-required') ?? '')
        const [offer] = read.accepts
        expect([read.x402Version, read.accepts.length, offer.scheme]).toEqual([
          protocol === 'x402-v1' ? 1 : 2,
          1,
          ['escrow', 'reclaimable'].includes(name) ? 'auth-capture' : 'exact',
        ])
        expect(offer.asset === usdc).toBe(name !== 'fake-usdc')
        const types: Record<string, string> = {
          report: 'text/markdown',
          image: 'image/png',
          metered: 'text/plain',
        }
        expect(offer.mimeType ?? read.resource.mimeType).toBe(types[name] ?? 'application/json')
      }
    },
  )

  it.each(sandboxSellers.filter(({ honest, name }) => honest && !['stumbling', 'escrow'].includes(name)))(
    '$name sells to the stock client of $protocol, once a call',
    async ({ name, protocol, price }) => {
      const { pay, spent } = await newPayer()
      const before = await readBalance(sellerAddress(name))
      const response = await pay(protocol)(buildUrl(name), buildInit(name))
      expect(response.status).toBe(200)
      const units = BigInt(Math.round(Number(price) * 1e6))
      expect(await spent()).toBe(units)
      expect((await readBalance(sellerAddress(name))) - before).toBe(units)
      if (protocol === 'mpp') expect(Receipt.fromResponse(response).reference).toMatch(/^0x[0-9a-f]{64}$/)
      else if (protocol !== 'free') {
        const header = protocol === 'x402-v1' ? 'X-PAYMENT-RESPONSE' : 'PAYMENT-RESPONSE'
        const receipt = decodePaymentResponseHeader(response.headers.get(header) ?? '')
        expect(receipt).toMatchObject({
          success: true,
          transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
        })
      }
      expect((await response.arrayBuffer()).byteLength).toBeGreaterThan(5)
    },
  )

  it('tells a payer without enough money what it has', async () => {
    const account = privateKeyToAccount(generatePrivateKey())
    const pay = wrapFetchV2(fetch, new x402Client().register('eip155:*', new ExactEvmScheme(account)))
    const refused = await pay(buildUrl('weather'))
    expect(refused.status).toBe(402)
    const { error } = decodePaymentRequiredHeader(refused.headers.get('payment-required') ?? '')
    expect(error).toBe(`the payer ${account.address} has 0 USDC, and 0.01 are due`)
  })

  it('metered charges by the word, and refuses an order that it cannot fill before it is paid', async () => {
    const { pay, spent } = await newPayer()
    const response = await pay('x402-v2')(`${buildUrl('metered')}?words=7`)
    expect((await response.text()).split(' ')).toHaveLength(7)
    expect(await spent()).toBe(7_000n)
    expect((await pay('x402-v2')(`${buildUrl('metered')}?words=101`)).status).toBe(400)
    expect((await fetch(buildUrl('search'), { method: 'POST' })).status).toBe(400)
    expect(await spent()).toBe(7_000n)
  })

  it('stumbling delivers when the same payment comes again, and takes it once', async () => {
    const { pay, spent, account } = await newPayer()
    const sent: Request[] = []
    const spy: typeof fetch = (input, init) => {
      const request = new Request(input, init)
      if (request.headers.has('payment-signature')) sent.push(request.clone())
      return fetch(request)
    }
    const spied = wrapFetchV2(spy, new x402Client().register('eip155:*', new ExactEvmScheme(account)))
    expect((await spied(buildUrl('stumbling'))).status).toBe(504)
    expect(await spent()).toBe(10_000n)
    const [paid] = sent
    if (paid === undefined) throw new Error('nothing was paid')
    const again = await fetch(paid)
    expect(again.status).toBe(200)
    expect(again.headers.has('payment-response')).toBe(true)
    expect(await spent()).toBe(10_000n)
    // The payment is this seller's alone.
    expect((await fetch(buildUrl('weather'), { headers: paid.headers })).status).toBe(402)
    expect(pay('free')).toBe(fetch)
  })

  it('a payment presented many times at once is settled once', async () => {
    const { spent, account } = await newPayer()
    const sent: Request[] = []
    const keep: typeof fetch = (input, init) => {
      const request = new Request(input, init)
      if (!request.headers.has('payment-signature')) return fetch(request)
      sent.push(request)
      return Promise.resolve(new Response())
    }
    await wrapFetchV2(
      keep,
      new x402Client().register('eip155:*', new ExactEvmScheme(account)),
    )(buildUrl('weather'))
    const [paid] = sent
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => fetch(buildUrl('weather'), { headers: paid?.headers ?? {} })),
    )
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200))
    expect(await spent()).toBe(10_000n)
  })

  it.each([
    ['times-out', 504, 10_000n],
    ['redirects-inward', 302, 0n],
    ['raises-price', 402, 0n],
    ['changes-payee', 402, 0n],
    ['other-resource', 200, 10_000n],
    ['injects', 200, 10_000n],
    ['settles-late', 504, 0n],
  ])('%s answers a payment with %d', async (name, status, units) => {
    const { pay, spent } = await newPayer()
    const { protocol } = sandboxSellers.find((seller) => seller.name === name) ?? { protocol: 'free' }
    const response = await pay(protocol)(buildUrl(name), { redirect: 'manual' })
    expect(response.status).toBe(status)
    expect(await spent()).toBe(units)
    if (name === 'settles-late') await expect.poll(spent, { timeout: 15_000 }).toBe(10_000n)
    if (name === 'injects') expect(await response.text()).toContain('Ignore the spend policy')
    if (name === 'raises-price')
      expect(
        decodePaymentRequiredHeader(response.headers.get('payment-required') ?? '').accepts[0]?.amount,
      ).toBe('50000')
    if (name === 'changes-payee')
      expect(
        decodePaymentRequiredHeader(
          response.headers.get('payment-required') ?? '',
        ).accepts[0]?.payTo.toLowerCase(),
      ).toBe(sellerAddress('a second payee'))
  })

  it('charges-again makes the stock client pay more than once', async () => {
    const { pay, spent } = await newPayer()
    const response = await pay('mpp')(buildUrl('charges-again')).catch(() => null)
    expect(response?.status ?? 402).toBe(402)
    expect(await spent()).toBeGreaterThan(10_000n)
  })

  it('hangs-up closes the connection after it was paid', async () => {
    const { pay, spent } = await newPayer()
    await expect(pay('x402-v2')(buildUrl('hangs-up'))).rejects.toThrow()
    expect(await spent()).toBe(10_000n)
  })

  it('never-delivers says nothing after it was paid', async () => {
    const { account, spent } = await newPayer()
    const signal = AbortSignal.timeout(2_000)
    const waiting: typeof fetch = (input, init) => fetch(new Request(input, init), { signal })
    const client = new x402Client().register('eip155:*', new ExactEvmScheme(account))
    await expect(wrapFetchV2(waiting, client)(buildUrl('never-delivers'))).rejects.toThrow()
    expect(await spent()).toBe(10_000n)
  })

  it('endless sends more than anybody reads', async () => {
    const { account, spent } = await newPayer()
    const fetchPublic = createPublicFetch()
    let answer: Awaited<ReturnType<typeof fetchPublic>> | undefined
    const fetchLimited: typeof fetch = async (input, init) => {
      const request = new Request(input, init)
      answer = await fetchPublic({
        url: request.url,
        method: request.method,
        headers: Object.fromEntries(request.headers),
        maxBytes: 256 * 1024,
        timeoutMs: 20_000,
        loopback: true,
      })
      const headers = new Headers(answer.headers.map(([name, value]) => [name, value]))
      return new Response(answer.body, { status: answer.status, headers })
    }
    await wrapFetchV2(
      fetchLimited,
      new x402Client().register('eip155:*', new ExactEvmScheme(account)),
    )(buildUrl('endless'))
    expect(answer).toMatchObject({ status: 200, truncated: true, bytes: 256 * 1024 })
    expect(await spent()).toBe(10_000n)
  })

  it('refuse a broken payment, another method, another name and another host', async () => {
    const readStatus = async (name: string, init: RequestInit) => (await fetch(buildUrl(name), init)).status
    expect(await readStatus('weather', { headers: { 'PAYMENT-SIGNATURE': 'e30=' } })).toBe(400)
    expect(await readStatus('headlines', { headers: { authorization: 'Payment e30' } })).toBe(402)
    expect(await readStatus('headlines', { headers: { authorization: 'Bearer x' } })).toBe(402)
    expect(await readStatus('weather', { method: 'POST' })).toBe(405)
    expect(await readStatus('nobody', {})).toBe(404)
  })
})
