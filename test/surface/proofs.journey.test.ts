/**
 * The proof of a person, over real HTTP: every operation that declares one, tried with a session that has not given it, in the
 * sandbox and in production. The operations come from the catalogue.
 */
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Tool } from '../../src/kernel/tool.ts'
import { tools } from '../../tools/index.ts'
import { testServerUrl } from '../engines.ts'
import { sharedGateway } from '../journeys/gateway.ts'
import { enrollMfa, newMailbox, type Person, requestJson, signInByEmail } from '../journeys/people.ts'
import { openProduction, type Production } from '../journeys/production-gateway.ts'
import { exampleRequest } from './example-request.ts'

// What is sold over REST is paid by the request itself, whoever sends it.
const proven = tools.filter(
  ({ proof, isSold }) => ['recent', 'step-up', 'signature'].includes(proof) && !isSold,
)
const signed = tools.filter(({ proof }) => proof === 'signature')
const policy = {
  perTransaction: { max: '100' },
  dailyBudget: { max: '1000' },
  categories: { allow: ['transfer', 'x402', 'invest'] },
}
const payee = () => privateKeyToAccount(generatePrivateKey()).address

async function readCode(person: Person, tool: Tool, changes: Record<string, unknown> = {}) {
  const { method, target, body } = exampleRequest(tool, tool.route, changes)
  const answer = await person.send(method, target, body === undefined ? undefined : JSON.parse(body))
  return `${tool.name}: ${answer.status} ${answer.body.code}`
}

/** What an account has and has promised. */
async function readState(person: Person) {
  const paths = ['/api/wallets', '/api/cards', '/api/investing/portfolio', '/api/banking/payouts']
  const read = paths.map(async (path) => (await person.send('GET', path)).body)
  const [wallet, cards, portfolio, payouts] = await Promise.all(read)
  return { balances: wallet?.balances, cards: cards?.cards, cash: portfolio?.cash, payouts: payouts?.payouts }
}

/** Signs in, funded, with a second factor that another session has shown. */
async function newStale(origin: string) {
  const mailbox = newMailbox('stale')
  const stepped = await signInByEmail(origin, mailbox)
  await stepped.send('POST', '/sandbox/faucet', {})
  await enrollMfa(stepped)
  return { stepped, stale: await signInByEmail(origin, mailbox) }
}

describe('the proof of a person in the sandbox', () => {
  const origin = sharedGateway()

  it('is asked of a session without its second factor, by every operation that declares one', async () => {
    const { stale } = await newStale(origin)
    await stale.send('POST', '/sandbox/admin', {})
    const before = await readState(stale)
    const answers: string[] = []
    for (const tool of proven)
      for (const changes of tool.proof === 'signature' ? [{}, { signature: 'x' }] : [{}])
        answers.push(await readCode(stale, tool, changes))
    expect(answers.filter((answer) => !answer.endsWith(': 401 step_up_required'))).toEqual([])
    expect(await readState(stale)).toEqual(before)
  })

  it('is asked by operations that need one for some of their inputs', async () => {
    const { stale } = await newStale(origin)
    const asking: Readonly<Record<string, object>> = {
      'approvals.decide': { decision: 'approve' },
      'auth.otp.verify': { link: true },
      'auth.webauthn': {},
      'compliance.kyc': {},
      'notifications.subscriptions.create': {},
      'security.mfa': { action: 'enroll' },
    }
    const conditional = tools.filter(({ proof }) => proof === 'conditional')
    expect(conditional.map(({ name }) => name).sort()).toEqual(Object.keys(asking))
    const answers: string[] = []
    for (const tool of conditional) answers.push(await readCode(stale, tool, { ...asking[tool.name] }))
    expect(answers.filter((answer) => !answer.endsWith(': 401 step_up_required'))).toEqual([])
  })

  it('is the signature where the account has a signer, whatever else the session shows', async () => {
    const { person } = await newKeyed(origin)
    await enrollMfa(person)
    const before = await readState(person)
    for (const tool of signed.filter(({ effect }) => effect === 'spend'))
      for (const changes of [{}, { signature: 'x' }, { signature: `0x${'1'.repeat(130)}` }]) {
        const sold = tool.name === 'purchases.buy' ? { url: (await readSellers(origin)).url } : {}
        expect(await readCode(person, tool, { ...sold, ...changes })).toBe(
          `${tool.name}: 403 signature_rejected`,
        )
      }
    expect(await readState(person)).toEqual(before)
  })

  it('lets a session with its second factor pay, and keys by their policy alone', async () => {
    const { stepped, stale } = await newStale(origin)
    const { body } = await stepped.send('POST', '/api/developer/keys', {
      name: 'Payer',
      scopes: ['wallets:transfer', 'purchases:pay'],
      policy,
    })
    const authorization = `Bearer ${z.string().parse(body.key)}`
    const byKey: Person['send'] = (method, path, sent) =>
      requestJson(origin, method, path, { body: sent, headers: { authorization } })
    const { url } = await readSellers(origin)
    const transfer = { destination: payee(), amount: '1', signature: 'x' }
    const { signature: _, ...unsigned } = transfer
    const purchase = { url, maxAmount: '0.5' }
    expect(await stale.send('POST', '/api/wallets/transfer', transfer)).toMatchObject({ status: 401 })
    expect(await stale.send('POST', '/api/purchases', purchase)).toMatchObject({ status: 401 })
    expect(await stepped.send('POST', '/api/wallets/transfer', transfer)).toMatchObject({ status: 200 })
    expect(await stepped.send('POST', '/api/purchases', purchase)).toMatchObject({
      status: 200,
      body: { status: 'delivered' },
    })
    expect(await byKey('POST', '/api/wallets/transfer', unsigned)).toMatchObject({ status: 200 })
    expect(await byKey('POST', '/api/purchases', purchase)).toMatchObject({
      status: 200,
      body: { status: 'delivered' },
    })
  })

  it('pays a purchase that the owner signed: this request to this payee, once', {
    timeout: 60_000,
  }, async () => {
    const { person, sign } = await newKeyed(origin)
    const { url, other } = await readSellers(origin)
    const asked = { url, maxAmount: '0.5' }
    const intent = async (input: object) => {
      const { status, body } = await person.send('POST', '/api/purchases/intent', input)
      expect([status, body.code]).toEqual([200, undefined])
      return { intentId: z.string().parse(body.intentId), signature: await sign(body.typedData) }
    }
    const proof = await intent(asked)
    const rejected = { status: 403, body: { code: 'signature_rejected' } }
    const buy = (input: object, key?: string) =>
      person.send('POST', '/api/purchases', input, key === undefined ? {} : { 'idempotency-key': key })
    // Another seller, another request of the same price, and a transfer's signature.
    expect(await buy({ ...asked, url: other, ...proof })).toMatchObject(rejected)
    expect(await buy({ ...asked, url: `${url}?more=1`, ...proof })).toMatchObject(rejected)
    expect(await buy({ ...asked, headers: { 'x-more': '1' }, ...proof })).toMatchObject(rejected)
    const plain = await person.send('POST', '/api/wallets/transfer/intent', {
      destination: payee(),
      amount: '0.01',
    })
    const signature = await sign(plain.body.typedData)
    expect(await buy({ ...asked, intentId: plain.body.intentId, signature })).toMatchObject(rejected)
    const bought = await buy({ ...asked, ...proof }, 'bought')
    expect(bought).toMatchObject({ status: 200, body: { status: 'delivered', replayed: false } })
    expect(await buy({ ...asked, ...proof }, 'bought')).toMatchObject({
      status: 200,
      body: { purchaseId: bought.body.purchaseId, replayed: true },
    })
    expect(await buy({ ...asked, ...proof }, 'again')).toMatchObject(rejected)
    const { body } = await person.send('GET', '/api/purchases')
    expect(z.array(z.unknown()).parse(body.purchases)).toHaveLength(1)
  })
})

describe.skipIf(testServerUrl === undefined)('the proof of a person in production', () => {
  let production: Production
  beforeAll(async () => {
    production = await openProduction({ RATE_MUTATIONS: '10000/60' })
  }, 120_000)
  afterAll(() => production?.close())

  it('is asked of every session', { timeout: 120_000 }, async () => {
    const mailbox = 'stale@example.com'
    const first = await production.signIn(mailbox)
    await production.start({ FOUNDER_ACCOUNT: first.accountId })
    const operations = proven.filter(({ only }) => only === undefined)
    const wrong = async (person: Person, expected: string, asked: readonly Tool[]) => {
      const answers = []
      for (const tool of asked) answers.push(await readCode(person, tool))
      return answers.filter((answer) => !answer.endsWith(expected))
    }
    const unenrolled = await production.signIn(mailbox)
    const recent = operations.filter(({ proof }) => proof !== 'recent')
    expect(await wrong(unenrolled, ': 403 mfa_enrollment_required', recent)).toEqual([])
    await enrollMfa(unenrolled)
    const stale = await production.signIn(mailbox)
    expect(await wrong(stale, ': 401 step_up_required', operations)).toEqual([])
  })
})

/** Signs in a person, funded, whose own EVM key owns the wallet. */
async function newKeyed(origin: string) {
  const person = await signInByEmail(origin, newMailbox('keyed'))
  await person.send('POST', '/sandbox/faucet', {})
  const key = privateKeyToAccount(generatePrivateKey())
  const sign = (typedData: unknown) => key.signTypedData(typedData as never)
  const { address } = key
  const { body } = await person.send('POST', '/api/wallets/signers', { address })
  const signature = await sign(body.typedData)
  expect((await person.send('POST', '/api/wallets/signers', { address, signature })).status).toBe(200)
  return { person, sign }
}

/** URLs of two honest sellers of the sandbox. */
async function readSellers(origin: string) {
  const { body } = await requestJson(origin, 'GET', '/sandbox/sellers')
  const honest = z
    .array(z.object({ url: z.string(), method: z.string(), honest: z.boolean(), protocol: z.string() }))
    .parse(body.sellers)
    .filter((seller) => seller.honest && seller.method === 'GET' && seller.protocol !== 'free')
  const [one, two] = honest
  if (one === undefined || two === undefined) throw new Error('the sandbox has too few sellers')
  return { url: one.url, other: two.url }
}
