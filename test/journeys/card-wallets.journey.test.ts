/** Cards paid from wallets with different owners, over real HTTP on the built gateway with a real chain. */

import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createTestClient, http, parseAbi, publicActions, walletActions } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { signWebhook } from '../../src/providers/standard-webhooks.ts'
import { ecbDocument, type Feed, startFeed } from '../contracts/ecb-feed.ts'
import { newAuthenticator } from '../people/identity/authenticator.ts'
import { askForApproval } from './card-request.ts'
import { findChromium, giveSession, newVisit, openBrowser } from './chromium.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { newGuest, type Person, personFrom, requestJson } from './people.ts'

const credentials = z.object({
  lithicWebhookSecret: z.string(),
  chain: z.object({ rpcUrl: z.string(), tokens: z.record(z.string(), z.string()) }),
})
const wallet = z.object({
  safeAddress: z.string(),
  balances: z.array(z.object({ token: z.string(), amount: z.string(), held: z.string() })),
  escrow: z.array(z.object({ asset: z.string(), amount: z.string(), usd: z.string().nullable() })),
})
const intentAnswer = z.looseObject({ intentId: z.string(), challenge: z.string() })
const TREASURY = '0xa0Ee7A142d267C1f36714E4a8F75612F20a79720'
const THIEF = '0x000000000000000000000000000000000000bEEF'
const abi = parseAbi([
  'function balanceOf(address) view returns (uint256)',
  'function transfer(address to, uint256 value) returns (bool)',
])
const hex = (text = ''): `0x${string}` => `0x${text.slice(2)}`
/** Polling options: the chain and the jobs need time. */
const SLOW = { timeout: 30_000 }

describe('a card whose wallet has an owner', () => {
  let gateway: Gateway
  let feed: Feed
  let facts: z.output<typeof credentials>
  const chain = () =>
    createTestClient({ mode: 'anvil', transport: http(facts.chain.rpcUrl) })
      .extend(publicActions)
      .extend(walletActions)
  const onChain = (address: string) =>
    chain().readContract({
      address: hex(facts.chain.tokens.USDC),
      abi,
      functionName: 'balanceOf',
      args: [hex(address)],
    })

  beforeAll(async () => {
    // Rates that do not change from day to day.
    feed = await startFeed(ecbDocument(new Date().toISOString().slice(0, 10)))
    gateway = await startGateway({ CHAIN: 'anvil', RATE_MUTATIONS: '1000/60', FX_RATES_URL: feed.url })
    facts = credentials.parse((await requestJson(gateway.origin, 'GET', '/sandbox/credentials')).body)
  })
  afterAll(async () => {
    await gateway?.stop()
    await feed?.close()
  })

  const hook = async (message: Record<string, unknown>, id: string = randomUUID()) => {
    const body = JSON.stringify(message)
    const response = await fetch(`${gateway.origin}/api/webhooks/lithic`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...signWebhook({ id, body, at: new Date() }, facts.lithicWebhookSecret),
      },
      body,
    })
    return z.record(z.string(), z.unknown()).parse(await response.json())
  }
  const authorize = async (card: string, cents: number) => {
    const request = askForApproval(card, cents)
    return { token: request.token, card, result: (await hook(request)).result }
  }
  const clear = ({ token, card }: { token: string; card: string }, cents: number) =>
    hook({
      event_type: 'card_transaction.updated',
      token,
      card_token: card,
      status: 'SETTLED',
      events: [
        { token: `${token}-a`, type: 'AUTHORIZATION', amount: cents, result: 'APPROVED' },
        { token: `${token}-c`, type: 'CLEARING', amount: cents, result: 'APPROVED' },
      ],
    })
  const readCard = async (person: Person) => {
    const { body } = await person.send('GET', '/api/cards')
    return z.object({ cards: z.array(z.looseObject({ id: z.string() })) }).parse(body).cards[0]?.id ?? ''
  }
  const readWallet = async (person: Person) => wallet.parse((await person.send('GET', '/api/wallets')).body)
  const readUsdc = async (person: Person) => {
    const row = (await readWallet(person)).balances.find(({ token }) => token === 'USDC')
    return `${row?.amount} + ${row?.held}`
  }
  const readOwed = async (person: Person) => (await person.send('GET', '/api/cards')).body.owed
  /** Cents that the guest's shares have paid in dividends, once every due dividend is listed. */
  const awaitDividends = async (person: Person) => {
    const due = async () => {
      const { body } = await person.send('GET', '/api/investing/portfolio')
      const today = new Date().toISOString().slice(0, 10)
      return z
        .array(z.looseObject({ status: z.string(), payDate: z.string(), amount: z.string() }))
        .parse(body.dividends)
        .filter(({ payDate }) => payDate <= today)
    }
    // Its shares were bought months ago: a dividend is due, and the job round that pays it lists it.
    const arePaid = async () => {
      const listed = await due()
      return listed.length > 0 && listed.every(({ status }) => status === 'paid')
    }
    await expect.poll(arePaid, SLOW).toBe(true)
    return (await due()).reduce((cents, { amount }) => cents + Math.round(Number(amount) * 100), 0)
  }
  const newDevice = () => newAuthenticator(`http://localhost:${new URL(gateway.origin).port}`)
  const readEscrow = async (person: Person) => (await person.send('GET', '/api/cards')).body.escrow
  /** Sends a request until what cards hold of the wallet has left it. @returns the first and the last answer. */
  const onceIdle = async (send: () => ReturnType<Person['send']>) => {
    const first = await send()
    let last = first
    for (let tries = 0; last.status === 409 && tries < 40; tries += 1) {
      await new Promise((resolve) => setTimeout(resolve, 250))
      last = await send()
    }
    return [first, last] as const
  }
  const addPasskey = async (person: Person) => {
    const device = newDevice()
    const [busy, { body }] = await onceIdle(() =>
      person.send('POST', '/api/auth/webauthn', { action: 'register' }),
    )
    expect(busy.body).toMatchObject({ code: 'wallet_busy' })
    const credential = device.create(body.publicKey)
    const { status } = await person.send('POST', '/api/auth/webauthn', { action: 'register', credential })
    expect(status).toBe(200)
    return device
  }
  const addEvmKey = async (person: Person) => {
    const account = privateKeyToAccount(generatePrivateKey())
    const { address } = account
    const { body } = await person.send('POST', '/api/wallets/signers', { address })
    const signature = await account.signTypedData(body.typedData as never)
    const [busy, { status }] = await onceIdle(() =>
      person.send('POST', '/api/wallets/signers', { address, signature }),
    )
    expect(busy.body).toMatchObject({ code: 'wallet_busy' })
    expect(status).toBe(200)
  }
  /** Moves tokens out of a wallet by a transaction of its owner. @returns whether the chain executed it. */
  const takeOut = async (safeAddress: string, units: bigint) => {
    const node = chain()
    await node.impersonateAccount({ address: hex(safeAddress) })
    await node.setBalance({ address: hex(safeAddress), value: 10n ** 18n })
    try {
      const hash = await node.writeContract({
        account: hex(safeAddress),
        chain: null,
        address: hex(facts.chain.tokens.USDC),
        abi,
        functionName: 'transfer',
        args: [THIEF, units],
      })
      return (await node.waitForTransactionReceipt({ hash })).status === 'success'
    } catch {
      return false
    }
  }
  const byPasskey = async (amount: string) => {
    const device = newDevice()
    const passkeyStep = (body: object) => requestJson(gateway.origin, 'POST', '/api/auth/webauthn', { body })
    const { body: registration } = await passkeyStep({ action: 'register', displayName: 'Ada' })
    const { body } = await passkeyStep({
      action: 'register',
      credential: device.create(registration.publicKey),
    })
    const person = personFrom(gateway.origin, body)
    const { safeAddress } = await readWallet(person)
    await requestJson(gateway.origin, 'POST', '/sandbox/faucet', {
      body: { address: safeAddress, token: 'USDC', amount },
    })
    const { body: card } = await person.send('POST', '/api/cards', {
      limits: { daily: null, perPurchase: null },
    })
    await expect.poll(() => readUsdc(person), SLOW).toBe(`${amount} + 0`)
    return { person, device, safeAddress, card: String(card.id) }
  }
  type Owner = Awaited<ReturnType<typeof byPasskey>>
  const sign = (device: Owner['device'], answer: unknown) => {
    const { challenge, intentId } = intentAnswer.parse(answer)
    const credential = device.get({ challenge, rpId: 'localhost', userVerification: 'required' })
    return { intentId, signature: Buffer.from(JSON.stringify(credential)).toString('base64url') }
  }
  const transfer = async ({ person, device }: Pick<Owner, 'person' | 'device'>, amount: string) => {
    const input = { destination: privateKeyToAccount(generatePrivateKey()).address, amount }
    const { body } = await person.send('POST', '/api/wallets/transfer/intent', input)
    return person.send('POST', '/api/wallets/transfer', { ...input, ...sign(device, body) })
  }
  /** An owner whose wallet is deployed: what the owner sends before that would block its address. */
  const deploy = async (amount: number) => {
    const owner = await byPasskey(`${amount + 1}`)
    expect(await transfer(owner, '1')).toMatchObject({ status: 200 })
    return owner
  }
  const allow = async ({ person, device }: Owner, dailyMax: string) => {
    const input = { agentId: 'cards', dailyMax }
    const { body } = await person.send('POST', '/api/wallets/allowances/intent', input)
    return person.send('POST', '/api/wallets/allowances', sign(device, body))
  }

  it.each([
    ['a passkey', addPasskey],
    ['an EVM key', addEvmKey],
  ])('settles holds from before %s became its owner, regardless of the owner', async (_name, add) => {
    const guest = await newGuest(gateway.origin)
    const purchase = await authorize(await readCard(guest), 90_000)
    expect(purchase.result).toBe('APPROVED')
    const device = await add(guest)
    expect(await readUsdc(guest)).toBe('100 + 0')
    expect(await readEscrow(guest)).toEqual({ asset: 'USDC', amount: '900' })
    const before = await onChain(TREASURY)
    if (device !== undefined) {
      expect(await transfer({ person: guest, device }, '100.01')).toMatchObject({ status: 422 })
      expect(await transfer({ person: guest, device }, '100')).toMatchObject({ status: 200 })
    }
    await clear(purchase, 90_000)
    await expect.poll(() => readEscrow(guest), SLOW).toEqual({ asset: 'USDC', amount: '0' })
    expect(await readUsdc(guest)).toBe(device === undefined ? '100 + 0' : '0 + 0')
    expect((await onChain(TREASURY)) - before).toBe(900_000_000n)
  })

  it('pays from a wallet created by a passkey, within the card allowance', async () => {
    const owner = await byPasskey('195')
    const { person, card } = owner
    const before = await onChain(TREASURY)
    const purchase = await authorize(card, 12_000)
    expect(purchase.result).toBe('APPROVED')
    expect(await readUsdc(person)).toBe('75 + 0')
    expect(await readEscrow(person)).toEqual({ asset: 'USDC', amount: '120' })
    expect((await readWallet(person)).escrow).toEqual([
      { asset: 'USDC', amount: '120', usd: expect.stringMatching(/^1(19|20)(\.\d+)?$/) },
    ])
    await clear(purchase, 12_000)
    await expect.poll(() => readEscrow(person), SLOW).toEqual({ asset: 'USDC', amount: '0' })
    expect((await readWallet(person)).escrow).toEqual([])
    expect((await onChain(TREASURY)) - before).toBe(120_000_000n)
    expect(await transfer(owner, '5')).toMatchObject({ status: 200, body: { authorization: 'passkey' } })
    expect((await person.send('GET', '/api/wallets/allowances')).body).toMatchObject({
      allowances: [{ agentId: 'cards', dailyMax: '1000', spent: '120', isOwn: true }],
    })
    // 120 are spent today, 10 will be held: 20 are left.
    expect(await allow(owner, '150')).toMatchObject({
      status: 200,
      body: { agentId: 'cards', dailyMax: '150' },
    })
    const results = []
    for (const cents of [3_001, 1_000, 2_001, 2_000, 1]) {
      results.push((await authorize(card, cents)).result)
      if (cents !== 1_000) continue
      // A pull that the chain has executed counts twice until it is booked, and 100 ms longer, as clocks may differ: never
      // too little.
      await expect.poll(() => readUsdc(person), SLOW).toBe('60 + 0')
      await sleep(150)
    }
    expect(results).toEqual([
      'INSUFFICIENT_FUNDS',
      'APPROVED',
      'INSUFFICIENT_FUNDS',
      'APPROVED',
      'INSUFFICIENT_FUNDS',
    ])
    // What is within the float is pulled right after the answer.
    await expect.poll(() => readUsdc(person), SLOW).toBe('40 + 0')
    expect(await readEscrow(person)).toEqual({ asset: 'USDC', amount: '30' })
  })

  it.skipIf(findChromium() === undefined)(
    'counts what a purchase holds in everything that its owner has, as held',
    async () => {
      const { person, card } = await byPasskey('195')
      const browser = await openBrowser()
      try {
        const { page } = await newVisit(browser, gateway.origin)
        const url = `http://localhost:${new URL(gateway.origin).port}`
        await giveSession(page.context(), url, person.token)
        await page.goto(url)
        const worth = page.getByRole('region', { name: 'Everything you have' })
        const figure = () => worth.locator('.figure').textContent()
        await expect.poll(figure, SLOW).toMatch(/^\$19/)
        const before = await figure()
        expect((await authorize(card, 12_000)).result).toBe('APPROVED')
        expect(await readUsdc(person)).toBe('75 + 0')
        await page.reload()
        await expect.poll(figure, SLOW).toBe(before)
        const held = worth.getByRole('listitem').filter({ hasText: 'Held' })
        expect(await held.textContent()).toMatch(/^Held\$1(19|20)\./)
      } finally {
        await browser.close()
      }
    },
  )

  it('loses nothing above the float to an owner who empties the wallet, and gives back what is not cleared', async () => {
    const { person, card, safeAddress } = await deploy(1000)
    const purchase = await authorize(card, 90_000)
    expect(purchase.result).toBe('APPROVED')
    expect(await takeOut(safeAddress, 1_000_000_000n)).toBe(false)
    expect(await takeOut(safeAddress, 100_000_000n)).toBe(true)
    const before = await onChain(TREASURY)
    await clear(purchase, 80_000)
    await expect.poll(async () => (await onChain(TREASURY)) - before, SLOW).toBe(800_000_000n)
    await expect.poll(() => readEscrow(person), { timeout: 40_000 }).toEqual({ asset: 'USDC', amount: '0' })
    await expect.poll(() => readUsdc(person), SLOW).toBe('100 + 0')
    expect(await onChain(hex(safeAddress))).toBe(100_000_000n)
    expect(await readOwed(person)).toBeUndefined()
  })

  it('books what an owner takes out of the float as a debt at once, and credits no return before it', async () => {
    const { person, card, safeAddress } = await deploy(100)
    const purchase = await authorize(card, 5_000)
    expect(purchase.result).toBe('APPROVED')
    await takeOut(safeAddress, 100_000_000n)
    const before = await onChain(TREASURY)
    await clear(purchase, 5_000)
    const event = (suffix: string, type: string, cents: number) => ({
      token: `${purchase.token}-${suffix}`,
      ...{ type, amount: cents, result: 'APPROVED' },
    })
    await hook({
      event_type: 'card_transaction.updated',
      ...{ token: purchase.token, card_token: card, status: 'SETTLED' },
      events: [
        event('a', 'AUTHORIZATION', 5_000),
        event('c', 'CLEARING', 5_000),
        event('r', 'RETURN', 5_000),
      ],
    })
    const cash = async () =>
      Math.round(Number((await person.send('GET', '/api/investing/portfolio')).body.cash) * 100)
    // A pull that was faster than the owner paid it; otherwise the return pays what is owed, and no cash is left.
    const readPaid = async () => Number(((await onChain(TREASURY)) - before) / 10_000n)
    await expect
      .poll(async () => [await readOwed(person), (await cash()) - (await readPaid())], { timeout: 20_000 })
      .toEqual([undefined, 0])
  })

  it('declines what the chain no longer covers, before and after reconciliation', async () => {
    const { card, safeAddress, person } = await deploy(100)
    expect(await takeOut(safeAddress, 60_000_000n)).toBe(true)
    const results = [(await authorize(card, 5_000)).result]
    // Reconciliation: 60 left the wallet without an operation of the gateway.
    await expect.poll(() => readUsdc(person), { timeout: 10_000 }).toBe('40 + 0')
    results.push((await authorize(card, 3_000)).result)
    // While a pull is under way, no more than what is certain is promised.
    await expect.poll(() => readEscrow(person), SLOW).toEqual({ asset: 'USDC', amount: '30' })
    for (const cents of [1_001, 1_000]) results.push((await authorize(card, cents)).result)
    expect(results).toEqual(['INSUFFICIENT_FUNDS', 'APPROVED', 'INSUFFICIENT_FUNDS', 'APPROVED'])
    await expect.poll(() => readUsdc(person), SLOW).toBe('0 + 0')
    expect(await readEscrow(person)).toEqual({ asset: 'USDC', amount: '40' })
  })

  it('collects what the chain refuses once the wallet has money again', async () => {
    const owner = await deploy(50)
    const purchase = await authorize(owner.card, 5_000)
    await takeOut(owner.safeAddress, 50_000_000n)
    const before = await onChain(TREASURY)
    await clear(purchase, 5_000)
    const readPaid = async () => (await onChain(TREASURY)) - before
    await expect
      .poll(async () => (await readOwed(owner.person)) !== undefined || (await readPaid()) > 0n, SLOW)
      .toBe(true)
    const body = { address: owner.safeAddress, token: 'USDC', amount: '60' }
    await requestJson(gateway.origin, 'POST', '/sandbox/faucet', { body })
    await expect.poll(readPaid, { timeout: 40_000 }).toBe(50_000_000n)
    await expect.poll(() => readOwed(owner.person), SLOW).toBeUndefined()
  })

  it('clears against every balance, and books the rest as a debt until it is paid', {
    timeout: 120_000,
  }, async () => {
    const guest = await newGuest(gateway.origin)
    const dividends = await awaitDividends(guest)
    const owing = (cents: number) => [{ asset: 'USD', amount: ((cents - dividends) / 100).toFixed(2) }]
    const card = await readCard(guest)
    await guest.send('POST', '/api/cards/settings', { cardId: card, priority: ['USDC'] })
    const small = await authorize(card, 100)
    const destination = '0x000000000000000000000000000000000000dEaD'
    const sent = { destination, amount: '999', signature: 'sandbox' }
    expect((await guest.send('POST', '/api/wallets/transfer', sent)).status).toBe(200)
    await clear(small, 15_000)
    expect(await readOwed(guest)).toBeUndefined()
    // 1 USDC and 149 of the 500 USD that a guest has at the bank.
    expect((await readWallet(guest)).balances).toMatchObject([
      { token: 'USDC', amount: '0' },
      { token: 'USDT', amount: '250' },
      { token: 'EURC', amount: '500' },
      { token: 'PYUSD', amount: '250' },
    ])
    await guest.send('POST', '/api/cards/settings', { cardId: card, priority: ['PYUSD'] })
    const large = await authorize(card, 25_000)
    expect(large.result).toBe('APPROVED')
    await clear(large, 150_000)
    // 250 PYUSD, 351 USD, 250 USDT and 500 EURC at 1.0705 less 0.5 %: 116.43 are missing, less the dividends.
    expect(await readOwed(guest)).toEqual(owing(11_643))
    const { body: accounts } = await guest.send('GET', '/api/banking')
    const [account] = z.array(z.looseObject({ id: z.string() })).parse(accounts.accounts)
    const deposit = (amount: string) =>
      requestJson(gateway.origin, 'POST', '/sandbox/deposits', { body: { accountId: account?.id, amount } })
    // Nothing gets out of reach until it is paid.
    const payout = { recipientId: 'rcp_01h455vb4pex5vsknk084sn02q', amount: '1' }
    expect((await guest.send('POST', '/api/banking/payouts', payout)).body.code).toBe('wallet_busy')
    const passkey = await guest.send('POST', '/api/auth/webauthn', { action: 'register' })
    expect([passkey.status, passkey.body.code]).toEqual([409, 'wallet_busy'])
    await deposit('100')
    await expect.poll(() => readOwed(guest), SLOW).toEqual(owing(1_643))
    await deposit('100')
    await expect.poll(() => readOwed(guest), SLOW).toBeUndefined()
    await guest.send('POST', '/api/cards/settings', { cardId: card, priority: ['USDC', 'USD'] })
    expect((await authorize(card, 30_000)).result).toBe('INSUFFICIENT_FUNDS')
    expect((await authorize(card, 8_357 + dividends)).result).toBe('APPROVED')
  })

  it('approves no request that reuses a known token without its own hold', async () => {
    const guest = await newGuest(gateway.origin)
    const card = await readCard(guest)
    const request = askForApproval(card, 1_000)
    const id = randomUUID()
    expect(await hook(request, id)).toEqual({ result: 'APPROVED', token: request.token })
    for (const again of [id, randomUUID()])
      expect(await hook(request, again)).toEqual({ result: 'APPROVED', token: request.token })
    for (const other of [
      { merchant: { ...request.merchant, acceptor_id: 'OTHER' } },
      { merchant: { ...request.merchant, country: 'FRA' } },
      { events: [{ token: randomUUID(), type: 'AUTHORIZATION', amount: 1_000 }] },
      { amount: 1_500 },
      { amount: 500 },
      { status: 'FINANCIAL_AUTHORIZATION' },
    ])
      for (const webhook of [id, randomUUID()])
        expect((await hook({ ...request, ...other }, webhook)).result).toBe('CARD_PAUSED')
    expect((await hook(askForApproval(card, 1_000), id)).result).toBe('CARD_PAUSED')
    expect(await readUsdc(guest)).toBe('990 + 10')
  })
})
