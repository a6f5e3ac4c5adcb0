/**
 * Banking over real HTTP, on the built gateway: accounts in four currencies, deposits by signed webhooks, and spending
 * them.
 */
import { createPrivateKey, generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { signBankingWebhook } from '../../src/providers/banking/signature.ts'
import { signWebhook } from '../../src/providers/standard-webhooks.ts'
import { ecbDocument, type Feed, startFeed } from '../contracts/ecb-feed.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { newGuest, type Person, requestJson, signInByEmail } from './people.ts'

const accounts = z.object({
  accounts: z.array(z.looseObject({ id: z.string(), currency: z.string(), status: z.string() })),
})
const wallet = z.object({ balances: z.array(z.object({ token: z.string(), amount: z.string() })) })
const cards = z.object({ cards: z.array(z.looseObject({ id: z.string() })) })

const bridge = generateKeyPairSync('rsa', { modulusLength: 2048 })
const directory = mkdtempSync(join(tmpdir(), 'bursar-bridge-'))
const bridgeKeyFile = join(directory, 'bridge.pem')
writeFileSync(bridgeKeyFile, bridge.publicKey.export({ type: 'spki', format: 'pem' }))

let feed: Feed
let gateway: Gateway
let key: KeyObject
let lithicSecret: string
beforeAll(async () => {
  feed = await startFeed(ecbDocument(new Date().toISOString().slice(0, 10)))
  gateway = await startGateway({
    CHAIN: 'simulated',
    FX_RATES_URL: feed.url,
    BRIDGE_WEBHOOK_PUBLIC_KEY_FILE: bridgeKeyFile,
  })
  const { body } = await requestJson(gateway.origin, 'GET', '/sandbox/credentials')
  const secrets = z
    .object({ bridgeWebhookPrivateKey: z.string(), lithicWebhookSecret: z.string() })
    .parse(body)
  key = createPrivateKey(secrets.bridgeWebhookPrivateKey)
  lithicSecret = secrets.lithicWebhookSecret
})
afterAll(async () => {
  await feed?.close()
  await gateway?.stop()
  rmSync(directory, { recursive: true, force: true })
})

async function readBalance(person: Person, token: string): Promise<string | undefined> {
  const { body } = await person.send('GET', '/api/wallets')
  return wallet.parse(body).balances.find((each) => each.token === token)?.amount
}

const readAccounts = async (person: Person) =>
  accounts.parse((await person.send('GET', '/api/banking')).body).accounts

async function hook(
  event: Record<string, unknown>,
  { at = new Date(), sentBody, signer = key }: { at?: Date; sentBody?: string; signer?: KeyObject } = {},
) {
  const body = JSON.stringify({
    api_version: 'v0',
    event_id: randomUUID(),
    event_category: 'virtual_account.activity',
    event_type: 'updated.status_transitioned',
    event_object_id: randomUUID(),
    ...event,
  })
  const response = await fetch(`${gateway.origin}/api/webhooks/bridge`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-webhook-signature': signBankingWebhook(body, { key: signer, at }),
    },
    body: sentBody ?? body,
  })
  return { status: response.status, body: z.record(z.string(), z.unknown()).parse(await response.json()) }
}

describe('an unknown webhook state', () => {
  it('has no effect, even when it is the name of an Object.prototype member', async () => {
    const guest = await newGuest(gateway.origin)
    const [account] = await readAccounts(guest)
    for (const state of ['constructor', 'toString', '__proto__', 'hasOwnProperty', 'valueOf'])
      for (const event_category of ['virtual_account.activity', 'transfer']) {
        const event_object = { virtual_account_id: account?.id, amount: '1', currency: 'usd', type: state }
        const answer = await hook({ event_category, event_object_status: state, event_object })
        expect([state, event_category, answer.status]).toEqual([state, event_category, 200])
      }
  })
})

describe('virtual accounts', () => {
  it('are opened once per currency, with instructions of their kind', async () => {
    const guest = await newGuest(gateway.origin)
    expect(await readAccounts(guest)).toMatchObject([{ currency: 'USD', status: 'active' }])
    for (const currency of ['EUR', 'GBP', 'INR', 'USD', 'EUR'])
      await guest.send('POST', '/api/banking', { currency })
    const open = await readAccounts(guest)
    expect(open.map(({ currency }) => currency).sort()).toEqual(['EUR', 'GBP', 'INR', 'USD'])
    expect((await guest.send('POST', '/api/banking', { currency: 'CHF' })).status).toBe(400)
    expect((await guest.send('POST', '/api/banking', { currency: 'EUR', bank: 'x' })).status).toBe(400)
  })

  it('credit a deposit to the wallet once, which can then be spent', async () => {
    const guest = await newGuest(gateway.origin)
    const [account] = await readAccounts(guest)
    const { status } = await requestJson(gateway.origin, 'POST', '/sandbox/deposits', {
      body: { accountId: account?.id, amount: '250.25' },
    })
    expect([status, await readBalance(guest, 'USDC')]).toEqual([200, '1250.25'])
    const { body } = await guest.send('GET', '/api/cards')
    const cardId = cards.parse(body).cards[0]?.id ?? ''
    await guest.send('POST', '/api/cards/settings', { cardId, priority: ['USDC'] })
    const buy = (amount: string) =>
      requestJson(gateway.origin, 'POST', '/sandbox/authorizations', { body: { cardId, amount } })
    expect((await buy('1250.25')).body.result).toBe('APPROVED')
    expect((await buy('0.01')).body.result).toBe('INSUFFICIENT_FUNDS')
    expect(await readBalance(guest, 'USDC')).toBe('0')
  })

  it('convert deposits in another currency, and never leave hidden cash', async () => {
    const guest = await newGuest(gateway.origin)
    const { body: euros } = await guest.send('POST', '/api/banking', { currency: 'EUR' })
    const { body: rupees } = await guest.send('POST', '/api/banking', {
      currency: 'INR',
      destination: { token: 'USDT' },
    })
    expect(await guest.send('POST', '/api/banking', { currency: 'GBP', destination: null })).toMatchObject({
      status: 400,
      body: { issues: [{ path: 'destination' }] },
    })
    for (const accountId of [euros.id, rupees.id])
      await requestJson(gateway.origin, 'POST', '/sandbox/deposits', { body: { accountId, amount: '100' } })
    expect([
      await readBalance(guest, 'EURC'),
      await readBalance(guest, 'USDT'),
      await readBalance(guest, 'USDC'),
    ]).toEqual(['600', '251.199446', '1000'])
  })
})

describe('the banking provider’s webhook', () => {
  const buildEvent = (account: string | undefined, state: string, more: Record<string, unknown> = {}) => ({
    event_object_status: state,
    event_object: { virtual_account_id: account, amount: '10.00' },
    ...more,
  })

  it('credits once when events are repeated, out of order or concurrent', async () => {
    const guest = await newGuest(gateway.origin)
    const [account] = await readAccounts(guest)
    const object = { event_object_id: randomUUID() }
    const eventId = randomUUID()
    const final = buildEvent(account?.id, 'payment_processed', { ...object, event_id: eventId })
    const answers = await Promise.all(
      [final, final, final, buildEvent(account?.id, 'funds_received', object)].map((event) => hook(event)),
    )
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect(answers[0]?.body).toEqual({ received: true, eventId })
    await hook(buildEvent(account?.id, 'payment_processed', object))
    expect(await readBalance(guest, 'USDC')).toBe('1010')
  })

  it('rejects deposits to a closed account', async () => {
    const guest = await newGuest(gateway.origin)
    const [account] = await readAccounts(guest)
    await hook(buildEvent(account?.id, 'deactivation'))
    const deposit = { body: { accountId: account?.id, amount: '1' } }
    expect(await requestJson(gateway.origin, 'POST', '/sandbox/deposits', deposit)).toMatchObject({
      status: 409,
    })
    expect(await readBalance(guest, 'USDC')).toBe('1000')
    const { body: another } = await guest.send('POST', '/api/banking', { currency: 'USD' })
    expect(another).toMatchObject({ status: 'active' })
    expect(another.id).not.toBe(account?.id)
  })

  it('reverses the cash that is left, and recovers the shortfall from later deposits', async () => {
    const person = await signInByEmail(gateway.origin, 'cash@example.org')
    const { body: cash } = await person.send('POST', '/api/banking', { currency: 'USD', destination: null })
    const { body: card } = await person.send('POST', '/api/cards', { priority: ['USD'] })
    const spendable = async () =>
      z.object({ buyingPower: z.string() }).parse((await person.send('GET', '/api/investing/portfolio')).body)
        .buyingPower
    const deposit = { event_object_id: randomUUID() }
    await hook(buildEvent(`${cash.id}`, 'payment_processed', deposit))
    const purchase = { body: { cardId: card.id, amount: '4' } }
    expect(await requestJson(gateway.origin, 'POST', '/sandbox/authorizations', purchase)).toMatchObject({
      body: { result: 'APPROVED' },
    })
    expect(await spendable()).toBe('6')
    await hook(buildEvent(`${cash.id}`, 'returned', deposit))
    expect(await spendable()).toBe('0')
    await hook(buildEvent(`${cash.id}`, 'payment_processed'))
    await expect.poll(spendable, { timeout: 20_000 }).toBe('6')
  }, 30_000)

  it('rejects webhooks that are unsigned, signed for another body, or old', async () => {
    const guest = await newGuest(gateway.origin)
    const [account] = await readAccounts(guest)
    const event = buildEvent(account?.id, 'payment_processed')
    const refused = [
      await hook(event, { sentBody: JSON.stringify(event) }),
      await hook(event, { at: new Date(Date.now() - 601_000) }),
      await requestJson(gateway.origin, 'POST', '/api/webhooks/bridge', { body: event }),
    ]
    expect(refused.map(({ status, body }) => `${status} ${body.code}`)).toEqual(
      Array(3).fill('401 signature_invalid'),
    )
    expect(await readBalance(guest, 'USDC')).toBe('1000')
  })

  it('stores unknown events without any effect', async () => {
    expect((await hook({ event_category: 'card_account', event_type: 'created' })).status).toBe(200)
    expect((await hook(buildEvent('nobody', 'payment_processed'))).status).toBe(200)
    expect((await hook({ event_id: null })).status).toBe(400)
    expect((await hook({ event_id: 'x', padding: 'x'.repeat(70_000) })).status).toBe(413)
  })
})

describe('Bridge’s own webhooks, in the sandbox', () => {
  const events = (virtualAccount: unknown, depositId: string) =>
    (
      [
        ['funds_received', '100.00', 'usd'],
        ['payment_submitted', '99.75', 'usdc'],
        ['payment_processed', '99.75', 'usdc'],
      ] as const
    ).map(([type, amount, currency]) => ({
      event_object_id: randomUUID(),
      event_object: { type, amount, currency, virtual_account_id: virtualAccount, deposit_id: depositId },
    }))

  it('credit the tokens that arrived, once, despite redeliveries', async () => {
    const guest = await newGuest(gateway.origin)
    const [account] = await readAccounts(guest)
    const signer = bridge.privateKey
    const answer = events(account?.id, randomUUID())
    for (const event of [...answer, ...answer]) expect((await hook(event, { signer })).status).toBe(200)
    expect(await readBalance(guest, 'USDC')).toBe('1099.75')
  })

  it('credit no more than was paid in, and only in the account’s destination token', async () => {
    const guest = await newGuest(gateway.origin)
    const [account] = await readAccounts(guest)
    for (const changes of [{ amount: '100.01' }, { currency: 'eurc' }]) {
      const [received, , processed] = events(account?.id, randomUUID())
      await hook(received ?? {}, { signer: bridge.privateKey })
      const event = { ...processed, event_object: { ...processed?.event_object, ...changes } }
      expect((await hook(event, { signer: bridge.privateKey })).status).toBe(400)
    }
    expect(await readBalance(guest, 'USDC')).toBe('1000')
  })

  it('are rejected when signed by any other key', async () => {
    const other = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
    const [event] = events('va_1', randomUUID())
    expect(await hook(event ?? {}, { signer: other })).toMatchObject({
      status: 401,
      body: { code: 'signature_invalid' },
    })
  })
})

it('returns the account’s existing destination when another one is requested', async () => {
  const guest = await newGuest(gateway.origin)
  const [usd] = await readAccounts(guest)
  const openAccount = (body: Record<string, unknown>) =>
    guest.send('POST', '/api/banking', { currency: 'USD', ...body })
  for (const destination of [null, { token: 'USDT' }])
    expect(await openAccount({ destination })).toMatchObject({ status: 409, body: { code: 'conflict' } })
  for (const body of [{}, { destination: { token: 'USDC' } }])
    expect(await openAccount(body)).toMatchObject({ status: 200, body: { id: usd?.id } })
})

it('counts no provider’s webhook in a caller’s limit', async () => {
  const fromLithic = async () => {
    const body = JSON.stringify({ event_type: 'card.created' })
    const signed = signWebhook({ id: randomUUID(), body, at: new Date() }, lithicSecret)
    const headers = { 'content-type': 'application/json', ...signed }
    const { status } = await fetch(`${gateway.origin}/api/webhooks/lithic`, { method: 'POST', headers, body })
    return { status }
  }
  // More than the 150 mutations that a caller may send in a minute.
  const answers = await Promise.all([
    ...Array.from({ length: 160 }, fromLithic),
    ...Array.from({ length: 160 }, () => hook({ event_category: 'card_account', event_type: 'created' })),
  ])
  expect(answers.filter(({ status }) => status !== 200)).toEqual([])
})
