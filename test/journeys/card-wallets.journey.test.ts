/** Cards paid from wallets with different owners, over real HTTP on the built gateway with a real chain. */
import { randomUUID } from 'node:crypto'
import { createTestClient, http, parseAbi, publicActions, walletActions } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { signWebhook } from '../../src/providers/standard-webhooks.ts'
import { ecbDocument, type Feed, startFeed } from '../contracts/ecb-feed.ts'
import { newAuthenticator } from '../identity/authenticator.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { newGuest, type Person, personFrom, requestJson } from './people.ts'

const credentials = z.object({
  lithicWebhookSecret: z.string(),
  chain: z.object({ rpcUrl: z.string(), tokens: z.record(z.string(), z.string()) }),
})
const wallet = z.object({
  safeAddress: z.string(),
  balances: z.array(z.object({ token: z.string(), amount: z.string(), held: z.string() })),
})
const intentAnswer = z.looseObject({ intentId: z.string(), challenge: z.string() })
const TREASURY = '0xa0Ee7A142d267C1f36714E4a8F75612F20a79720'
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
  const requestOf = (card: string, cents: number, more: Record<string, unknown> = {}) => ({
    event_type: 'card_authorization.approval_request',
    token: randomUUID(),
    status: 'AUTHORIZATION',
    amount: cents,
    card: { token: card },
    merchant: { acceptor_id: 'SHOP', descriptor: 'Corner Shop', mcc: '5411', country: 'USA' },
    pos: { entry_mode: { pan: 'ECOMMERCE' } },
    ...more,
  })
  const authorize = async (card: string, cents: number) => {
    const request = requestOf(card, cents)
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
  const cardOf = async (person: Person) => {
    const { body } = await person.send('GET', '/api/cards')
    return z.object({ cards: z.array(z.looseObject({ id: z.string() })) }).parse(body).cards[0]?.id ?? ''
  }
  const walletOf = async (person: Person) => wallet.parse((await person.send('GET', '/api/wallets')).body)
  const usdcOf = async (person: Person) => {
    const row = (await walletOf(person)).balances.find(({ token }) => token === 'USDC')
    return `${row?.amount} + ${row?.held}`
  }
  const owedBy = async (person: Person) => (await person.send('GET', '/api/cards')).body.owed
  /** Cents that the guest's shares have paid in dividends, once every due dividend is listed. */
  const dividendsOf = async (person: Person) => {
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
  const addPasskey = async (person: Person) => {
    const device = newDevice()
    const { body } = await person.send('POST', '/api/auth/webauthn', { action: 'register' })
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
    expect((await person.send('POST', '/api/wallets/signers', { address, signature })).status).toBe(200)
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
    const { safeAddress } = await walletOf(person)
    await requestJson(gateway.origin, 'POST', '/sandbox/faucet', {
      body: { address: safeAddress, token: 'USDC', amount },
    })
    const { body: card } = await person.send('POST', '/api/cards', {})
    await expect.poll(() => usdcOf(person), SLOW).toBe(`${amount} + 0`)
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
    const purchase = await authorize(await cardOf(guest), 90_000)
    expect(purchase.result).toBe('APPROVED')
    const device = await add(guest)
    const before = await onChain(TREASURY)
    if (device !== undefined) {
      expect(await transfer({ person: guest, device }, '100.01')).toMatchObject({ status: 422 })
      expect(await transfer({ person: guest, device }, '100')).toMatchObject({ status: 200 })
    }
    await clear(purchase, 90_000)
    await expect.poll(() => usdcOf(guest), SLOW).toBe(device === undefined ? '100 + 0' : '0 + 0')
    expect((await onChain(TREASURY)) - before).toBe(900_000_000n)
  })

  it('pays from a wallet created by a passkey, within the card allowance', async () => {
    const owner = await byPasskey('195')
    const { person, card } = owner
    const before = await onChain(TREASURY)
    const purchase = await authorize(card, 12_000)
    expect(purchase.result).toBe('APPROVED')
    expect(await usdcOf(person)).toBe('75 + 120')
    await clear(purchase, 12_000)
    await expect.poll(() => usdcOf(person), SLOW).toBe('75 + 0')
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
    for (const cents of [3_001, 1_000, 2_001, 2_000, 1]) results.push((await authorize(card, cents)).result)
    expect(results).toEqual([
      'INSUFFICIENT_FUNDS',
      'APPROVED',
      'INSUFFICIENT_FUNDS',
      'APPROVED',
      'INSUFFICIENT_FUNDS',
    ])
    expect(await usdcOf(person)).toBe('40 + 30')
  })

  it('declines what the chain no longer covers, before and after reconciliation', async () => {
    const { card, safeAddress, person } = await byPasskey('100')
    const node = chain()
    await node.impersonateAccount({ address: hex(safeAddress) })
    await node.setBalance({ address: hex(safeAddress), value: 10n ** 18n })
    const hash = await node.writeContract({
      account: hex(safeAddress),
      chain: null,
      address: hex(facts.chain.tokens.USDC),
      abi,
      functionName: 'transfer',
      args: [TREASURY, 60_000_000n],
    })
    await node.waitForTransactionReceipt({ hash })
    const results = [(await authorize(card, 5_000)).result]
    // Reconciliation: 60 left the wallet without an operation of the gateway.
    await expect.poll(() => usdcOf(person), { timeout: 10_000 }).toBe('40 + 0')
    for (const cents of [3_000, 1_001, 1_000]) results.push((await authorize(card, cents)).result)
    expect(results).toEqual(['INSUFFICIENT_FUNDS', 'APPROVED', 'INSUFFICIENT_FUNDS', 'APPROVED'])
    expect(await usdcOf(person)).toBe('0 + 40')
  })

  it('keeps what the chain refuses on hold, and settles it once the owner allows it again', async () => {
    const owner = await byPasskey('100')
    const purchase = await authorize(owner.card, 5_000)
    await allow(owner, '0')
    const before = await onChain(TREASURY)
    await clear(purchase, 5_000)
    await new Promise((resolve) => setTimeout(resolve, 6_000))
    expect(await usdcOf(owner.person)).toBe('50 + 50')
    expect(await transfer(owner, '50.01')).toMatchObject({ status: 422 })
    const refusals = gateway.output().match(/the chain rejected a transfer that the ledger allowed/g) ?? []
    expect(refusals.length).toBeGreaterThan(0)
    expect(refusals.length).toBeLessThan(4)
    await allow(owner, '200')
    await expect.poll(() => usdcOf(owner.person), SLOW).toBe('50 + 0')
    expect((await onChain(TREASURY)) - before).toBe(50_000_000n)
  })

  it('clears against every balance, and books the rest as a debt until it is paid', {
    timeout: 120_000,
  }, async () => {
    const guest = await newGuest(gateway.origin)
    const dividends = await dividendsOf(guest)
    const owing = (cents: number) => [{ asset: 'USD', amount: ((cents - dividends) / 100).toFixed(2) }]
    const card = await cardOf(guest)
    await guest.send('POST', '/api/cards/settings', { cardId: card, priority: ['USDC'] })
    const small = await authorize(card, 100)
    const destination = '0x000000000000000000000000000000000000dEaD'
    const sent = { destination, amount: '999', signature: 'sandbox' }
    expect((await guest.send('POST', '/api/wallets/transfer', sent)).status).toBe(200)
    await clear(small, 15_000)
    expect(await owedBy(guest)).toBeUndefined()
    // 1 USDC and 149 of the 500 USD that a guest has at the bank.
    expect((await walletOf(guest)).balances).toMatchObject([
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
    expect(await owedBy(guest)).toEqual(owing(11_643))
    const { body: accounts } = await guest.send('GET', '/api/banking')
    const [account] = z.array(z.looseObject({ id: z.string() })).parse(accounts.accounts)
    const deposit = (amount: string) =>
      requestJson(gateway.origin, 'POST', '/sandbox/deposits', { body: { accountId: account?.id, amount } })
    await deposit('100')
    await expect.poll(() => owedBy(guest), SLOW).toEqual(owing(1_643))
    expect((await authorize(card, 1)).result).toBe('INSUFFICIENT_FUNDS')
    await deposit('100')
    await expect.poll(() => owedBy(guest), SLOW).toBeUndefined()
    await guest.send('POST', '/api/cards/settings', { cardId: card, priority: ['USDC', 'USD'] })
    expect((await authorize(card, 30_000)).result).toBe('INSUFFICIENT_FUNDS')
    expect((await authorize(card, 8_357 + dividends)).result).toBe('APPROVED')
  })

  it('approves no request that reuses a known token without its own hold', async () => {
    const guest = await newGuest(gateway.origin)
    const card = await cardOf(guest)
    const request = requestOf(card, 1_000)
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
    expect((await hook(requestOf(card, 1_000), id)).result).toBe('CARD_PAUSED')
    expect(await usdcOf(guest)).toBe('990 + 10')
  })
})
