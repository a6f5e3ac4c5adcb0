/** Recorded AML blocks and reviews over real HTTP, on both engines. */
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Chain } from '../../src/providers/chain/port.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { signAuthorization } from '../tools/transfers/signed-payments.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { enrollMfa, newGuest, type Person, requestJson, signInByEmail } from './people.ts'

const sanctioned = `0x${'1'.repeat(36)}9999`
const suspicious = (digit: number) => `0x${String(digit).repeat(36)}8888`
const outsideAddress = `0x${'c1'.repeat(20)}`

const decisions = z.object({
  decisions: z.array(
    z.looseObject({
      decisionId: z.string(),
      operation: z.string(),
      verdict: z.string(),
      receipt: z.string().nullable(),
      violations: z.array(z.looseObject({ rule: z.string() })),
    }),
  ),
})
const reviews = z.object({
  reviews: z.array(
    z.looseObject({
      id: z.string(),
      accountId: z.string(),
      decisionId: z.string(),
      lists: z.array(z.string()),
    }),
  ),
})
const address = z.templateLiteral(['0x', z.string()])
const credentials = z.object({ chain: z.object({ tokens: z.object({ USDC: address }) }) })

describe.each([
  { engine: 'PGlite', isSkipped: false },
  { engine: 'PostgreSQL', isSkipped: testServerUrl === undefined },
])('AML reviews on $engine', ({ engine, isSkipped }) => {
  let gateway: Gateway
  let drop = async () => {}
  let admin: Person
  let payer: Person
  const send = (
    amount: string,
    destination: string,
    headers: Record<string, string> = {},
    recipient = payer,
  ) => recipient.send('POST', '/api/wallets/transfer', { amount, destination, signature: 'sandbox' }, headers)
  const readDecisions = async (recipient: Person) =>
    decisions.parse((await recipient.send('GET', '/api/agents/decisions')).body).decisions
  const open = async (recipient = payer) =>
    reviews
      .parse((await admin.send('GET', '/api/admin/reviews')).body)
      .reviews.filter(({ accountId }) => accountId === recipient.accountId)
  const decide = (id: string | undefined, decision: 'release' | 'block') =>
    admin.send('POST', `/api/admin/reviews/${id}`, { decision, reason: 'The invoice was shown.' })
  beforeAll(async () => {
    if (isSkipped) return
    const created = engine === 'PGlite' ? null : await createTestDatabase(testServerUrl ?? '')
    drop = created?.drop ?? drop
    gateway = await startGateway({
      CHAIN: 'simulated',
      LOG_LEVEL: 'silent',
      AML_VELOCITY: '50/86400',
      TRAVEL_RULE_THRESHOLDS: 'default:20',
      AML_STRUCTURING: '9/86400/80',
      RATE_MUTATIONS: '10000/60',
      RATE_OTP_RESEND: '100/1',
      ...(created === null ? {} : { DATABASE_URL: created.url }),
    })
    admin = await signInByEmail(gateway.origin, `reviewer-${engine.toLowerCase()}@example.com`)
    await admin.send('POST', '/sandbox/admin', {})
    await enrollMfa(admin)
  })
  beforeEach(async () => {
    if (!isSkipped) payer = await newGuest(gateway.origin)
  })
  afterAll(async () => {
    await gateway?.stop()
    await drop()
  })

  it.skipIf(isSkipped)(
    'record a blocked transfer as a denial with a receipt that names the screening',
    async () => {
      const refused = await send('2', sanctioned)
      expect(refused).toMatchObject({
        status: 403,
        body: { code: 'aml_blocked', screening: { result: 'blocked' } },
      })
      const [newest] = await readDecisions(payer)
      expect(newest).toMatchObject({
        decisionId: refused.body.decisionId,
        operation: 'wallets.transfer',
        verdict: 'deny',
        amount: '2',
        violations: [{ rule: 'aml_screening', limit: 'sandbox', requested: 'blocked' }],
      })
      expect(newest?.receipt?.split('.')).toHaveLength(3)
      expect(await open()).toEqual([])
    },
  )

  it.skipIf(isSkipped)('record what is refused before it is signed', async () => {
    const refused = await payer.send('POST', '/api/wallets/transfer/intent', {
      amount: '2',
      destination: sanctioned,
    })
    expect(refused).toMatchObject({ status: 403, body: { code: 'aml_blocked' } })
    expect((await readDecisions(payer))[0]).toMatchObject({
      decisionId: refused.body.decisionId,
      operation: 'wallets.transfer_intent',
      verdict: 'deny',
    })
  })

  it.skipIf(isSkipped)('record a blocked relay', async () => {
    const { chain } = credentials.parse(
      (await requestJson(gateway.origin, 'GET', '/sandbox/credentials')).body,
    )
    const holder = privateKeyToAccount(generatePrivateKey())
    await requestJson(gateway.origin, 'POST', '/sandbox/faucet', {
      body: { address: holder.address, token: 'USDC', amount: '1' },
    })
    // Signing reads only the chain's id and the token's address.
    const known = { id: 84532, tokens: chain.tokens } as unknown as Chain
    const authorization = await signAuthorization(known, holder, { to: address.parse(sanctioned) })
    const refused = await payer.send('POST', '/api/transfers/gasless', { token: 'USDC', authorization })
    expect(refused).toMatchObject({ status: 403, body: { code: 'aml_blocked' } })
    expect((await readDecisions(payer))[0]).toMatchObject({
      decisionId: refused.body.decisionId,
      operation: 'transfers.gasless',
      violations: [{ rule: 'aml_screening' }],
    })
  })

  it.skipIf(isSkipped)(
    'list every other violated rule beside the screening of an agent’s transfer',
    async () => {
      const policy = {
        perTransaction: { max: '1' },
        dailyBudget: { max: '5' },
        categories: { allow: ['transfer'] },
      }
      const key = await payer.send('POST', '/api/developer/keys', {
        name: 'K',
        scopes: ['wallets:transfer'],
        policy,
      })
      const refused = await requestJson(gateway.origin, 'POST', '/api/wallets/transfer', {
        body: { amount: '2', destination: sanctioned, signature: 'x' },
        headers: { authorization: `Bearer ${String(key.body.key)}` },
      })
      expect(refused).toMatchObject({
        status: 403,
        body: { code: 'aml_blocked', violations: [{ rule: 'per_transaction' }, { rule: 'aml_screening' }] },
      })
    },
  )

  it.skipIf(isSkipped)('let exactly the released transfer pass, once, among 20 parallel calls', async () => {
    const destination = suspicious(2)
    const refused = await send('3', destination, { 'idempotency-key': `first-${engine}` })
    expect(refused).toMatchObject({
      status: 403,
      body: { screening: { result: 'review', lists: ['sandbox'] } },
    })
    expect(String(refused.body.hint)).toContain('/api/admin/reviews')
    await send('3', destination)
    const [review, ...others] = await open()
    expect(others).toEqual([])
    expect(review).toMatchObject({
      decisionId: refused.body.decisionId,
      operation: 'wallets.transfer',
      amount: '3',
      asset: 'USDC',
      counterparty: destination,
      lists: ['sandbox'],
      status: 'open',
    })
    expect(await decide(review?.id, 'release')).toMatchObject({ status: 200, body: { status: 'released' } })
    expect(await decide(review?.id, 'block')).toMatchObject({ status: 409 })
    expect((await send('4', destination)).status).toBe(403)
    const answers = await Promise.all(Array.from({ length: 20 }, () => send('3', destination)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    for (const { status, body } of answers.filter(({ status }) => status !== 200))
      expect({ status, code: body.code }).toEqual({ status: 403, code: 'aml_blocked' })
  })

  it.skipIf(isSkipped)('let the call with the same idempotency key pass once it is released', async () => {
    const key = { 'idempotency-key': `again-${engine}` }
    const destination = suspicious(3)
    expect((await send('1', destination, key)).status).toBe(403)
    const review = (await open()).find(({ counterparty }) => counterparty === destination)
    await decide(review?.id, 'release')
    const sent = await send('1', destination, key)
    expect(sent.status).toBe(200)
    expect((await send('1', destination, key)).body.transferId).toBe(sent.body.transferId)
    expect((await send('1', destination)).status).toBe(403)
  })

  it.skipIf(isSkipped)('keep a rejected transfer blocked, without a second review', async () => {
    const destination = suspicious(4)
    await send('5', destination)
    const review = (await open()).find(({ counterparty }) => counterparty === destination)
    expect((await decide(review?.id, 'block')).body).toMatchObject({ status: 'blocked', releasedUntil: null })
    expect(await send('5', destination)).toMatchObject({
      status: 403,
      body: { code: 'aml_blocked', screening: { result: 'blocked' } },
    })
    expect((await open()).filter(({ counterparty }) => counterparty === destination)).toEqual([])
  })

  it.skipIf(isSkipped)(
    'release a transfer beyond a velocity window, even when parallel calls fill it',
    async () => {
      const person = await newGuest(gateway.origin)
      const filled = await Promise.all(
        Array.from({ length: 6 }, () => send('15', outsideAddress, {}, person)),
      )
      expect(filled.filter(({ status }) => status === 200)).toHaveLength(3)
      const denied = (await readDecisions(person)).filter(({ verdict }) => verdict === 'deny')
      expect(denied).toHaveLength(3)
      for (const { violations, receipt } of denied) {
        expect(violations).toMatchObject([{ rule: 'aml_screening', limit: 'velocity', requested: 'review' }])
        expect(receipt).not.toBeNull()
      }
      const [review, ...others] = await open(person)
      expect(others).toEqual([])
      await decide(review?.id, 'release')
      expect((await send('15', outsideAddress, {}, person)).status).toBe(200)
      expect((await send('15', outsideAddress, {}, person)).status).toBe(403)
    },
  )

  it.skipIf(isSkipped)('open no review for a transfer that only lacks its Travel Rule data', async () => {
    const person = await newGuest(gateway.origin)
    const refused = await send('20', outsideAddress, {}, person)
    expect(refused.body.screening).toEqual({ result: 'review', lists: ['travel_rule'] })
    expect((await readDecisions(person))[0]).toMatchObject({
      decisionId: refused.body.decisionId,
      verdict: 'deny',
    })
    expect(await open(person)).toEqual([])
  })

  it.skipIf(isSkipped)(
    'need an administrator with a fresh second factor, and exclude the administrator’s own money',
    async () => {
      expect((await payer.send('GET', '/api/admin/reviews')).status).toBe(403)
      const refused = await send('1', suspicious(5), {}, admin)
      expect(refused.body.code).toBe('aml_blocked')
      const [own] = await open(admin)
      expect(await decide(own?.id, 'release')).toMatchObject({ status: 409, body: { code: 'conflict' } })
      expect(await decide('rev_00000000000000000000000000', 'release')).toMatchObject({ status: 404 })
    },
  )
})
