/** Production on two public chains: local nodes with the ids, contracts and tokens of Base and Arbitrum. */
import { x402Client } from '@x402/core/client'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment as wrapFetchV2 } from '@x402/fetch'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { bursar } from '../commands/bursar.ts'
import { ecbDocument, startFeed } from '../contracts/ecb-feed.ts'
import { testServerUrl } from '../engines.ts'
import { hasAnvil } from '../rails/selling/x402/world.ts'
import { startChainProxy } from './chain-proxy.ts'
import { type Mainnet, startMainnet } from './mainnet.ts'
import { enrollMfa, type Person, requestJson } from './people.ts'
import { openProductionOn, type ProductionGateway } from './production-gateway.ts'
import { startVendors } from './vendor-server.ts'

const FX = '/api/x402/fx?from=USD&to=EUR&amount=100'
const NOWHERE = 'http://127.0.0.1:9'
const SLOW = { timeout: 60_000, interval: 500 }
const hex = z.templateLiteral(['0x', z.string()])
const rowsView = z.array(z.looseObject({ token: z.string(), chain: z.string(), amount: z.string() }))
const challenge = z.looseObject({ accepts: z.array(z.looseObject({ network: z.string() })) })

describe.skipIf(testServerUrl === undefined || !hasAnvil())('production on Base and Arbitrum', () => {
  const closing: (() => unknown)[] = []
  let base: Mainnet
  let arbitrum: Mainnet
  let isThere = false
  let nodes: Record<string, string>
  let production: ProductionGateway
  let ada: Person

  beforeAll(async () => {
    base = await startMainnet('base')
    closing.push(base.close)
    arbitrum = await startMainnet('arbitrum', { hasOwnContracts: true })
    closing.push(arbitrum.close)
    const sponsor = privateKeyToAccount(`0x${'1'.repeat(64)}`).address
    for (const chain of [base, arbitrum]) await chain.giveGas(sponsor)
    const front = await startChainProxy(() => (isThere ? arbitrum.url : NOWHERE))
    closing.push(front.close)
    nodes = { CHAINS: 'base,arbitrum', CHAIN_RPC_URL_BASE: base.url, CHAIN_RPC_URL_ARBITRUM: front.url }
    const rates = await startFeed(ecbDocument(new Date().toISOString().slice(0, 10)))
    closing.push(rates.close)
    const vendors = await startVendors()
    closing.push(vendors.close)
    const env = {
      RATE_MUTATIONS: '100000/60',
      RATE_FX: '1000/60',
      FX_RATES_URL: rates.url,
      SCREENING_URL: vendors.url,
    }
    production = await openProductionOn(nodes, env)
    closing.push(production.close)
    const { accountId } = await production.signIn('founder@example.com')
    await production.start({ ...env, FOUNDER_ACCOUNT: accountId })
    const founder = await production.signIn('founder@example.com')
    await enrollMfa(founder)
    for (const rail of ['wallet-transfer', 'x402-fx'])
      expect(await founder.send('PUT', `/api/rails/${rail}/controls`, { enabled: true })).toMatchObject({
        status: 200,
      })
    ada = await production.signIn('ada@example.com')
  }, 180_000)
  afterAll(async () => {
    for (const close of closing.reverse()) await close()
  }, 60_000)

  const origin = () => production.gateway().origin
  const readRows = async () => rowsView.parse((await ada.send('GET', '/api/wallets')).body.balances)
  const usdcOn = async (chain: string) =>
    (await readRows()).find((row) => row.token === 'USDC' && row.chain === chain)?.amount
  const networks = async () => {
    const header = (await fetch(`${origin()}${FX}`)).headers.get('payment-required') ?? ''
    return challenge
      .parse(JSON.parse(Buffer.from(header, 'base64').toString()))
      .accepts.map(({ network }) => network)
  }
  const intent = (chain: string) =>
    ada.send('POST', '/api/wallets/transfer/intent', {
      destination: privateKeyToAccount(generatePrivateKey()).address,
      amount: '1',
      chain,
    })
  const checks = async () => (await requestJson(origin(), 'GET', '/readyz')).body

  it('starts without the node of its second chain, which alone is unavailable', async () => {
    expect(await checks()).toMatchObject({
      status: 'ok',
      checks: { chain: 'ok', chain_base: 'ok', chain_arbitrum: 'unavailable' },
    })
    expect(await intent('arbitrum')).toMatchObject({ status: 503, body: { code: 'provider_unavailable' } })
    expect(await intent('optimism')).toMatchObject({ status: 400, body: { code: 'chain_not_supported' } })
    expect(await intent('base')).toMatchObject({
      status: 200,
      body: { intent: { chain: 'base', chainId: 8453 } },
    })
    expect(await networks()).toEqual(['eip155:8453'])
    const payment = {
      x402Version: 2,
      accepted: { scheme: 'exact', network: 'eip155:42161' },
      payload: {
        signature: `0x${'1'.repeat(130)}`,
        authorization: {
          from: base.payer.address,
          to: base.payer.address,
          value: '10000',
          validAfter: '0',
          validBefore: '4000000000',
          nonce: `0x${'1'.repeat(64)}`,
        },
      },
    }
    const headers = { 'payment-signature': Buffer.from(JSON.stringify(payment)).toString('base64') }
    // A payment that may have been made is never answered by a new challenge.
    expect((await fetch(`${origin()}${FX}`, { headers })).status).toBe(503)
  }, 60_000)

  it('takes the chain in as soon as its node answers', async () => {
    isThere = true
    await expect.poll(checks, SLOW).toMatchObject({ checks: { chain_arbitrum: 'ok' } })
    await expect.poll(networks, SLOW).toEqual(['eip155:8453', 'eip155:42161'])
    expect((await readRows()).map(({ chain, token }) => `${chain} ${token}`)).toEqual([
      'base USDC',
      'base EURC',
      'arbitrum USDC',
    ])
    expect(await intent('arbitrum')).toMatchObject({
      status: 200,
      body: { intent: { chain: 'arbitrum', chainId: 42161 } },
    })
  }, 90_000)

  it('finds a deposit on each chain, after the confirmations of that chain', async () => {
    const safe = hex.parse((await ada.send('GET', '/api/wallets')).body.safeAddress)
    await base.pay(safe, 3_000_000n)
    await arbitrum.pay(safe, 4_000_000n)
    await expect.poll(() => usdcOn('base'), SLOW).toBe('3')
    await arbitrum.request('anvil_mine', ['0x28'])
    await expect.poll(() => usdcOn('arbitrum'), SLOW).toBe('4')
    expect(await usdcOn('base')).toBe('3')
  }, 150_000)

  it('sells a quote on each chain', async () => {
    for (const [chain, id] of [
      [base, 8453],
      [arbitrum, 42161],
    ] as const) {
      const client = new x402Client().register(`eip155:${id}`, new ExactEvmScheme(chain.payer))
      const before = await chain.readBalance(chain.payer.address)
      const pay = async () => (await wrapFetchV2(fetch, client)(`${origin()}${FX}`)).status
      expect([200, 503]).toContain(await pay())
      await expect.poll(() => chain.readBalance(chain.payer.address), SLOW).toBe(before - 10_000n)
    }
  }, 90_000)

  it('asks for the name of one of several chains before it checks contracts', async () => {
    const env = { CHAIN: '', ...nodes }
    expect(await bursar(['chain', 'check'], env)).toMatchObject({
      code: 1,
      err: expect.stringContaining('Name one of them: base, arbitrum'),
    })
    expect((await bursar(['chain', 'check', 'polygon'], env)).err).toContain('CHAINS does not name polygon')
    const { code, out } = await bursar(['chain', 'check', 'arbitrum', '--json'], env)
    expect([code, JSON.parse(out)]).toMatchObject([0, { ok: true, chainId: 42161 }])
  }, 60_000)
})
