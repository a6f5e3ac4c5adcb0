/**
 * One gateway on two real chains: money moves on each, budgets count both, and nothing of one chain is taken for a thing
 * of the other.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { x402Client } from '@x402/core/client'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment as wrapFetchV2 } from '@x402/fetch'
import { createPublicClient, createWalletClient, defineChain, erc20Abi, http } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createSigner, wrapFetchWithPayment as wrapFetchV1 } from 'x402-fetch'
import { z } from 'zod'
import { type AnvilProcess, findAnvil, spawnAnvil } from '../../src/chain/node/anvil-process.ts'
import { signedPaymentTypes } from '../../src/core/base/signed-payment-types.ts'
import { chainFacts } from '../../src/core/money/chains.ts'
import type { Address, Hex } from '../../src/providers/chain/port.ts'
import { signWebhook } from '../../src/providers/standard-webhooks.ts'
import { createTestDatabase, longestEngines, testServerUrl } from '../engines.ts'
import { callMcp, connectMcp } from '../mcp/client.ts'
import { hasAnvil } from '../rails/selling/x402/world.ts'
import { type Agent, newAgent } from './agent.ts'
import { type ChainProxy, startChainProxy } from './chain-proxy.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { newGuest, type Person, requestJson, signInByEmail } from './people.ts'

const names = ['base-sepolia', 'arbitrum-sepolia'] as const
type Name = (typeof names)[number]

const TREASURY = '0xa0Ee7A142d267C1f36714E4a8F75612F20a79720'
const FX = '/api/x402/fx?from=USD&to=EUR&amount=100'
const hex = z.templateLiteral(['0x', z.string()])
const credentials = z.object({
  chain: z.object({ chainId: z.int() }),
  chains: z.array(z.looseObject({ name: z.string(), chainId: z.int(), rpcUrl: z.string() })),
  payer: z.object({ address: hex, privateKey: hex }),
  lithicWebhookSecret: z.string(),
})
const walletView = z.object({
  safeAddress: hex,
  modules: z.array(z.looseObject({ chain: z.string() })),
  balances: z.array(z.object({ token: z.string(), chain: z.string(), amount: z.string(), held: z.string() })),
})
const bought = z.looseObject({ payment: z.looseObject({ network: z.string(), transaction: hex }) })
const challenge = z.object({
  accepts: z.array(z.looseObject({ scheme: z.string(), network: z.string(), payTo: hex })),
})

const newAddress = () => privateKeyToAccount(generatePrivateKey()).address
const findChainId = (name: Name) => chainFacts(name).id
const findUsdcAddress = (name: Name) => chainFacts(name).tokens.USDC

describe.each(longestEngines)('two chains on $engine', ({ isPostgres }) => {
  describe.runIf(hasAnvil())('', () => {
    const nodes = new Map<Name, AnvilProcess>()
    const proxies = new Map<Name, ChainProxy>()
    let env: Record<string, string> = {}
    let dropDatabase = async () => {}
    let directory = ''
    let gateway: Gateway
    let guest: Person

    const buildUrl = (name: Name) => nodes.get(name)?.url ?? 'http://127.0.0.1:9'
    const startNode = async (name: Name) =>
      void nodes.set(name, await spawnAnvil(findAnvil(process.env.ANVIL_BIN), 0, 10_000, name))

    beforeAll(async () => {
      for (const name of names) {
        await startNode(name)
        proxies.set(name, await startChainProxy(() => buildUrl(name)))
      }
      directory = mkdtempSync(join(tmpdir(), 'bursar-two-chains-'))
      const database = isPostgres ? await createTestDatabase(testServerUrl ?? '') : null
      dropDatabase = async () => database?.drop()
      env = {
        CHAINS: names.join(','),
        CHAIN_RPC_URL_BASE_SEPOLIA: proxies.get('base-sepolia')?.url ?? '',
        CHAIN_RPC_URL_ARBITRUM_SEPOLIA: proxies.get('arbitrum-sepolia')?.url ?? '',
        RATE_MUTATIONS: '100000/60',
        RATE_GASLESS: '1000/60',
        RATE_FX: '1000/60',
        LOG_LEVEL: 'silent',
        ...(database === null ? { DATA_DIR: directory } : { DATABASE_URL: database.url }),
      }
      gateway = await startGateway(env)
    }, 120_000)
    afterAll(async () => {
      await gateway?.stop()
      for (const proxy of proxies.values()) await proxy.close()
      for (const node of nodes.values()) await node.stop()
      await dropDatabase()
      rmSync(directory, { recursive: true, force: true })
    }, 60_000)

    const createReader = (name: Name) => createPublicClient({ transport: http(buildUrl(name)) })
    const onChain = (name: Name, address: Address, token: Address = findUsdcAddress(name).address) =>
      createReader(name).readContract({
        address: token,
        abi: erc20Abi,
        functionName: 'balanceOf',
        args: [address],
      })
    const sandbox = async () =>
      credentials.parse((await requestJson(gateway.origin, 'GET', '/sandbox/credentials')).body)
    const readWallet = async (person: Person) =>
      walletView.parse((await person.send('GET', '/api/wallets')).body)
    const usdcIn = async (person: Person, name: Name) => {
      const { balances } = await readWallet(person)
      const row = balances.find(({ token, chain }) => token === 'USDC' && chain === name)
      return { amount: row?.amount, held: row?.held }
    }
    const fund = (address: string, amount: string, chain: Name) =>
      requestJson(gateway.origin, 'POST', '/sandbox/faucet', {
        body: { address, amount, token: 'USDC', chain },
      })
    const transfer = (
      person: Person,
      body: { destination: string; amount: string; chain?: string; intentId?: string; signature?: string },
      headers: Record<string, string> = {},
    ) =>
      person.send('POST', '/api/wallets/transfer', { token: 'USDC', signature: 'sandbox', ...body }, headers)

    /** Sends USDC of the sandbox's payer by a transaction of its own. */
    const payDirectly = async (name: Name, to: Address, units: bigint): Promise<Hex> => {
      const account = privateKeyToAccount((await sandbox()).payer.privateKey)
      const chain = defineChain({
        id: findChainId(name),
        name,
        nativeCurrency: { name: 'ETH', symbol: 'ETH', decimals: 18 },
        rpcUrls: { default: { http: [buildUrl(name)] } },
      })
      const client = createWalletClient({ account, chain, transport: http(buildUrl(name)) })
      const { address } = findUsdcAddress(name)
      return client.writeContract({ address, abi: erc20Abi, functionName: 'transfer', args: [to, units] })
    }
    /** A payer's signed EIP-3009 payment for one chain. */
    const authorizationFor = async (name: Name, to: Address, value: bigint) => {
      const payer = privateKeyToAccount((await sandbox()).payer.privateKey)
      const { address: verifyingContract, name: tokenName, version } = findUsdcAddress(name)
      const nonce: Hex = `0x${randomBytes(32).toString('hex')}`
      const signature = await payer.signTypedData({
        domain: { name: tokenName, version, chainId: findChainId(name), verifyingContract },
        types: signedPaymentTypes,
        primaryType: 'TransferWithAuthorization',
        message: { from: payer.address, to, value, validAfter: 0n, validBefore: 4_000_000_000n, nonce },
      })
      const text = { value: value.toString(), validAfter: '0', validBefore: '4000000000' }
      return { signature, authorization: { from: payer.address, to, ...text, nonce } }
    }
    const offersV2 = async (scheme = 'exact') => {
      const response = await fetch(`${gateway.origin}${FX}`)
      const header = response.headers.get('payment-required') ?? ''
      const { accepts } = challenge.parse(JSON.parse(Buffer.from(header, 'base64').toString()))
      return accepts.filter((offer) => offer.scheme === scheme)
    }
    /** A stock client of version 2 that knows one network only. */
    const buyerOn = async (name: Name, through: typeof fetch = fetch) => {
      const account = privateKeyToAccount((await sandbox()).payer.privateKey)
      const client = new x402Client().register(`eip155:${findChainId(name)}`, new ExactEvmScheme(account))
      return wrapFetchV2(through, client)
    }

    beforeEach(async () => {
      guest = await newGuest(gateway.origin)
      await fund((await readWallet(guest)).safeAddress, '100', 'arbitrum-sepolia')
    })

    it('has one wallet address on both chains, and a balance for each token and chain', async () => {
      const person = await newGuest(gateway.origin)
      const { safeAddress, balances } = await readWallet(person)
      expect(balances.map(({ chain, token }) => `${chain} ${token}`)).toEqual(
        names
          .flatMap((name) => ['USDC', 'USDT', 'EURC', 'PYUSD'].map((token) => `${name} ${token}`))
          .sort(
            (one, other) =>
              names.findIndex((name) => one.startsWith(name)) -
              names.findIndex((name) => other.startsWith(name)),
          ),
      )
      expect(await usdcIn(person, 'base-sepolia')).toEqual({ amount: '1000', held: '0' })
      expect(await usdcIn(person, 'arbitrum-sepolia')).toEqual({ amount: '0', held: '0' })
      expect(await fund(safeAddress, '100', 'arbitrum-sepolia')).toMatchObject({
        status: 200,
        body: { chain: 'arbitrum-sepolia' },
      })
      expect(await usdcIn(person, 'arbitrum-sepolia')).toEqual({ amount: '100', held: '0' })
      expect(await onChain('base-sepolia', safeAddress)).toBe(1_000_000_000n)
      expect(await onChain('arbitrum-sepolia', safeAddress)).toBe(100_000_000n)
      const { chains, chain } = await sandbox()
      expect(chains.map(({ name }) => name)).toEqual(names)
      expect(chain.chainId).toBe(84532)
    })

    it('pays on the chain that a transfer names, the first without a name, and spends only what is there', async () => {
      const { safeAddress } = await readWallet(guest)
      const destination = newAddress()
      expect(await transfer(guest, { destination, amount: '2' })).toMatchObject({
        status: 200,
        body: { status: 'confirmed', chain: 'base-sepolia' },
      })
      // In the sandbox a chain's own name means its test network.
      expect(await transfer(guest, { destination, amount: '3', chain: 'arbitrum' })).toMatchObject({
        status: 200,
        body: { status: 'confirmed', chain: 'arbitrum-sepolia' },
      })
      expect(await onChain('base-sepolia', destination)).toBe(2_000_000n)
      expect(await onChain('arbitrum-sepolia', destination)).toBe(3_000_000n)
      // The other chain has enough, which does not count, and is named.
      expect(await transfer(guest, { destination, amount: '500', chain: 'arbitrum-sepolia' })).toMatchObject({
        status: 422,
        body: {
          code: 'insufficient_funds',
          chain: 'arbitrum-sepolia',
          asset: 'USDC',
          available: '97',
          elsewhere: expect.arrayContaining([{ chain: 'base-sepolia', asset: 'USDC', available: '998' }]),
        },
      })
      expect(await transfer(guest, { destination, amount: '1', chain: 'polygon' })).toMatchObject({
        status: 400,
        body: { code: 'chain_not_supported', hint: 'Use "base-sepolia" or "arbitrum-sepolia".' },
      })
      expect(await usdcIn(guest, 'base-sepolia')).toEqual({ amount: '998', held: '0' })
      expect(await usdcIn(guest, 'arbitrum-sepolia')).toEqual({ amount: '97', held: '0' })
      expect(await onChain('base-sepolia', safeAddress)).toBe(998_000_000n)
      expect(await onChain('arbitrum-sepolia', safeAddress)).toBe(97_000_000n)
      const { modules } = await readWallet(guest)
      expect(new Set(modules.map(({ chain }) => chain))).toEqual(new Set(names))
    })

    it('credits a transfer between two of its wallets on the chain of the transfer', async () => {
      const other = await newGuest(gateway.origin)
      const { safeAddress } = await readWallet(other)
      const sent = await transfer(guest, { destination: safeAddress, amount: '4', chain: 'arbitrum-sepolia' })
      expect(sent.status).toBe(200)
      expect(await usdcIn(other, 'arbitrum-sepolia')).toEqual({ amount: '4', held: '0' })
      expect(await usdcIn(other, 'base-sepolia')).toEqual({ amount: '1000', held: '0' })
    })

    it('finds a deposit on each chain, and books it there only', async () => {
      const person = await newGuest(gateway.origin)
      const { safeAddress } = await readWallet(person)
      for (const [at, name] of names.entries())
        await payDirectly(name, safeAddress, BigInt(at + 1) * 1_000_000n)
      await expect
        .poll(() => usdcIn(person, 'base-sepolia'), { timeout: 20_000 })
        .toEqual({ amount: '1001', held: '0' })
      await expect
        .poll(() => usdcIn(person, 'arbitrum-sepolia'), { timeout: 20_000 })
        .toEqual({ amount: '2', held: '0' })
    })

    describe('for an agent', () => {
      let agent: Agent
      let client: Client
      let destination: Address
      const overRest = async (amount: string, chain: Name, by: Agent = agent) => {
        const response = await by.fetch({
          method: 'POST',
          url: `${gateway.origin}/api/wallets/transfer`,
          body: JSON.stringify({ destination, amount, chain }),
          idempotencyKey: randomBytes(8).toString('hex'),
        })
        return { status: response.status, body: z.looseObject({}).parse(await response.json()) }
      }
      const overMcp = (amount: string, chain: Name) =>
        callMcp(client, 'wallets_transfer', {
          destination,
          amount,
          chain,
          idempotency_key: randomBytes(8).toString('hex'),
        })
      const register = async (by: Agent, policy: object) =>
        expect(
          await guest.send('POST', '/api/agents/keys', {
            name: 'Two chains',
            publicKey: by.jwk,
            scopes: ['wallets:read', 'wallets:transfer'],
            policy: { dailyBudget: { max: '10' }, categories: { allow: ['transfer'] }, ...policy },
          }),
        ).toMatchObject({ status: 200 })

      beforeEach(async () => {
        destination = newAddress()
        agent = await newAgent()
        await register(agent, { perTransaction: { max: '8' } })
        client = await connectMcp(gateway.origin, { fetch: agent.fetchLike })
      })
      afterEach(() => client.close())

      it('has one budget for both chains, over REST and MCP', async () => {
        expect(await overRest('5', 'base-sepolia')).toMatchObject({ status: 200 })
        expect(await overMcp('4', 'arbitrum-sepolia')).toMatchObject({
          isError: false,
          body: { status: 'confirmed', chain: 'arbitrum-sepolia' },
        })
        expect(await onChain('base-sepolia', destination)).toBe(5_000_000n)
        expect(await onChain('arbitrum-sepolia', destination)).toBe(4_000_000n)
        const violations = [expect.objectContaining({ rule: 'daily_budget', remaining: '1' })]
        for (const name of names) {
          expect((await overRest('2', name)).body).toMatchObject({ code: 'policy_denied', violations })
          expect((await overMcp('2', name)).body).toMatchObject({ code: 'policy_denied', violations })
        }
        expect(await overRest('1', 'arbitrum-sepolia')).toMatchObject({ status: 200 })
        expect((await overRest('0.01', 'base-sepolia')).status).toBe(403)
      })

      it('pays only on the chains that its policy lists', async () => {
        const limited = await newAgent()
        await register(limited, { perTransaction: { max: '8' }, chains: ['arbitrum-sepolia'] })
        expect((await overRest('1', 'base-sepolia', limited)).body).toMatchObject({
          code: 'policy_denied',
          violations: [expect.objectContaining({ rule: 'chain' })],
        })
        expect(await overRest('1', 'arbitrum-sepolia', limited)).toMatchObject({ status: 200 })
      })
    })

    it('refuses on one chain what was signed for the other', async () => {
      const to = newAddress()
      const { signature, authorization } = await authorizationFor('base-sepolia', to, 2_000_000n)
      const relay = (chain: Name) =>
        guest.send('POST', '/api/transfers/gasless', {
          token: 'USDC',
          chain,
          authorization: { ...authorization, signature },
        })
      expect(await relay('arbitrum-sepolia')).toMatchObject({
        status: 422,
        body: { code: 'authorization_rejected', reason: 'domain' },
      })
      expect(await relay('base-sepolia')).toMatchObject({ status: 200, body: { chain: 'base-sepolia' } })
      expect(await onChain('base-sepolia', to)).toBe(2_000_000n)
      expect(await onChain('arbitrum-sepolia', to)).toBe(0n)
    })

    it('takes an owner’s signature of an operation on its own chain only, and hands the wallet over on each', async () => {
      const owner = await signInByEmail(gateway.origin, `owner-${randomBytes(6).toString('hex')}@example.com`)
      const key = privateKeyToAccount(generatePrivateKey())
      const { safeAddress } = await readWallet(owner)
      for (const name of names) await fund(safeAddress, '50', name)
      const { address } = key
      const { body } = await owner.send('POST', '/api/wallets/signers', { address })
      const proof = await key.signTypedData(body.typedData as never)
      await owner.send('POST', '/api/wallets/signers', { address, signature: proof })
      const destination = newAddress()
      const intents = await Promise.all(
        names.map(async (chain) => {
          const asked = await owner.send('POST', '/api/wallets/transfer/intent', {
            destination,
            amount: '7',
            chain,
          })
          const { domain } = z
            .object({ domain: z.looseObject({ chainId: z.number() }) })
            .parse(asked.body.typedData)
          const signature = await key.signTypedData(asked.body.typedData as never)
          return { chain, intentId: String(asked.body.intentId), chainId: domain.chainId, signature }
        }),
      )
      expect(intents.map(({ chainId }) => chainId)).toEqual([84532, 421614])
      for (const { chain, intentId } of intents)
        for (const { chain: other, signature } of intents.filter((one) => one.chain !== chain)) {
          const stolen = [
            { destination, amount: '7', chain, intentId, signature },
            { destination, amount: '7', chain, signature },
            { destination, amount: '7', chain: other, intentId, signature },
          ]
          for (const request of stolen)
            expect(await transfer(owner, request)).toMatchObject({
              status: 403,
              body: { code: 'signature_rejected' },
            })
        }
      for (const { chain, intentId, signature } of intents) {
        expect(await transfer(owner, { destination, amount: '7', chain, intentId, signature })).toMatchObject(
          { status: 200, body: { status: 'confirmed', authorization: 'eoa', chain } },
        )
        expect(await onChain(chain, destination)).toBe(7_000_000n)
      }
    })

    it('collects a debt from the chain that has money', async () => {
      const owner = await signInByEmail(
        gateway.origin,
        `debtor-${randomBytes(6).toString('hex')}@example.com`,
      )
      const { body: card } = await owner.send('POST', '/api/cards', {})
      const token = randomUUID()
      const body = JSON.stringify({
        event_type: 'card_transaction.updated',
        ...{ token, card_token: card.id, status: 'SETTLED' },
        events: [{ token: `${token}-c`, type: 'CLEARING', amount: 3_000, result: 'APPROVED' }],
      })
      const secret = (await sandbox()).lithicWebhookSecret
      const headers = {
        'content-type': 'application/json',
        ...signWebhook({ id: token, body, at: new Date() }, secret),
      }
      await fetch(`${gateway.origin}/api/webhooks/lithic`, { method: 'POST', headers, body })
      const readOwed = async () => (await owner.send('GET', '/api/cards')).body.owed
      expect(await readOwed()).toEqual([{ asset: 'USD', amount: '30' }])
      const before = await onChain('arbitrum-sepolia', TREASURY)
      await fund((await readWallet(owner)).safeAddress, '50', 'arbitrum-sepolia')
      await expect
        .poll(async () => (await onChain('arbitrum-sepolia', TREASURY)) - before, { timeout: 20_000 })
        .toBe(30_000_000n)
      await expect.poll(readOwed, { timeout: 10_000 }).toBeUndefined()
      // Nothing is owed from the moment the money is held for it, and it is held until the gateway has seen the block.
      await expect
        .poll(() => usdcIn(owner, 'arbitrum-sepolia'), { timeout: 10_000 })
        .toEqual({ amount: '20', held: '0' })
    })

    it('sets an agent’s allowance on the chain that the owner signed for', async () => {
      const owner = await signInByEmail(gateway.origin, `owner-${randomBytes(6).toString('hex')}@example.com`)
      const key = privateKeyToAccount(generatePrivateKey())
      const { address } = key
      const { body } = await owner.send('POST', '/api/wallets/signers', { address })
      const proof = await key.signTypedData(body.typedData as never)
      await owner.send('POST', '/api/wallets/signers', { address, signature: proof })
      const agent = await newAgent()
      const registered = await owner.send('POST', '/api/agents/keys', {
        name: 'Two chains',
        publicKey: agent.jwk,
        scopes: ['wallets:transfer'],
        policy: {
          perTransaction: { max: '8' },
          dailyBudget: { max: '10' },
          categories: { allow: ['transfer'] },
        },
      })
      const keyId = z.string().parse(registered.body.agentId)
      const asked = await owner.send('POST', '/api/wallets/allowances/intent', {
        agentId: keyId,
        dailyMax: '6',
        chain: 'arbitrum-sepolia',
      })
      const signature = await key.signTypedData(asked.body.typedData as never)
      const { intentId } = asked.body
      expect(await owner.send('POST', '/api/wallets/allowances', { intentId, signature })).toMatchObject({
        status: 200,
        body: { dailyMax: '6', isOwn: true },
      })
      const listAllowances = async (chain: Name) => {
        const answer = await owner.send('GET', `/api/wallets/allowances?chain=${chain}`)
        const { allowances } = z
          .object({ allowances: z.array(z.looseObject({ agentId: z.string() })) })
          .parse(answer.body)
        return allowances.find(({ agentId }) => agentId === keyId)
      }
      expect(await listAllowances('arbitrum-sepolia')).toMatchObject({ dailyMax: '6', isOwn: true })
      expect(await listAllowances('base-sepolia')).toMatchObject({ isOwn: false })
      expect(
        await owner.send('POST', '/api/wallets/allowances/intent', {
          agentId: 'cards',
          dailyMax: '6',
          chain: 'arbitrum-sepolia',
        }),
      ).toMatchObject({ status: 200, body: { typedData: { domain: { chainId: 421_614 } } } })
    })

    it('offers a quote on both chains, and settles it on the one that was paid', async () => {
      const offers = await offersV2()
      expect(offers.map(({ network }) => network)).toEqual(['eip155:84532', 'eip155:421614'])
      // By what is used too, where the chain has the contracts.
      expect((await offersV2('upto')).map(({ network }) => network)).toContain('eip155:84532')
      const first = await fetch(`${gateway.origin}${FX}`)
      expect(challenge.parse(await first.json()).accepts.map(({ network }) => network)).toEqual([
        'base-sepolia',
      ])
      const payTo = offers[0]?.payTo ?? '0x'
      const { payer } = await sandbox()
      for (const name of names) {
        const before = await Promise.all(names.map((one) => onChain(one, payTo)))
        const answer = await (await buyerOn(name))(`${gateway.origin}${FX}`)
        expect(answer.status).toBe(200)
        const { payment } = bought.parse(await answer.json())
        expect(payment.network).toBe(`eip155:${findChainId(name)}`)
        const receipt = await createReader(name).getTransactionReceipt({ hash: payment.transaction })
        expect(receipt.status).toBe('success')
        const after = await Promise.all(names.map((one) => onChain(one, payTo)))
        expect(after.map((units, at) => units - (before[at] ?? 0n))).toEqual(
          names.map((one) => (one === name ? 10_000n : 0n)),
        )
      }
      const fetchV1 = wrapFetchV1(fetch, await createSigner('base-sepolia', payer.privateKey))
      const paid = await fetchV1(`${gateway.origin}${FX}`)
      expect(bought.parse(await paid.json()).payment.network).toBe('base-sepolia')
    })

    it('refuses a payment that was signed for the other chain, or for none of its chains', async () => {
      const [offer, second] = await offersV2()
      const { signature, authorization } = await authorizationFor(
        'base-sepolia',
        offer?.payTo ?? '0x',
        10_000n,
      )
      const pay = (accepted: unknown) =>
        fetch(`${gateway.origin}${FX}`, {
          headers: {
            'payment-signature': Buffer.from(
              JSON.stringify({ x402Version: 2, accepted, payload: { signature, authorization } }),
            ).toString('base64'),
          },
        })
      const readReason = async (response: Response) => {
        const header = Buffer.from(response.headers.get('payment-required') ?? '', 'base64').toString()
        return [response.status, z.looseObject({ error: z.string() }).parse(JSON.parse(header)).error]
      }
      expect(await readReason(await pay(second))).toEqual([402, 'invalid_exact_evm_signature'])
      expect(await readReason(await pay({ ...second, asset: offer?.asset }))).toEqual([
        402,
        'payment_does_not_match_the_challenge',
      ])
      expect(await readReason(await pay({ ...offer, network: 'eip155:8453' }))).toEqual([
        402,
        'invalid_network',
      ])
      expect((await pay(offer)).status).toBe(200)
      // It is spent, and still no payment on the other chain.
      expect((await pay(second)).status).toBe(402)
    })

    it('can pay a seller on either chain, where the seller asks for a price that is known', async () => {
      const { body } = await guest.send('POST', '/api/purchases/quote', { url: `${gateway.origin}${FX}` })
      const { offers } = z
        .object({
          offers: z.array(z.looseObject({ network: z.string(), scheme: z.string(), payable: z.boolean() })),
        })
        .parse(body)
      const exact = offers.filter(({ scheme }) => scheme === 'exact')
      expect(exact.map(({ network }) => network)).toEqual(
        expect.arrayContaining(['eip155:84532', 'eip155:421614']),
      )
      for (const { network, payable } of exact) expect([network, payable]).toEqual([network, true])
    })

    it('finishes a transfer on the second chain once, after the gateway was killed behind its broadcast', async () => {
      const destination = newAddress()
      const before = await usdcIn(guest, 'arbitrum-sepolia')
      const headers = { 'idempotency-key': randomBytes(8).toString('hex') }
      const request = { destination, amount: '6', chain: 'arbitrum-sepolia' }
      const { process: victim } = gateway
      proxies.get('arbitrum-sepolia')?.cut('after broadcast', 1, async () => void victim.kill('SIGKILL'))
      const gone = once(victim, 'exit')
      expect(await transfer(guest, request, headers).catch(() => 'cut')).toBe('cut')
      await gone
      const port = new URL(gateway.origin).port
      gateway = await startGateway({ ...env, PORT: port })
      const again = async () => (await transfer(guest, request, headers)).body
      await expect
        .poll(again, { timeout: 30_000 })
        .toMatchObject({ status: 'confirmed', chain: 'arbitrum-sepolia', amount: '6' })
      await expect
        .poll(() => usdcIn(guest, 'arbitrum-sepolia'), { timeout: 30_000 })
        .toEqual({ amount: String(Number(before.amount) - 6), held: '0' })
      expect(await onChain('arbitrum-sepolia', destination)).toBe(6_000_000n)
      expect(await onChain('base-sepolia', destination)).toBe(0n)
    }, 90_000)

    it('works on one chain while the node of the other is dead, and on both when it is back', async () => {
      const destination = newAddress()
      const [, dead] = names
      await nodes.get(dead)?.stop()
      const here = () => transfer(guest, { destination, amount: '1' })
      const there = () => transfer(guest, { destination, amount: '1', chain: dead })
      const refused = await there()
      expect(refused).toMatchObject({ status: 503 })
      expect(['provider_unavailable', 'settlement_pending']).toContain(refused.body.code)
      for (let at = 0; at < 3; at += 1) {
        const startedAt = performance.now()
        expect(await here()).toMatchObject({ status: 200, body: { status: 'confirmed' } })
        expect(performance.now() - startedAt).toBeLessThan(3_000)
      }
      const { safeAddress, modules } = await readWallet(guest)
      expect(new Set(modules.map(({ chain }) => chain))).toEqual(new Set(['base-sepolia']))
      await payDirectly('base-sepolia', safeAddress, 1_000_000n)
      const { amount } = await usdcIn(guest, 'base-sepolia')
      await expect
        .poll(() => usdcIn(guest, 'base-sepolia'), { timeout: 10_000 })
        .toMatchObject({ amount: String(Number(amount) + 1) })
      expect((await (await buyerOn('base-sepolia'))(`${gateway.origin}${FX}`)).status).toBe(200)
      expect((await (await buyerOn(dead))(`${gateway.origin}${FX}`)).status).toBe(503)
      expect(await requestJson(gateway.origin, 'GET', '/readyz')).toMatchObject({
        status: 200,
        body: { checks: { chain: 'ok', 'chain_base-sepolia': 'ok', [`chain_${dead}`]: 'unavailable' } },
      })
      const metrics = await (await fetch(`${gateway.origin}/metrics`)).text()
      expect(metrics).toContain('bursar_up{part="chain"} 1')
      expect(metrics).toContain(`bursar_up{part="chain_${dead}"} 0`)
      await startNode(dead)
      await expect.poll(async () => (await there()).status, { timeout: 40_000, interval: 1_000 }).toBe(200)
      await expect.poll(() => usdcIn(guest, dead), { timeout: 40_000 }).toMatchObject({ held: '0' })
      const booked = await usdcIn(guest, dead)
      expect(await onChain(dead, safeAddress)).toBe(BigInt(Math.round(Number(booked.amount) * 1_000_000)))
    }, 150_000)
  })
})
