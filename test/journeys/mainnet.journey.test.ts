/** Production on a public chain: a gateway on a local node with the id, the contracts and the tokens of Base. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { x402Client } from '@x402/core/client'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment as wrapFetchV2 } from '@x402/fetch'
import { keccak256, numberToHex, pad, stringToHex, toHex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { wrapFetchWithPayment as wrapFetchV1 } from 'x402-fetch'
import { z } from 'zod'
import { connectRpcChain } from '../../src/chain/rpc.ts'
import { systemClock } from '../../src/core/base/clock.ts'
import { silentLog } from '../../src/core/base/log.ts'
import { createEnvironmentKey } from '../../src/providers/keys/environment.ts'
import { bursar } from '../commands/bursar.ts'
import { testServerUrl } from '../engines.ts'
import { connectMcp } from '../mcp/client.ts'
import { newCustomer } from '../rails/selling/x402/scene.ts'
import { hasAnvil } from '../rails/selling/x402/world.ts'
import { newAgent } from './agent.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { type Mainnet, startMainnet } from './mainnet.ts'
import { buildNodeEnv, type OnMainnet, type Owner, openOnMainnet, treasury } from './on-mainnet.ts'
import { newGuest, requestJson } from './people.ts'

const sponsorKey = `0x${'1'.repeat(64)}` as const
const payTo = `0x${'2'.repeat(40)}` as const
const newPayee = () => privateKeyToAccount(generatePrivateKey()).address
/** Polling options: blocks come once a second, and movements count five blocks later. */
const SLOW = { timeout: 30_000, interval: 500 }

let base: Mainnet
const closing: (() => unknown)[] = []
beforeAll(async () => {
  if (testServerUrl === undefined || !hasAnvil()) return
  base = await startMainnet('base')
  await base.giveGas(privateKeyToAccount(sponsorKey).address)
}, 60_000)
afterAll(async () => {
  for (const close of closing.reverse()) await close()
  await base?.close()
}, 60_000)

const checksAnswer = z.object({
  ok: z.boolean(),
  chainId: z.number(),
  checks: z.array(z.object({ name: z.string(), status: z.string(), detail: z.string() })),
})

describe.skipIf(testServerUrl === undefined || !hasAnvil())('a gateway on Base', () => {
  const check = async (on = base) => {
    const { code, out } = await bursar(['chain', 'check', '--json'], buildNodeEnv(on))
    const { checks, ...rest } = checksAnswer.parse(JSON.parse(out))
    return { code, ...rest, faults: checks.filter(({ status }) => status !== 'ok') }
  }

  describe('whose contracts are checked', () => {
    const deploy = (on = base) =>
      bursar(['chain', 'deploy'], { ...buildNodeEnv(on), CHAIN_SPONSOR_KEY: sponsorKey })
    beforeAll(async () => {
      await deploy()
    })

    it('deploys its own where they are missing, once, at the address of every chain', async () => {
      const empty = await startMainnet('base')
      closing.push(() => empty.close())
      await empty.giveGas(privateKeyToAccount(sponsorKey).address)
      expect(await check(empty)).toMatchObject({
        code: 1,
        ok: false,
        chainId: 8453,
        faults: [
          { name: 'allowances', status: 'missing' },
          { name: 'walletSetup', status: 'missing' },
          { name: 'swapDesk', status: 'missing' },
          { name: 'bridgeDesk', status: 'missing' },
        ],
      })
      const first = await deploy(empty)
      expect(first).toMatchObject({ code: 0, err: '' })
      expect(first.out).toMatch(
        /^allowances 0x\w{40} 3936 bytes, deployed: https:\/\/basescan\.org\/tx\/0x\w{64}\nwalletSetup 0x\w{40} 2224 bytes/,
      )
      const second = await deploy(empty)
      expect(second.out).toBe(first.out.replaceAll(/deployed: \S+/g, 'was there already'))
      expect(await check(empty)).toEqual({ code: 0, ok: true, chain: undefined, chainId: 8453, faults: [] })
      const { out } = await bursar(['chain', 'check'], buildNodeEnv(empty))
      expect(out).toMatch(
        /^✓ USDC 0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913: 6 decimals, domain "USD Coin" version 2$/m,
      )
    }, 60_000)

    it('names code, decimals, symbols and domains that differ, and does not start on them', async () => {
      const slot =
        (BigInt(keccak256(toHex(BigInt(keccak256(stringToHex('bursar.sandbox.token'))) - 1n, { size: 32 }))) &
          ~0xffn) +
        1n
      const setDecimals = (decimals: number) =>
        base.request('anvil_setStorageAt', [
          base.usdc,
          numberToHex(slot, { size: 32 }),
          pad(toHex(decimals), { size: 32 }),
        ])
      const entryPoint = '0x0000000071727De22E5E9d8BAf0edAc6f37da032'
      const code = await base.client.getCode({ address: entryPoint })
      await setDecimals(18)
      await base.request('anvil_setCode', [entryPoint, '0x60006000fd'])
      expect((await check()).faults).toMatchObject([
        { name: 'entryPoint', status: 'different', detail: expect.stringContaining('code hash') },
        { name: 'USDC', status: 'different', detail: 'it has 18 decimals, not 6' },
      ])
      const connecting = connectRpcChain({
        name: 'base',
        url: base.url,
        clock: systemClock,
        log: silentLog,
        sponsor: createEnvironmentKey(sponsorKey),
      })
      await expect(connecting).rejects.toThrow(
        /^The node at CHAIN_RPC_URL_BASE cannot be used: entryPoint .*code hash.*; USDC .*18 decimals/,
      )
      await setDecimals(6)
      await base.request('anvil_setCode', [entryPoint, code])
      // The domain of Base Sepolia's token, which a signature for Base would not fit.
      const { code: stranger, faults } = await (async () => {
        const original = await base.client.getCode({ address: base.usdc })
        await base.request('anvil_setCode', [base.usdc, '0x600660005260206000f3'])
        const result = await check()
        await base.request('anvil_setCode', [base.usdc, original])
        return result
      })()
      expect(stranger).toBe(1)
      expect(faults).toMatchObject([
        { name: 'USDC', detail: expect.stringMatching(/symbol .*; its domain separator is 0x0+6, not 0x/) },
      ])
      expect((await check()).faults).toEqual([])
    }, 60_000)

    it('refuses a node of another chain', async () => {
      const other = await bursar(['chain', 'check'], {
        CHAIN: '',
        CHAINS: 'polygon',
        CHAIN_RPC_URL_POLYGON: base.url,
      })
      expect(other).toMatchObject({ code: 1, out: '' })
      expect(other.err).toContain('CHAIN_RPC_URL_POLYGON has chain id 8453; polygon has chain id 137')
    })
  })

  describe('whose money is real', () => {
    let scene: OnMainnet
    let ada: Owner
    /** Owner whose wallet holds 200 USDC, one for each scene. */
    let payer: Owner
    let principal: Owner
    let holder: Owner
    const origin = () => scene.production.gateway().origin
    beforeAll(async () => {
      scene = await openOnMainnet(base)
      closing.push(scene.close)
      ada = await scene.newOwner('ada@example.com')
      payer = await scene.newOwner('payer@example.com')
      principal = await scene.newOwner('principal@example.com')
      holder = await scene.newOwner('holder@example.com')
      const funded = [payer, principal, holder]
      for (const { safe } of funded) await base.pay(safe, 200_000_000n)
      for (const owner of funded)
        await vi.waitFor(async () => expect(await readRows(owner)).toContainEqual(usdc('200')), SLOW)
    }, 120_000)

    const readRows = async (owner = ada) => (await owner.send('GET', '/api/wallets')).body.balances
    const usdc = (amount: string, heldAmount = '0') =>
      expect.objectContaining({ token: 'USDC', chain: 'base', amount, held: heldAmount })
    const awaitSettled = async (owner: Owner, transferId: unknown) =>
      expect
        .poll(async () => (await owner.send('GET', `/api/wallets/transfers/${transferId}`)).body.state, SLOW)
        .toBe('confirmed')

    it('describes the tokens that Base has, and no others', async () => {
      expect(scene.production.gateway().output()).toContain('(production, chain base)')
      expect(await readRows()).toMatchObject([
        { token: 'USDC', chain: 'base' },
        { token: 'EURC', chain: 'base' },
      ])
      const { body } = await ada.send('GET', '/api/rails')
      expect(body.rails).toContainEqual(
        expect.objectContaining({
          id: 'wallet-transfer',
          chains: ['base'],
          tokens: ['USDC', 'EURC'],
          mode: 'live',
        }),
      )
      expect(
        await ada.send('POST', '/api/wallets/transfer/intent', {
          destination: newPayee(),
          amount: '1',
          token: 'PYUSD',
        }),
      ).toMatchObject({ status: 400, body: { code: 'invalid_request', issues: [{ path: 'token' }] } })
      expect(
        await ada.send('POST', '/api/wallets/transfer/intent', {
          destination: newPayee(),
          amount: '1',
          chain: 'base-sepolia',
        }),
      ).toMatchObject({ status: 400, body: { code: 'chain_not_supported', hint: 'Use "base".' } })
    })

    it('books a deposit once it has the confirmations of Base', async () => {
      const hash = await base.pay(ada.safe, 200_000_000n)
      await expect.poll(readRows, SLOW).toContainEqual(usdc('200'))
      const { blockNumber } = await base.client.getTransactionReceipt({ hash })
      expect((await base.client.getBlockNumber()) - blockNumber).toBeGreaterThanOrEqual(5n)
    }, 90_000)

    it('pays by the owner’s passkey', async () => {
      const input = { destination: newPayee(), amount: '10' }
      const { body } = await payer.send('POST', '/api/wallets/transfer/intent', input)
      const signed = { ...input, ...payer.sign(body) }
      // A slow node leaves the outcome unknown; the answer says to repeat the call.
      const headers = { 'Idempotency-Key': randomUUID() }
      const send = () => payer.send('POST', '/api/wallets/transfer', signed, headers)
      let sent = await send()
      for (let left = 10; sent.status === 503 && left > 0; left -= 1) {
        expect(sent.body).toMatchObject({
          code: expect.stringMatching(/^(settlement_pending|idempotency_in_progress)$/),
        })
        await sleep(3_000)
        sent = await send()
      }
      expect(sent).toMatchObject({ status: 200, body: { chain: 'base', authorization: 'passkey' } })
      await awaitSettled(payer, sent.body.transferId)
      expect(await base.readBalance(input.destination)).toBe(10_000_000n)
      expect(await readRows(payer)).toContainEqual(usdc('190'))
    }, 90_000)

    it('lets an agent pay over MCP, only within the allowance that its owner signed', async () => {
      const agent = await newAgent()
      const { body: ask } = await principal.send('POST', '/api/agents/keys/challenge', {})
      const { body: key } = await principal.send('POST', '/api/agents/keys', {
        name: 'Bot',
        publicKey: agent.jwk,
        proof: agent.signHash(`0x${Buffer.from(String(ask.challenge)).toString('hex')}`),
        scopes: ['wallets:read', 'wallets:transfer'],
        policy: {
          perTransaction: { max: '40' },
          dailyBudget: { max: '50' },
          categories: { allow: ['transfer'] },
        },
      })
      const agentId = String(key.agentId)
      const mcp = await connectMcp(origin(), { fetch: agent.fetchLike })
      closing.push(() => mcp.close())
      const destination = newPayee()
      const pay = (amount: string, idempotency_key = randomUUID() as string) =>
        mcp.callTool({ name: 'wallets_transfer', arguments: { destination, amount, idempotency_key } })
      // Until the chain has refused it: what is only unknown would be paid once the owner allows it.
      const refused = randomUUID()
      await expect
        .poll(async () => JSON.stringify(await pay('5', refused)), SLOW)
        .toContain('signature_rejected')
      const intent = await principal.send('POST', '/api/wallets/allowances/intent', {
        agentId,
        dailyMax: '30',
      })
      const signed = principal.sign(intent.body)
      await expect
        .poll(async () => (await principal.send('POST', '/api/wallets/allowances', signed)).status, SLOW)
        .toBe(200)
      const paid = await pay('7')
      expect(paid).toMatchObject({ structuredContent: { chain: 'base', token: 'USDC', amount: '7' } })
      await awaitSettled(
        principal,
        z.looseObject({ transferId: z.string() }).parse(paid.structuredContent).transferId,
      )
      expect(await base.readBalance(destination)).toBe(7_000_000n)
      // The policy allows it; the chain would not.
      expect(await pay('23.5')).toMatchObject({ isError: true })
    }, 120_000)

    it('sells FX quotes to stock clients of both generations of x402', async () => {
      const customer = privateKeyToAccount(generatePrivateKey())
      await base.pay(customer.address, 1_000_000n)
      await expect.poll(() => base.readBalance(customer.address), SLOW).toBe(1_000_000n)
      const client = new x402Client().register('eip155:*', new ExactEvmScheme(customer))
      const url = `${origin()}/api/x402/fx?from=USD&to=EUR&amount=100`
      for (const pay of [wrapFetchV1(fetch, customer), wrapFetchV2(fetch, client)]) {
        const before = await base.readBalance(payTo)
        const response = await pay(url)
        // A settlement takes longer than the client is made to wait: the answer then says where to poll.
        expect([200, 202, 503]).toContain(response.status)
        await expect.poll(() => base.readBalance(payTo), SLOW).toBe(before + 10_000n)
      }
    }, 120_000)

    it('pays card purchases from the same wallet, moves them to the treasury when they clear, and credits a refund', async () => {
      const intent = await holder.send('POST', '/api/wallets/allowances/intent', {
        agentId: 'cards',
        dailyMax: '50',
      })
      const allowance = holder.sign(intent.body)
      await expect
        .poll(async () => (await holder.send('POST', '/api/wallets/allowances', allowance)).status, SLOW)
        .toBe(200)
      const issued = await holder.send('POST', '/api/cards', {})
      expect(issued).toMatchObject({ status: 200 })
      const card = scene.vendors.lastToken()
      const token = randomUUID()
      const approved = await scene.tellLithic({
        event_type: 'card_authorization.approval_request',
        token,
        status: 'AUTHORIZATION',
        amount: 1_200,
        card: { token: card },
        merchant: { acceptor_id: 'SHOP', descriptor: 'Corner Shop', mcc: '5411', country: 'USA' },
        pos: {
          entry_mode: { pan: 'ECOMMERCE' },
          terminal: { partial_approval_capable: false, type: 'UNKNOWN' },
        },
      })
      expect(approved).toMatchObject({ result: 'APPROVED' })
      const before = await base.readBalance(treasury)
      const cleared = { token, card_token: card, event_type: 'card_transaction.updated' }
      const events = [
        { token: `${token}-a`, type: 'AUTHORIZATION', amount: 1_200, result: 'APPROVED' },
        { token: `${token}-c`, type: 'CLEARING', amount: 1_200, result: 'APPROVED' },
      ]
      await scene.tellLithic({ ...cleared, status: 'SETTLED', events })
      await expect.poll(() => base.readBalance(treasury), SLOW).toBe(before + 12_000_000n)
      await expect.poll(() => readRows(holder), SLOW).toContainEqual(usdc('188'))
      expect(await base.readBalance(holder.safe)).toBe(188_000_000n)

      // The merchant's money comes back by the card network, as dollars.
      const refund = { token: `${token}-r`, type: 'RETURN', amount: -500, result: 'APPROVED' }
      await scene.tellLithic({ ...cleared, status: 'SETTLED', events: [...events, refund] })
      // While the chain decides on the payment, its return waits.
      const transactions = async () =>
        (await holder.send('GET', `/api/cards/${issued.body.id}/transactions`)).body.transactions
      await expect.poll(transactions, SLOW).toMatchObject([{ refunded: '5' }])
      expect(await base.readBalance(holder.safe)).toBe(188_000_000n)
      expect(
        await bursar(['audit', 'verify'], {
          DATABASE_URL: scene.production.databaseUrl,
          DATA_KEY: 'd'.repeat(32),
        }),
      ).toMatchObject({
        code: 0,
      })
    }, 120_000)
  })
})

describe.skipIf(!hasAnvil())('a sandbox on Arbitrum Sepolia', () => {
  let gateway: Gateway
  beforeAll(async () => {
    gateway = await startGateway({ CHAIN: 'anvil', CHAINS: 'arbitrum-sepolia' })
  }, 60_000)
  afterAll(() => gateway?.stop())

  it('has every token, pays, and names itself', async () => {
    const guest = await newGuest(gateway.origin)
    const { balances } = (await guest.send('GET', '/api/wallets')).body
    expect(balances).toMatchObject(
      ['USDC', 'USDT', 'EURC', 'PYUSD'].map((token) => ({ token, chain: 'arbitrum-sepolia' })),
    )
    const transfer = {
      destination: newPayee(),
      amount: '1',
      token: 'EURC',
      chain: 'arbitrum-sepolia',
      signature: 'sandbox',
    }
    expect(await guest.send('POST', '/api/wallets/transfer', transfer)).toMatchObject({
      status: 200,
      body: { status: 'confirmed', chain: 'arbitrum-sepolia' },
    })
  })

  it('sells by version 2 of x402 alone, because version 1 does not know the chain', async () => {
    const { body } = await requestJson(gateway.origin, 'GET', '/sandbox/credentials')
    const { rpcUrl } = z.object({ chain: z.object({ rpcUrl: z.string() }) }).parse(body).chain
    const parts = { name: 'arbitrum-sepolia', url: rpcUrl, clock: systemClock, log: silentLog } as const
    const chain = await connectRpcChain(parts)
    const customer = await newCustomer(chain, 1_000_000n)
    const url = `${gateway.origin}/api/x402/fx?from=USD&to=EUR&amount=100`
    expect(await (await fetch(url)).json()).toMatchObject({ x402Version: 1, accepts: [] })
    expect((await customer.v2(url)).status).toBe(200)
    expect(await chain.readBalance('USDC', customer.address)).toBe(990_000n)
    await chain.close()
  })
})
