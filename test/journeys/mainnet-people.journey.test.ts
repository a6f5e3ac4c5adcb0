/**
 * Two people in production on a public chain, with vendors as strict as their documents: identity, bank, broker and
 * cards. Nothing of one is ever seen or moved by the other, and the books balance at the end.
 */
import { generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto'
import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { trialBalance } from '../../src/books/ledger/trial-balance.ts'
import { signBankingWebhook } from '../../src/providers/banking/signature.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { bursar } from '../commands/bursar.ts'
import { startAlpacaServer } from '../contracts/alpaca-server.ts'
import { startBridgeServer } from '../contracts/bridge-server.ts'
import { startSumsubServer } from '../contracts/sumsub-server.ts'
import { testServerUrl } from '../engines.ts'
import { american } from '../rails/banking/american.ts'
import { answers, describeApplicant } from '../rails/investing/answers.ts'
import { hasAnvil } from '../rails/selling/x402/world.ts'
import { type Mainnet, startMainnet } from './mainnet.ts'
import { type OnMainnet, type Owner, openOnMainnet } from './on-mainnet.ts'
import { type Person, requestJson } from './people.ts'

const sponsor = privateKeyToAccount(`0x${'1'.repeat(64)}`).address
/** Polling options: blocks come once a second, and movements count five blocks later. */
const SLOW = { timeout: 45_000, interval: 500 }
/** Signed transactions expire after three minutes; their blocks must be final then, and a round of the job must have come. */
const UNTIL_EXPIRED = { timeout: 330_000, interval: 1_000 }

describe.skipIf(testServerUrl === undefined || !hasAnvil())('two people on Base', () => {
  let base: Mainnet
  let scene: OnMainnet
  let bridge: Awaited<ReturnType<typeof startBridgeServer>>
  let broker: Awaited<ReturnType<typeof startAlpacaServer>>
  let reviewer: Awaited<ReturnType<typeof startSumsubServer>>
  let bridgeKey: KeyObject
  let [ada, bob]: Owner[] = []
  const closing: (() => unknown)[] = []
  beforeAll(async () => {
    base = await startMainnet('base', { hasOwnContracts: true })
    closing.push(base.close)
    await base.giveGas(sponsor)
    bridge = await startBridgeServer()
    broker = await startAlpacaServer()
    reviewer = await startSumsubServer({ 'basic-kyc-level': ['SELFIE'] })
    closing.push(bridge.close, broker.close, reviewer.close)
    const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    bridgeKey = privateKey
    scene = await openOnMainnet(
      base,
      {
        BRIDGE_API_URL: bridge.url,
        BRIDGE_API_KEY: 'secret',
        BRIDGE_WEBHOOK_PUBLIC_KEY: String(publicKey.export({ format: 'pem', type: 'spki' })),
        ALPACA_URL: broker.url,
        ALPACA_DATA_URL: broker.url,
        ALPACA_API_KEY: 'key',
        ALPACA_API_SECRET: 'secret',
        ALPACA_FIRM_ACCOUNT_ID: broker.firm.id,
        ...reviewer.env,
      },
      ['bank-deposit', 'bank-payout', 'investing'],
    )
    closing.push(scene.close)
    ada = await scene.newOwner('ada@example.com')
    bob = await scene.newOwner('bob@example.com')
  }, 120_000)
  afterAll(async () => {
    for (const close of closing.reverse()) await close()
  }, 60_000)

  const origin = () => scene.production.gateway().origin
  const ofAda = (): Owner => {
    if (ada === undefined) throw new Error('the scene is not open')
    return ada
  }
  const ofBob = (): Owner => {
    if (bob === undefined) throw new Error('the scene is not open')
    return bob
  }
  const readUsdc = async (person: Person) => {
    const rows = z
      .array(z.looseObject({ token: z.string(), amount: z.string(), held: z.string() }))
      .parse((await person.send('GET', '/api/wallets')).body.balances)
    return rows.find(({ token }) => token === 'USDC')
  }
  /** A webhook of the bank. @returns the status of the answer. */
  const tellBank = async (category: string, object: { id: string; [member: string]: unknown }) => {
    const body = JSON.stringify({
      ...{ api_version: 'v0', event_id: `wh_${randomUUID()}`, event_category: category },
      ...{ event_type: 'updated.status_transitioned', event_object_id: object.id },
      ...{ event_object_status: object.state, event_object: object, event_object_changes: {} },
      event_created_at: new Date().toISOString(),
    })
    const signature = signBankingWebhook(body, { key: bridgeKey, at: new Date() })
    const { status } = await fetch(`${origin()}/api/webhooks/bridge`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-webhook-signature': signature },
      body,
    })
    return status
  }

  it('prove who they are on the reviewer’s page, and the verdict comes by webhook', async () => {
    for (const [person, firstName] of [
      [ofAda(), 'Ada'],
      [ofBob(), 'Robert'],
    ] as const) {
      const applicant = describeApplicant(firstName, `${firstName.toLowerCase()}@example.com`)
      // Identity comes first: neither the bank nor the broker opens anything without it.
      expect(await person.send('POST', '/api/banking/customer', {})).toMatchObject({
        status: 403,
        body: { code: 'kyc_required' },
      })
      expect(await person.send('POST', '/api/investing/account', answers)).toMatchObject({
        status: 403,
        body: { code: 'kyc_required' },
      })
      const applied = await person.send('POST', '/api/compliance/kyc', { applicant })
      expect(applied).toMatchObject({ status: 200, body: { status: 'pending' } })
      const page = await person.send('POST', '/api/compliance/kyc/page', {})
      expect(page.body.url).toMatch(/^https:\/\/in\.sumsub\.example\//)
      const kept = [...reviewer.applicants.values()].at(-1)
      if (kept === undefined) throw new Error('the reviewer knows no applicant')
      expect(kept).toMatchObject({
        externalUserId: applied.body.id,
        fixedInfo: { dob: '1990-12-10', country: 'DEU', addresses: [{ town: 'Berlin', postCode: '10117' }] },
        review: { reviewStatus: 'init' },
      })
      reviewer.decide(kept, 'GREEN')
      expect(await reviewer.notify(origin(), kept)).toBe(200)
      expect((await person.send('POST', '/api/compliance/kyc', {})).body.status).toBe('approved')
    }
  }, 30_000)

  it('become customers of the bank by its own pages, and open accounts', async () => {
    for (const person of [ofAda(), ofBob()]) {
      const started = await person.send('POST', '/api/banking/customer', {})
      expect(started).toMatchObject({
        status: 200,
        body: {
          status: 'open',
          kycUrl: expect.stringContaining('https'),
          termsUrl: expect.stringContaining('https'),
        },
      })
      const refused = await person.send('POST', '/api/banking', { currency: 'USD' })
      expect(refused).toMatchObject({ status: 403, body: { code: 'kyc_required' } })
      const link = [...bridge.links.values()].at(-1)
      if (link === undefined) throw new Error('the bank knows no customer')
      const customer_id = `cust_${bridge.links.size}`
      Object.assign(link, { kyc_status: 'approved', tos_status: 'approved', customer_id })
      expect(await tellBank('kyc_link', { id: link.id, customer_id, state: 'approved' })).toBe(200)
      expect((await person.send('GET', '/api/banking/customer')).body).toEqual({
        status: 'approved',
        kycUrl: null,
        termsUrl: null,
      })
      const opened = await person.send('POST', '/api/banking', { currency: 'USD' })
      expect(opened).toMatchObject({
        status: 200,
        body: {
          status: 'active',
          instructions: { routingNumber: '101019644', accountNumber: '123456789' },
          destination: { token: 'USDC', chain: 'base', address: person.safe },
        },
      })
    }
    expect([...bridge.links.values()].map(({ full_name }) => full_name)).toEqual([
      'Ada Lovelace',
      'Robert Lovelace',
    ])
  }, 30_000)

  it('receive bank deposits on the chain: the bank’s word moves nothing', async () => {
    const deposit = {
      ...{ virtual_account_id: 'va_of_cust_1', customer_id: 'cust_1', deposit_id: 'dep_1', currency: 'usd' },
      source: { sender_name: 'Grace Hopper' },
    }
    for (const state of ['funds_received', 'payment_submitted', 'payment_processed'])
      expect(
        await tellBank('virtual_account.activity', {
          id: `act_${state}`,
          ...deposit,
          state,
          amount: '300.0',
        }),
      ).toBe(200)
    expect(await readUsdc(ofAda())).toMatchObject({ amount: '0' })
    await base.pay(ofAda().safe, 300_000_000n)
    await expect.poll(() => readUsdc(ofAda()), SLOW).toMatchObject({ amount: '300', held: '0' })
    expect(await readUsdc(ofBob())).toMatchObject({ amount: '0' })
  }, 90_000)

  it('pay out to a saved recipient: quoted, held, funded on the chain, and settled by the bank’s webhook', async () => {
    const { body: recipient } = await ofAda().send('POST', '/api/banking/recipients', american)
    expect(recipient).toMatchObject({ status: 'active', last4: '6789' })
    // An agent pays, within the allowance that its owner signed.
    const { body: key } = await ofAda().send('POST', '/api/developer/keys', {
      name: 'Payer',
      scopes: ['banking:pay'],
      policy: {
        perTransaction: { max: '60' },
        dailyBudget: { max: '100' },
        categories: { allow: ['payout'] },
      },
    })
    const byKey = (method: string, path: string, body?: unknown, idempotency: string = randomUUID()) =>
      requestJson(origin(), method, path, {
        ...(body === undefined ? {} : { body }),
        headers: { authorization: `Bearer ${String(key.key)}`, 'idempotency-key': idempotency },
      })
    const payout = { recipientId: recipient.id, amount: '50', asset: 'USDC', reference: 'Rent' }
    // Without an allowance on the chain nothing is sent, and the money is available again.
    const unfunded = await byKey('POST', '/api/banking/payouts', payout)
    // A slow chain says so later.
    if (unfunded.status === 200)
      await expect
        .poll(() => ofAda().send('GET', `/api/banking/payouts/${String(unfunded.body.id)}`), UNTIL_EXPIRED)
        .toMatchObject({ body: { status: 'failed', reason: 'not_funded' } })
    else
      expect(unfunded).toMatchObject({ status: 422, body: { code: 'payout_rejected', reason: 'not_funded' } })
    await expect.poll(() => readUsdc(ofAda()), SLOW).toMatchObject({ amount: '300', held: '0' })
    const intent = await ofAda().send('POST', '/api/wallets/allowances/intent', {
      agentId: key.id,
      dailyMax: '100',
    })
    const signed = ofAda().sign(intent.body)
    await expect
      .poll(async () => (await ofAda().send('POST', '/api/wallets/allowances', signed)).status, SLOW)
      .toBe(200)
    const sent = await byKey('POST', '/api/banking/payouts', payout, 'rent')
    expect(sent).toMatchObject({
      status: 200,
      body: { status: 'pending', amount: '50', currency: 'USD', recipientAmount: '50', rate: '1' },
    })
    const at = [...bridge.transfers.values()].find(
      ({ client_reference_id: reference }) => reference === sent.body.id,
    )
    if (at === undefined) throw new Error('the bank knows no such payout')
    expect(at).toMatchObject({
      on_behalf_of: 'cust_1',
      source: { payment_rail: 'base', from_address: ofAda().safe.toLowerCase() },
      destination: { payment_rail: 'ach', external_account_id: 'ext_1', ach_reference: 'Rent' },
    })
    await expect
      .poll(() => base.readBalance(at.source_deposit_instructions.to_address), SLOW)
      .toBe(50_000_000n)
    await expect.poll(() => readUsdc(ofAda()), SLOW).toMatchObject({ amount: '250', held: '0' })
    for (const [state, status] of [
      ['funds_received', 'pending'],
      ['payment_submitted', 'sent'],
      ['payment_processed', 'paid'],
    ] as const) {
      at.state = state
      expect(await tellBank('transfer', { ...at, state })).toBe(200)
      const path = `/api/banking/payouts/${String(sent.body.id)}`
      expect((await ofAda().send('GET', path)).body.status).toBe(status)
      expect((await ofBob().send('GET', path)).status).toBe(404)
    }
    // The same call again is the same payout, and Bob can pay to none of Ada's recipients.
    expect((await byKey('POST', '/api/banking/payouts', payout, 'rent')).body.id).toBe(sent.body.id)
    expect((await ofBob().send('POST', '/api/banking/payouts', payout)).status).toBe(404)
  }, 480_000)

  it('pay out by the passkey that owns the wallet, also when the gateway is killed before it is signed', async () => {
    const { body: listed } = await ofAda().send('GET', '/api/banking/recipients')
    const [{ id: recipientId }] = z.tuple([z.looseObject({ id: z.string() })]).parse(listed.recipients)
    const payout = { recipientId, amount: '20', asset: 'USDC', reference: 'Flat' }
    const path = '/api/banking/payouts'
    // The wallet is hers alone: nothing leaves it without her signature.
    expect(await ofAda().send('POST', path, payout)).toMatchObject({
      status: 403,
      body: { code: 'signature_rejected' },
    })
    const intent = await ofAda().send('POST', `${path}/intent`, payout)
    expect(intent).toMatchObject({ status: 200, body: { currency: 'USD', recipientAmount: '20' } })
    const { payoutId } = z.looseObject({ payoutId: z.string() }).parse(intent.body.intent)
    const at = [...bridge.transfers.values()].find(({ client_reference_id: id }) => id === payoutId)
    if (at === undefined) throw new Error('the bank knows no such payout')
    expect([at.state, await readUsdc(ofAda())]).toMatchObject([
      'awaiting_funds',
      { amount: '250', held: '0' },
    ])
    await scene.killAndStart()
    const signed = { ...payout, ...ofAda().sign(intent.body) }
    const sent = await ofAda().send('POST', path, signed, { 'Idempotency-Key': randomUUID() })
    expect(sent).toMatchObject({ status: 200, body: { id: payoutId, status: 'pending' } })
    const { to_address: to } = at.source_deposit_instructions
    await expect.poll(() => base.readBalance(to), SLOW).toBe(20_000_000n)
    await expect.poll(() => readUsdc(ofAda()), SLOW).toMatchObject({ amount: '230', held: '0' })
    expect((await ofAda().send('POST', path, signed)).body.code).toBe('signature_rejected')
    at.state = 'payment_processed'
    expect(await tellBank('transfer', { ...at })).toBe(200)
    expect((await ofAda().send('GET', `${path}/${payoutId}`)).body.status).toBe('paid')
  }, 120_000)

  it('invest the cash of refunds in accounts of their own, which never mix', async () => {
    const people = [ofAda(), ofBob()]
    for (const person of people) {
      const opened = await person.send('POST', '/api/investing/account', answers)
      expect(opened).toMatchObject({ status: 200, body: { status: 'active' } })
      const issued = await person.send('POST', '/api/cards', {})
      expect(issued).toMatchObject({ status: 200 })
      // The merchant's money comes back by the card network, as dollars.
      const token = randomUUID()
      await scene.tellLithic({
        ...{ token, card_token: scene.vendors.lastToken(), event_type: 'card_transaction.updated' },
        status: 'SETTLED',
        events: [{ token: `${token}-r`, type: 'RETURN', amount: -5_000, result: 'APPROVED' }],
      })
    }
    const readHeld = async (person: Person) => {
      const { body } = await person.send('GET', '/api/investing/portfolio')
      const holdings = z.array(z.object({ symbol: z.string(), qty: z.string() })).parse(body.holdings)
      return [body.cash, ...holdings.map(({ symbol, qty }) => `${symbol} ${qty}`)]
    }
    expect(await Promise.all(people.map(readHeld))).toEqual([['50'], ['50']])
    const order = (person: Person, input: object) =>
      person.send('POST', '/api/investing/order', { symbol: 'VTI', side: 'buy', ...input })
    const firm = broker.firm.cash
    for (const [person, notional] of [
      [ofAda(), '30'],
      [ofBob(), '20'],
    ] as const)
      expect(await order(person, { notional })).toMatchObject({ status: 200 })
    await expect
      .poll(() => Promise.all(people.map(readHeld)), SLOW)
      .toEqual([
        ['20', 'VTI 0.300000000'],
        ['30', 'VTI 0.200000000'],
      ])
    expect(firm - broker.firm.cash).toBe(50)
    const atBroker = [...broker.accounts.values()].filter((account) => account !== broker.firm)
    expect(atBroker.map(({ identity, shares }) => [identity?.given_name, shares])).toEqual([
      ['Ada', 0.3],
      ['Robert', 0.2],
    ])
    // Bob sells more than is his: Ada's shares do not pay for it.
    expect(await order(ofBob(), { side: 'sell', notional: '25' })).toMatchObject({
      status: 422,
      body: { code: 'insufficient_funds' },
    })
    expect(await order(ofBob(), { side: 'sell', notional: '10' })).toMatchObject({ status: 200 })
    await expect.poll(() => readHeld(ofBob()), SLOW).toEqual(['40', 'VTI 0.100000000'])
    expect(await readHeld(ofAda())).toEqual(['20', 'VTI 0.300000000'])
  }, 120_000)

  it('leave balanced books, nothing held, and an audit chain that verifies', async () => {
    const { databaseUrl } = scene.production
    const database = await openPostgres({ url: databaseUrl })
    try {
      expect(await trialBalance(database)).toMatchObject({ balanced: true, drifts: [] })
      const { kysely } = database
      const open = kysely.selectFrom('reservation').select('decision_id').where('status', '=', 'reserved')
      expect(await open.execute()).toEqual([])
      const alarms = kysely.selectFrom('alarm').select(['domain', 'reason'])
      expect(await alarms.execute()).toEqual([])
    } finally {
      await database.close()
    }
    const verify = () => bursar(['audit', 'verify'], { DATABASE_URL: databaseUrl, DATA_KEY: 'd'.repeat(32) })
    await expect.poll(async () => (await verify()).code, SLOW).toBe(0)
    expect(scene.production.gateway().output()).not.toMatch(/Unter den Linden|123456789|\?t=private/)
  }, 90_000)
})
