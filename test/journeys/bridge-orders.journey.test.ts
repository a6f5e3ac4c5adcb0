/**
 * USDC from one real chain to another, over HTTP on both engines: what was burned is minted once, the books are what both chains
 * show at every step, and an attester that lies, is late or never answers costs nobody anything.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import {
  concat,
  createPublicClient,
  createWalletClient,
  decodeEventLog,
  defineChain,
  encodeFunctionData,
  erc20Abi,
  http,
  keccak256,
  numberToHex,
  pad,
  parseAbi,
  parseEther,
  slice,
  stringToHex,
} from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type AnvilProcess, findAnvil, spawnAnvil } from '../../src/chain/node/anvil-process.ts'
import { multicallAddress, ownContracts } from '../../src/chain/rpc/networks.ts'
import { chainFacts } from '../../src/core/money/chains.ts'
import {
  cctpAbi,
  cctpOn,
  fillInMessage,
  finality,
  messageSentEvent,
  sandboxMessengerAddress,
} from '../../src/providers/cctp.ts'
import type { Address, Hex } from '../../src/providers/chain/port.ts'
import { createTestDatabase, longestEngines, testServerUrl } from '../engines.ts'
import { hasAnvil } from '../rails/selling/x402/world.ts'
import { type ChainProxy, type Step, startChainProxy } from './chain-proxy.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { openOwner, readAddress } from './keyed-owners.ts'
import { newGuest, newMailbox, type Person, requestJson } from './people.ts'

const names = ['base-sepolia', 'arbitrum-sepolia'] as const
type Name = (typeof names)[number]
type Json = Record<string, unknown>

const text = z.string()
const walletView = z.object({
  balances: z.array(z.looseObject({ token: text, chain: text, amount: text, held: text })),
})
const minterAbi = parseAbi([
  'function mint(address to, uint256 value) returns (bool)',
  'function tryAggregate(bool requireSuccess, (address target, bytes callData)[] calls)',
])
const ATTESTER = privateKeyToAccount(keccak256(stringToHex('bursar sandbox attester')))
const findUsdc = (name: Name): Address => chainFacts(name).tokens.USDC.address
const toUnits = (amount: string) => BigInt(Math.round(Number(amount) * 1e6))

describe.each(longestEngines)('bridges on $engine', ({ isPostgres }) => {
  describe.runIf(hasAnvil())('', () => {
    const nodes = new Map<Name, AnvilProcess>()
    const proxies = new Map<Name, ChainProxy>()
    let env: Record<string, string> = {}
    let dropDatabase = async () => {}
    let directory = ''
    let gateway: Gateway
    let databaseUrl: string | null = null
    let owner: Person
    let key = ''
    let address: Address = '0x'

    const buildUrl = (name: Name) => nodes.get(name)?.url ?? 'http://127.0.0.1:9'
    beforeAll(async () => {
      for (const name of names) {
        nodes.set(name, await spawnAnvil(findAnvil(process.env.ANVIL_BIN), 0, 10_000, name))
        proxies.set(name, await startChainProxy(() => buildUrl(name)))
      }
      directory = mkdtempSync(join(tmpdir(), 'bursar-bridge-'))
      const database = isPostgres ? await createTestDatabase(testServerUrl ?? '') : null
      dropDatabase = async () => database?.drop()
      databaseUrl = database?.url ?? null
      env = {
        CHAINS: names.join(','),
        CHAIN_RPC_URL_BASE_SEPOLIA: proxies.get('base-sepolia')?.url ?? '',
        CHAIN_RPC_URL_ARBITRUM_SEPOLIA: proxies.get('arbitrum-sepolia')?.url ?? '',
        RATE_MUTATIONS: '100000/60',
        ...(database === null ? { DATA_DIR: directory } : { DATABASE_URL: database.url }),
      }
      gateway = await startGateway(env)
      owner = await newGuest(gateway.origin)
      const { body } = await owner.send('POST', '/api/developer/keys', {
        name: 'Mover',
        scopes: ['swaps:quote', 'swaps:execute', 'wallets:read'],
        policy: {
          perTransaction: { max: '200' },
          dailyBudget: { max: '900' },
          categories: { allow: ['swap'] },
          approval: { above: '150' },
        },
      })
      key = String(body.key)
      address = await readAddress(owner)
    }, 120_000)
    afterAll(async () => {
      await gateway?.stop()
      for (const proxy of proxies.values()) await proxy.close()
      for (const node of nodes.values()) await node.stop()
      await dropDatabase()
      rmSync(directory, { recursive: true, force: true })
    }, 60_000)
    beforeEach(() => setMode('normal'))

    const createReader = (name: Name) => createPublicClient({ transport: http(buildUrl(name)) })
    const rpc = async (name: Name, method: string, params: unknown[]) => {
      const response = await fetch(buildUrl(name), {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      })
      expect(await response.json()).not.toHaveProperty('error')
    }
    const send = (method: string, path: string, body?: object, headers: Record<string, string> = {}) =>
      requestJson(gateway.origin, method, path, {
        ...(body === undefined ? {} : { body }),
        headers: { authorization: `Bearer ${key}`, ...headers },
      })
    const setMode = async (mode: string) => {
      const { status } = await requestJson(gateway.origin, 'POST', '/sandbox/bridge', { body: { mode } })
      expect(status).toBe(200)
    }
    const readChain = (name: Name, holder: Address = address) =>
      createReader(name).readContract({
        address: findUsdc(name),
        abi: erc20Abi,
        functionName: 'balanceOf',
        args: [holder],
      })
    const readBooked = async (name: Name, person = owner) => {
      // A gateway that was started anew has another origin; the key’s calls follow it.
      const answer =
        person === owner ? await send('GET', '/api/wallets') : await person.send('GET', '/api/wallets')
      const { balances } = walletView.parse(answer.body)
      const row = balances.find(({ token, chain }) => token === 'USDC' && chain === name)
      return toUnits(row?.amount ?? '0') + toUnits(row?.held ?? '0')
    }
    const expectBooksEqualChains = async (person = owner, holder = address) => {
      for (const name of names) {
        const booked = await readBooked(name, person)
        expect({ name, units: booked }).toEqual({ name, units: await readChain(name, holder) })
        const desk = ownContracts.bridgeDesk.address
        for (const spender of [sandboxMessengerAddress, desk])
          for (const from of [holder, desk])
            expect(
              await createReader(name).readContract({
                address: findUsdc(name),
                abi: erc20Abi,
                functionName: 'allowance',
                args: [from, spender],
              }),
            ).toBe(0n)
        expect(await readChain(name, desk)).toBe(0n)
      }
    }
    const quote = async (amountIn: string, route?: string) => {
      const { status, body } = await send('POST', '/api/swaps', {
        ...{ fromToken: 'USDC', toToken: 'USDC', fromChain: 'base-sepolia', toChain: 'arbitrum-sepolia' },
        amountIn,
        ...(route === undefined ? {} : { route }),
      })
      expect({ status, body }).toMatchObject({ status: 200, body: { executable: true } })
      return body
    }
    const legs = (amount: string) => ({
      sell: { chain: 'base-sepolia', token: 'USDC', amount },
      buy: { chain: 'arbitrum-sepolia', token: 'USDC' },
    })
    const execute = (body: object, idempotencyKey: string = crypto.randomUUID()) =>
      send('POST', '/api/swaps/orders', body, { 'idempotency-key': idempotencyKey })
    const readSwap = async (id: unknown): Promise<Json> => (await send('GET', `/api/swaps/orders/${id}`)).body
    const awaitStatus = (id: unknown, status: string) =>
      expect.poll(async () => (await readSwap(id)).status, { timeout: 30_000, interval: 200 }).toBe(status)
    /** Starts a swap that stays on its way. */
    const burn = async (amount: string, mode = 'lost') => {
      await setMode(mode)
      const { body } = await execute(legs(amount))
      await awaitStatus(body.swapId, 'bridging')
      return readSwap(body.swapId)
    }
    const allowMinting = (token: Address, minter: Address) => {
      const name = BigInt(keccak256(stringToHex('bursar.sandbox.token'))) - 1n
      const minters = numberToHex(BigInt(keccak256(numberToHex(name, { size: 32 }))) & ~0xffn, { size: 32 })
      const slot = keccak256(concat([pad(minter, { size: 32 }), minters]))
      return rpc('arbitrum-sepolia', 'anvil_setStorageAt', [token, slot, numberToHex(1n, { size: 32 })])
    }
    const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

    /** The message that a swap's burn sent. */
    const readMessage = async (swap: Json): Promise<Hex> => {
      const { transactions } = z
        .looseObject({ transactions: z.array(z.looseObject({ hash: text })) })
        .parse(swap)
      const hash: Hex = `0x${String(transactions[0]?.hash).slice(2)}`
      const { logs } = await createReader('base-sepolia').getTransactionReceipt({ hash })
      const { transmitter } = cctpOn('base-sepolia')
      const log = logs.find((one) => one.address.toLowerCase() === transmitter.toLowerCase())
      return decodeEventLog({ abi: [messageSentEvent], data: log?.data ?? '0x', topics: log?.topics ?? [] })
        .args.message
    }
    /** Somebody with gas on the destination. */
    const newStranger = async () => {
      const stranger = privateKeyToAccount(generatePrivateKey())
      await rpc('arbitrum-sepolia', 'anvil_setBalance', [
        stranger.address,
        `0x${parseEther('1').toString(16)}`,
      ])
      const { id } = chainFacts('arbitrum-sepolia')
      return createWalletClient({
        account: stranger,
        chain: defineChain({
          id,
          name: 'local',
          nativeCurrency: { name: 'ETH', symbol: 'ETH', decimals: 18 },
          rpcUrls: { default: { http: [buildUrl('arbitrum-sepolia')] } },
        }),
        transport: http(buildUrl('arbitrum-sepolia')),
      })
    }

    it('quotes a fast and a standard way, and mints what was burned', async () => {
      const before = { base: await readChain('base-sepolia'), arbitrum: await readChain('arbitrum-sepolia') }
      const standard = await quote('100')
      expect(standard).toMatchObject({ tool: 'cctp-standard', amountOut: '100', toChain: 'arbitrum-sepolia' })
      const idempotencyKey = crypto.randomUUID()
      const { status, body } = await execute({ quoteId: standard.id }, idempotencyKey)
      expect({ status, body }).toMatchObject({
        status: 200,
        body: {
          status: 'bridging',
          sent: '100',
          received: null,
          minReceived: '100',
          route: 'cctp-standard',
          waitingFor: 'attestation',
          sell: { chain: 'base-sepolia', token: 'USDC' },
          buy: { chain: 'arbitrum-sepolia', token: 'USDC' },
        },
      })
      expect(await readChain('base-sepolia')).toBe(before.base - 100_000_000n)
      await expectBooksEqualChains()
      await awaitStatus(body.swapId, 'confirmed')
      const ended = await readSwap(body.swapId)
      expect(ended).toMatchObject({ received: '100', waitingFor: null, failure: null })
      expect(ended.transactions).toMatchObject([{ chain: 'base-sepolia' }, { chain: 'arbitrum-sepolia' }])
      expect(await readChain('arbitrum-sepolia')).toBe(before.arbitrum + 100_000_000n)
      await expectBooksEqualChains()
      expect((await execute({ quoteId: standard.id }, idempotencyKey)).body).toMatchObject({
        swapId: body.swapId,
      })

      const fast = await quote('50', 'cctp-fast')
      expect(fast).toMatchObject({ amountOut: '49.995', amountOutMin: '49.994' })
      const { body: quick } = await execute({ quoteId: fast.id })
      await awaitStatus(quick.swapId, 'confirmed')
      expect(await readSwap(quick.swapId)).toMatchObject({ sent: '50', received: '49.995', fee: '0.005' })
      expect(await readChain('arbitrum-sepolia')).toBe(before.arbitrum + 149_995_000n)
      await expectBooksEqualChains()
    }, 60_000)

    it('has recourse while it is on its way, which ends when it arrives, and opens by itself after an hour', async () => {
      const recourse = (swapId: unknown) =>
        send('POST', '/api/recourse', { object: { kind: 'swap', id: swapId }, reason: 'not_delivered' })
      const swap = await burn('4')
      const { body: opened } = await recourse(swap.swapId)
      expect(opened).toMatchObject({
        ...{ status: 'open', route: 'bridge_claim', claimed: '4', recovered: '0', asset: 'USDC' },
        steps: [{ action: 'bridge_claim', outcome: 'waiting', evidence: { awaits: 'attestation' } }],
      })
      expect((await recourse(swap.swapId)).body).toMatchObject({ recourseId: opened.recourseId })
      const forgotten = await burn('3')
      expect((await send('GET', '/api/recourse')).body.recourse).toHaveLength(1)
      if (databaseUrl !== null) {
        await movePast(databaseUrl, String(forgotten.swapId), -61)
        await expect
          .poll(async () => (await send('GET', '/api/recourse')).body.recourse, { timeout: 40_000 })
          .toMatchObject([
            { object: { kind: 'swap', id: forgotten.swapId }, status: 'open', claimed: '3' },
            { object: { kind: 'swap', id: swap.swapId } },
          ])
        await movePast(databaseUrl, String(forgotten.swapId), 61)
      }
      await expectBooksEqualChains()
      await setMode('normal')
      for (const { swapId } of [swap, forgotten]) await awaitStatus(swapId, 'confirmed')
      await expect
        .poll(async () => (await recourse(swap.swapId)).body, { timeout: 40_000 })
        .toMatchObject({
          ...{ status: 'recovered', delivered: true, recovered: '0' },
          steps: expect.arrayContaining([
            expect.objectContaining({ outcome: 'done', evidence: { transaction: expect.any(String) } }),
          ]),
        })
      const { body: made } = await execute(legs('1'))
      await awaitStatus(made.swapId, 'confirmed')
      expect((await recourse(made.swapId)).body).toMatchObject({ status: 'impossible', route: 'none' })
      await expectBooksEqualChains()
    }, 120_000)

    it('counts it against the budget, refuses less than was asked for, and asks the owner above the threshold', async () => {
      expect((await execute({ ...legs('10'), minReceived: '10.01' })).body).toMatchObject({
        code: 'swap_rejected',
        reason: 'below_minimum',
      })
      expect((await execute(legs('201'))).body).toMatchObject({ code: 'policy_denied' })
      const { body } = await execute(legs('160'))
      expect(body).toMatchObject({ code: 'approval_required' })
      const approved = await owner.send('POST', `/api/approvals/${body.approvalId}`, { decision: 'approve' })
      expect(approved.body).toMatchObject({ status: 'approved' })
      await expect
        .poll(async () => (await send('GET', '/api/swaps/orders?limit=1')).body.orders, { timeout: 30_000 })
        .toMatchObject([{ status: 'confirmed', sent: '160', received: '160' }])
      await expectBooksEqualChains()
    }, 60_000)

    it.each(['other-amount', 'other-receiver', 'replayed', 'lost'])(
      'mints nothing while the attester is %s, and everything once it is honest',
      async (mode) => {
        const first = await execute(legs('7'))
        await awaitStatus(first.body.swapId, 'confirmed')
        const before = await readChain('arbitrum-sepolia')
        const swap = await burn('7', mode)
        await sleep(6_000)
        expect(await readSwap(swap.swapId)).toMatchObject({ status: 'bridging', waitingFor: 'attestation' })
        expect(await readChain('arbitrum-sepolia')).toBe(before)
        await expectBooksEqualChains()
        await setMode('normal')
        await awaitStatus(swap.swapId, 'confirmed')
        expect(await readChain('arbitrum-sepolia')).toBe(before + 7_000_000n)
        await expectBooksEqualChains()
      },
      60_000,
    )

    it('waits for an attestation that is late', async () => {
      const before = await readChain('arbitrum-sepolia')
      const swap = await burn('3', 'late')
      await awaitStatus(swap.swapId, 'confirmed')
      expect(await readChain('arbitrum-sepolia')).toBe(before + 3_000_000n)
      await expectBooksEqualChains()
    }, 60_000)

    it('books a mint that somebody else has made, as the swap’s and once', async () => {
      const before = await readChain('arbitrum-sepolia')
      const swap = await burn('4')
      const sent = await readMessage(swap)
      const nonce: Hex = `0x${randomBytes(32).toString('hex')}`
      const message = fillInMessage(sent, {
        ...{ nonce, finality: finality.standard, feeExecuted: 0n, expirationBlock: 0n },
      })
      const attestation = await ATTESTER.sign({ hash: keccak256(message) })
      const wallet = await newStranger()
      const deliver = () =>
        wallet.writeContract({
          address: cctpOn('arbitrum-sepolia').transmitter,
          abi: cctpAbi,
          functionName: 'receiveMessage',
          args: [message, attestation],
        })
      await deliver()
      await expect(deliver()).rejects.toThrow('Nonce already used')
      // Movements are booked once they lie some blocks deep.
      await rpc('arbitrum-sepolia', 'anvil_mine', ['0x14'])
      await awaitStatus(swap.swapId, 'confirmed')
      await setMode('normal')
      await sleep(3_000)
      expect(await readChain('arbitrum-sepolia')).toBe(before + 4_000_000n)
      await expectBooksEqualChains()
    }, 60_000)

    it.each(['the message', 'a message that only looks like it'])(
      'takes what a stranger mints right before %s for a deposit, and loses nothing',
      async (kind) => {
        const before = await readChain('arbitrum-sepolia')
        const swap = await burn('4')
        const sent = await readMessage(swap)
        const nonce: Hex = `0x${randomBytes(32).toString('hex')}`
        const wallet = await newStranger()
        // Anybody can send messages by Circle's transmitter, to a contract that agrees to all of them.
        const accepts: Address = '0x00000000000000000000000000000000000A99EE'
        await rpc('arbitrum-sepolia', 'anvil_setCode', [accepts, '0x60015f5260205ff3'])
        const filled = { nonce, finality: finality.standard, feeExecuted: 0n, expirationBlock: 0n }
        const own = fillInMessage(sent, filled)
        const word = (address: Address) => pad(address, { size: 32 })
        const message =
          kind === 'the message'
            ? own
            : concat([slice(own, 0, 44), word(wallet.account.address), word(accepts), slice(own, 108)])
        const usdc = findUsdc('arbitrum-sepolia')
        // Stands for the other contracts that mint USDC on main chains for whoever burned it elsewhere.
        await allowMinting(usdc, multicallAddress)
        const calls = [
          {
            target: usdc,
            callData: encodeFunctionData({ abi: minterAbi, functionName: 'mint', args: [address, 1n] }),
          },
          {
            target: cctpOn('arbitrum-sepolia').transmitter,
            callData: encodeFunctionData({
              abi: cctpAbi,
              functionName: 'receiveMessage',
              args: [message, await ATTESTER.sign({ hash: keccak256(message) })],
            }),
          },
        ]
        const data = encodeFunctionData({
          abi: minterAbi,
          functionName: 'tryAggregate',
          args: [true, calls],
        })
        await wallet.sendTransaction({ to: multicallAddress, data })
        await rpc('arbitrum-sepolia', 'anvil_mine', ['0x14'])
        await sleep(3_000)
        await setMode('normal')
        await awaitStatus(swap.swapId, 'confirmed')
        expect(await readSwap(swap.swapId)).toMatchObject({ received: '4' })
        expect(await readChain('arbitrum-sepolia')).toBe(before + 4_000_001n)
        await expect.poll(() => readBooked('arbitrum-sepolia'), { timeout: 10_000 }).toBe(before + 4_000_001n)
        await expectBooksEqualChains()
      },
      60_000,
    )

    it('mints again what a reorganization of the destination took', async () => {
      const before = await readChain('arbitrum-sepolia')
      await rpc('arbitrum-sepolia', 'anvil_mine', ['0x14'])
      const { body } = await execute(legs('5'))
      await awaitStatus(body.swapId, 'confirmed')
      await setMode('lost')
      await sleep(2_500)
      await rpc('arbitrum-sepolia', 'anvil_reorg', [8, []])
      expect(await readChain('arbitrum-sepolia')).toBe(before)
      await expect
        .poll(async () => (await readChain('arbitrum-sepolia')) - before, { timeout: 40_000 })
        .toBe(5_000_000n)
      await awaitStatus(body.swapId, 'confirmed')
      await expectBooksEqualChains()
    }, 90_000)

    it('burns again what a reorganization of the source took, and mints it once', async () => {
      const before = { base: await readChain('base-sepolia'), arbitrum: await readChain('arbitrum-sepolia') }
      await rpc('base-sepolia', 'anvil_mine', ['0x14'])
      const swap = await burn('6')
      await sleep(2_500)
      await rpc('base-sepolia', 'anvil_reorg', [8, []])
      expect(await readChain('base-sepolia')).toBe(before.base)
      await expect
        .poll(async () => before.base - (await readChain('base-sepolia')), { timeout: 40_000 })
        .toBe(6_000_000n)
      await setMode('normal')
      await awaitStatus(swap.swapId, 'confirmed')
      expect(await readChain('arbitrum-sepolia')).toBe(before.arbitrum + 6_000_000n)
      await expectBooksEqualChains()
    }, 120_000)

    it('shows it in activity and statements, which add up', async () => {
      const { body } = await owner.send('GET', '/api/activity?kind=swap&limit=100')
      const entries = z.array(z.looseObject({ direction: text, status: text })).parse(body.entries)
      const completed = entries.filter(({ status }) => status === 'completed')
      expect(completed.filter(({ direction }) => direction === 'in').length).toBeGreaterThan(3)
      const { body: statement } = await owner.send(
        'GET',
        `/api/statements/${new Date().toISOString().slice(0, 7)}`,
      )
      const { balances, movements } = z
        .looseObject({
          balances: z.array(z.looseObject({ asset: text, opening: text, closing: text })),
          movements: z.array(z.looseObject({ asset: text, amount: text, direction: text })),
        })
        .parse(statement)
      for (const { asset, opening, closing } of balances) {
        const moved = movements
          .filter((one) => one.asset === asset)
          .reduce((sum, { direction, amount }) => sum + (direction === 'in' ? 1 : -1) * Number(amount), 0)
        expect(Number(opening) + moved).toBeCloseTo(Number(closing), 6)
      }
    })

    it('goes from a wallet of an owner’s key: signed by the owner, and by an agent within its allowance', async () => {
      const { origin } = gateway
      const own = await openOwner(origin, buildUrl('base-sepolia'), newMailbox('mover'))
      await own.handOver()
      const holder = await readAddress(own.person)
      // What the hand-over pays may still be pending.
      await expect.poll(() => readChain('base-sepolia', holder), { timeout: 20_000 }).toBe(399_990_000n)
      const before = await readChain('base-sepolia', holder)
      expect((await own.person.send('POST', '/api/swaps/orders', legs('30'))).body).toMatchObject({
        code: 'signature_rejected',
      })
      const { body: intent } = await own.person.send('POST', '/api/swaps/orders/intent', legs('30'))
      const signature = await own.sign(intent.typedData)
      const { quoteId, intentId } = intent
      const { body: sent } = await own.person.send('POST', '/api/swaps/orders', {
        ...{ quoteId, intentId, signature },
      })
      expect(sent).toMatchObject({ status: 'bridging', sent: '30' })
      const { body: created } = await own.person.send('POST', '/api/developer/keys', {
        name: 'Mover',
        scopes: ['swaps:execute'],
        policy: {
          perTransaction: { max: '2000' },
          dailyBudget: { max: '5000' },
          categories: { allow: ['swap'] },
        },
      })
      const { body: moved } = await requestJson(origin, 'POST', '/api/swaps/orders', {
        body: legs('20'),
        headers: { authorization: `Bearer ${String(created.key)}` },
      })
      expect(moved).toMatchObject({ status: 'bridging', sent: '20' })
      await expect.poll(() => readChain('arbitrum-sepolia', holder), { timeout: 30_000 }).toBe(50_000_000n)
      await expect
        .poll(async () => (await own.person.send('GET', `/api/swaps/orders/${moved.swapId}`)).body.status, {
          timeout: 30_000,
        })
        .toBe('confirmed')
      expect(await readChain('base-sepolia', holder)).toBe(before - 50_000_000n)
      await expect
        .poll(() => readBooked('arbitrum-sepolia', own.person), { timeout: 30_000 })
        .toBe(50_000_000n)
    }, 90_000)

    const steps: readonly (readonly [Name, Step])[] = [
      ['base-sepolia', 'before broadcast'],
      ['base-sepolia', 'after broadcast'],
      ['base-sepolia', 'at the receipt'],
      ['arbitrum-sepolia', 'before broadcast'],
      ['arbitrum-sepolia', 'after broadcast'],
      ['arbitrum-sepolia', 'at the receipt'],
    ]
    const kill = async () => {
      gateway.process.kill('SIGKILL')
      if (gateway.process.exitCode === null && gateway.process.signalCode === null)
        await once(gateway.process, 'exit')
    }
    const expectOneMint = async (before: { base: bigint; arbitrum: bigint }, units: bigint) => {
      await expect
        .poll(async () => (await send('GET', '/api/swaps/orders?limit=1')).body.orders, { timeout: 60_000 })
        .toMatchObject([{ status: 'confirmed' }])
      await sleep(2_000)
      expect(await readChain('base-sepolia')).toBe(before.base - units)
      expect(await readChain('arbitrum-sepolia')).toBe(before.arbitrum + units)
      await expectBooksEqualChains()
    }

    it.each(steps)(
      'mints once when the gateway is killed on %s %s',
      async (name, step) => {
        const before = {
          base: await readChain('base-sepolia'),
          arbitrum: await readChain('arbitrum-sepolia'),
        }
        const killed = new Promise<void>((resolve) => {
          proxies.get(name)?.cut(step, 1, async () => {
            await kill()
            resolve()
          })
        })
        const idempotencyKey = crypto.randomUUID()
        await execute(legs('2'), idempotencyKey).catch(() => undefined)
        await killed
        gateway = await startGateway(env)
        // A caller repeats what it has no answer to.
        await execute(legs('2'), idempotencyKey)
        await expectOneMint(before, 2_000_000n)
      },
      180_000,
    )

    it('mints once when the gateway is killed between the burn and its attestation', async () => {
      const before = { base: await readChain('base-sepolia'), arbitrum: await readChain('arbitrum-sepolia') }
      await burn('2')
      await kill()
      gateway = await startGateway(env)
      await setMode('normal')
      await expectOneMint(before, 2_000_000n)
    }, 180_000)
  })
})

/** Moves the creation of one swap by minutes, and has it looked at. */
async function movePast(databaseUrl: string, swapId: string, minutes: number): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    await client.query(
      'update swap_order set created_at = created_at + make_interval(mins => $2), look_at = null where id = $1',
      [swapId, minutes],
    )
  } finally {
    await client.end()
  }
}
