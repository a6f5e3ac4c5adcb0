/** Deposits from a suspicious sender, over real HTTP: held, listed, released or blocked by an administrator. */
import { createTestClient, createWalletClient, erc20Abi, http, numberToHex, publicActions } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type AnvilProcess, findAnvil, spawnAnvil } from '../../src/chain/node/anvil-process.ts'
import { sandboxTokens } from '../../src/chain/rpc/networks.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { hasAnvil } from '../rails/selling/x402/world.ts'
import { overBothEngines } from './both-engines.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { readAddress } from './keyed-owners.ts'
import { newGuest, type Person, requestJson, signInByEmail } from './people.ts'

const reviews = z.object({
  reviews: z.array(
    z.looseObject({
      id: z.string(),
      accountId: z.string(),
      direction: z.string(),
      decisionId: z.string().nullable(),
    }),
  ),
})

overBothEngines('screened deposits', {}, (world) => {
  let owner: Person
  let admin: Person
  let accountId: string
  beforeAll(async () => {
    admin = await signInByEmail(world.gateway().origin, `admin-${Date.now()}@bursar.example`)
    await admin.send('POST', '/sandbox/admin', {})
  })
  beforeEach(async () => {
    owner = await newGuest(world.gateway().origin)
    accountId = String((await owner.send('POST', '/api/banking', { currency: 'USD' })).body.id)
  })
  const payIn = async (from?: string) =>
    requestJson(world.gateway().origin, 'POST', '/sandbox/deposits', {
      body: { accountId, amount: '10', ...(from === undefined ? {} : { from }) },
    })
  const usdc = async () => {
    const { body } = await owner.send('GET', '/api/wallets')
    const rows = z.array(z.looseObject({ token: z.string(), amount: z.string() })).parse(body.balances)
    return rows.find(({ token }) => token === 'USDC')?.amount
  }
  const listReviews = async (status = 'open') =>
    reviews
      .parse((await admin.send('GET', `/api/admin/reviews?status=${status}`)).body)
      .reviews.filter((review) => review.accountId === owner.accountId)

  it('deposits from anybody else arrive', async () => {
    await payIn()
    await payIn('Ada Lovelace')
    expect(await usdc()).toBe('1020')
  })

  it('deposits from a listed name or a suspicious address wait for an administrator', async () => {
    for (const [from, decision, after] of [
      ['LAZARUS GROUP', 'release', '1010'],
      [`0x${'1'.repeat(36)}8888`, 'block', '1010'],
    ] as const) {
      const before = await usdc()
      expect((await payIn(from)).status).toBe(200)
      expect(await usdc()).toBe(before)
      const [review] = await listReviews()
      expect(review).toMatchObject({ direction: 'in', decisionId: null, counterparty: from, amount: '10' })
      const path = `/api/admin/reviews/${review?.id}`
      const decided = await admin.send('POST', path, { decision, reason: 'The payer was shown.' })
      expect(decided).toMatchObject({ status: 200, body: { releasedUntil: null } })
      expect(await usdc()).toBe(after)
      expect((await admin.send('POST', path, { decision, reason: 'Again.' })).status).toBe(409)
    }
    expect(await listReviews()).toEqual([])
  })

  it('deposits from a sanctioned address are blocked at once', async () => {
    await payIn(`0x${'1'.repeat(36)}9999`)
    expect(await usdc()).toBe('1000')
    expect(await listReviews('blocked')).toMatchObject([{ direction: 'in', decidedBy: null }])
  })
})

describe.skipIf(!hasAnvil()).each([
  { engine: 'PGlite', isSkipped: false },
  { engine: 'PostgreSQL', isSkipped: testServerUrl === undefined },
])('deposits on the chain, with $engine', ({ engine, isSkipped }) => {
  let node: AnvilProcess
  let drop = async () => {}
  let gateway: Gateway
  let owner: Person
  let admin: Person
  beforeAll(async () => {
    if (isSkipped) return
    const database = engine === 'PGlite' ? null : await createTestDatabase(testServerUrl ?? '')
    drop = database?.drop ?? drop
    node = await spawnAnvil(findAnvil(process.env.ANVIL_BIN), 0, 10_000)
    gateway = await startGateway({
      CHAIN_RPC_URL: node.url,
      AML_STRUCTURING: '99/86400/80',
      AML_VELOCITY: '5000/86400',
      RATE_MUTATIONS: '100000/60',
      ...(database !== null && { DATABASE_URL: database.url }),
    })
    admin = await signInByEmail(gateway.origin, 'admin@bursar.example')
    await admin.send('POST', '/sandbox/admin', {})
  }, 90_000)
  beforeEach(async () => {
    if (!isSkipped) owner = await newGuest(gateway.origin)
  })
  afterAll(async () => {
    await gateway?.stop()
    await drop()
    await node?.stop()
  })
  const transport = () => http(node.url)
  const readUsdc = async () => {
    const { body } = await owner.send('GET', '/api/wallets')
    const rows = z.array(z.looseObject({ token: z.string(), amount: z.string() })).parse(body.balances)
    return rows.find(({ token }) => token === 'USDC')?.amount
  }
  /** Pays the owner 7 USDC from a private key. @returns the payer's address. */
  const payFrom = async (secret: bigint) => {
    const account = privateKeyToAccount(numberToHex(secret, { size: 32 }))
    const nodeClient = createTestClient({ mode: 'anvil', chain: baseSepolia, transport: transport() })
    await nodeClient.setBalance({ address: account.address, value: 10n ** 24n })
    const funds = { address: account.address, token: 'USDC', amount: '7' }
    expect(await requestJson(gateway.origin, 'POST', '/sandbox/faucet', { body: funds })).toMatchObject({
      status: 200,
    })
    const wallet = createWalletClient({ account, chain: baseSepolia, transport: transport() })
    const args = [await readAddress(owner), 7_000_000n] as const
    await wallet.writeContract({
      address: sandboxTokens.USDC.address,
      abi: erc20Abi,
      functionName: 'transfer',
      args,
    })
    return account.address
  }
  const listReviews = async (status: string) =>
    reviews
      .parse((await admin.send('GET', `/api/admin/reviews?status=${status}`)).body)
      .reviews.filter(({ accountId }) => accountId === owner.accountId)
  /** Moves USDC out of the owner's wallet without the gateway. */
  const moveAway = async (units: bigint) => {
    const from = await readAddress(owner)
    const nodeClient = createTestClient({ mode: 'anvil', chain: baseSepolia, transport: transport() })
    await nodeClient.impersonateAccount({ address: from })
    await nodeClient.setBalance({ address: from, value: 10n ** 24n })
    const wallet = createWalletClient({ account: from, chain: baseSepolia, transport: transport() })
    const hash = await wallet.writeContract({
      address: sandboxTokens.USDC.address,
      abi: erc20Abi,
      functionName: 'transfer',
      args: ['0x00000000000000000000000000000000000c0de5', units],
    })
    // The node answers before the block is there.
    await nodeClient.extend(publicActions).waitForTransactionReceipt({ hash })
  }

  it.skipIf(isSkipped)(
    'released at once are credited only as far as the chain has their tokens',
    async () => {
      const destination = '0x00000000000000000000000000000000000c0de5'
      for (const amount of ['400', '350', '250']) {
        const body = { destination, amount, signature: 'sandbox' }
        expect(await owner.send('POST', '/api/wallets/transfer', body)).toMatchObject({ status: 200 })
      }
      for (let paid = 0; paid < 4; paid += 1) await payFrom(26_702n)
      await expect.poll(async () => (await listReviews('open')).length, { timeout: 20_000 }).toBe(4)
      await moveAway(28_000_000n)
      // Once a later deposit is seen, what left before it has been seen too.
      await payFrom(26_702n)
      await expect.poll(async () => (await listReviews('open')).length, { timeout: 20_000 }).toBe(5)
      const decision = { decision: 'release', reason: 'The payer was shown.' }
      const answers = await Promise.all(
        (await listReviews('open')).map(({ id }) => admin.send('POST', `/api/admin/reviews/${id}`, decision)),
      )
      expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409, 409, 409])
      expect(await readUsdc()).toBe('7')
    },
    90_000,
  )

  it.skipIf(isSkipped)(
    'are credited, wait for an administrator, or are blocked, by their sender',
    async () => {
      const destination = '0x00000000000000000000000000000000000c0de5'
      const pay = (amount: string) =>
        owner.send('POST', '/api/wallets/transfer', { destination, amount, signature: 'sandbox' })
      expect(await pay('300')).toMatchObject({ status: 200 })
      await payFrom(0xb0b5n)
      await expect.poll(readUsdc, { timeout: 20_000 }).toBe('707')
      // Keys whose addresses end in 8888 and 9999.
      const [suspicious, sanctioned] = [await payFrom(26_702n), await payFrom(10_876n)]
      await expect
        .poll(() => listReviews('open'), { timeout: 20_000 })
        .toMatchObject([
          {
            accountId: owner.accountId,
            direction: 'in',
            operation: 'deposit',
            amount: '7',
            asset: 'USDC',
            chain: 'base-sepolia',
            counterparty: suspicious.toLowerCase(),
          },
        ])
      await expect
        .poll(() => listReviews('blocked'), { timeout: 20_000 })
        .toMatchObject([{ counterparty: sanctioned.toLowerCase(), decidedBy: null }])
      expect(await readUsdc()).toBe('707')
      expect(await pay('708')).toMatchObject({ status: 422, body: { code: 'insufficient_funds' } })
      const path = `/api/admin/reviews/${(await listReviews('open'))[0]?.id}`
      const decision = { decision: 'release', reason: 'The payer was shown.' }
      expect(await admin.send('POST', path, decision)).toMatchObject({
        status: 200,
        body: { status: 'released', releasedUntil: null },
      })
      expect(await readUsdc()).toBe('714')
      expect((await admin.send('POST', path, decision)).status).toBe(409)
      // A difference of a moment, between a deposit and its booking, ends with the next comparison.
      await expect
        .poll(async () => JSON.stringify((await admin.send('GET', '/api/admin/drift')).body), {
          timeout: 30_000,
        })
        .not.toContain(owner.accountId)
    },
    90_000,
  )
})
