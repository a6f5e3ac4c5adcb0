/** The AML windows over real HTTP: parallel transfers never exceed them, on one gateway and on two. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { newGuest, type Person, requestJson } from './people.ts'

const PARALLEL = 40
const settings = {
  LOG_LEVEL: 'silent',
  AML_VELOCITY: '20/3600',
  AML_STRUCTURING: '3/3600/80',
  TRAVEL_RULE_THRESHOLDS: 'default:2',
  RATE_MUTATIONS: '100000/60',
}
const outsideAddress = `0x${'c1'.repeat(20)}`
const credentials = z.object({ chain: z.object({ rpcUrl: z.string() }) })

const transferBy = (token: string, origin: string, amount: string, destination = outsideAddress) =>
  requestJson(origin, 'POST', '/api/wallets/transfer', {
    body: { amount, destination, signature: 'sandbox' },
    headers: { authorization: `Bearer ${token}` },
  })

/** Sends transfers at once, over the origins in turn. @returns the number that succeeded, and the refusals. */
async function race(
  { token }: { token: string },
  origins: readonly string[],
  amount: string,
  destination = outsideAddress,
) {
  const answers = await Promise.all(
    Array.from({ length: PARALLEL }, (_, index) =>
      transferBy(token, origins[index % origins.length] ?? '', amount, destination),
    ),
  )
  return {
    passed: answers.filter(({ status }) => status === 200 || status === 503).length,
    refused: answers.filter(({ status }) => status !== 200 && status !== 503),
  }
}

/** A key of a person's account with limits per transfer and per day. */
async function createKey(person: Person, max: string): Promise<{ token: string }> {
  const policy = { perTransaction: { max }, dailyBudget: { max }, categories: { allow: ['transfer'] } }
  const keyRequest = { name: 'K', scopes: ['wallets:transfer'], policy }
  return { token: z.string().parse((await person.send('POST', '/api/developer/keys', keyRequest)).body.key) }
}

/** A wallet of the gateway: transfers to it need no Travel Rule data and do not count as structuring. */
async function readAddress(person: Person): Promise<string> {
  return z.string().parse((await person.send('GET', '/api/wallets')).body.safeAddress)
}

const worlds = [
  { name: 'one gateway on PGlite', isPostgres: false, isThere: true },
  { name: 'two gateways on one PostgreSQL', isPostgres: true, isThere: testServerUrl !== undefined },
]

describe.each(worlds.filter(({ isThere }) => isThere))('$name', ({ isPostgres }) => {
  const gateways: Gateway[] = []
  const origins = () => gateways.map(({ origin }) => origin)
  const newPerson = () => newGuest(origins()[0] ?? '')
  let drop = async () => {}
  beforeAll(async () => {
    if (!isPostgres) {
      gateways.push(await startGateway({ ...settings, CHAIN: 'simulated' }))
      return
    }
    const created = await createTestDatabase(testServerUrl ?? '')
    drop = created.drop
    const env = { ...settings, DATABASE_URL: created.url }
    const first = await startGateway(env)
    gateways.push(first)
    const { chain } = credentials.parse((await requestJson(first.origin, 'GET', '/sandbox/credentials')).body)
    // A session is valid at one origin.
    gateways.push(await startGateway({ ...env, CHAIN_RPC_URL: chain.rpcUrl, PUBLIC_ORIGIN: first.origin }))
  }, 90_000)
  afterAll(async () => {
    for (const gateway of gateways.reverse()) await gateway.stop()
    await drop()
  })

  it('admits two of 40 parallel transfers when two fit the velocity window', async () => {
    const [payer, payee] = await Promise.all([newPerson(), newPerson()])
    const { passed, refused } = await race(payer, origins(), '9', await readAddress(payee))
    expect(passed).toBe(2)
    for (const { status, body } of refused)
      expect({ status, ...body }).toMatchObject({
        status: 403,
        code: 'aml_blocked',
        screening: { result: 'review', lists: ['velocity'] },
        hint: expect.stringContaining('Do not split it'),
      })
    const { body } = await payer.send('GET', '/api/wallets')
    expect(body.balances).toContainEqual(expect.objectContaining({ token: 'USDC', amount: '982' }))
  })

  it('admits two of 40 parallel transfers just under the threshold', async () => {
    const payer = await newPerson()
    const { passed, refused } = await race(payer, origins(), '1.9')
    expect(passed).toBe(2)
    for (const { status, body } of refused)
      expect({ status, ...body }).toMatchObject({
        status: 403,
        code: 'aml_blocked',
        screening: { result: 'review', lists: ['structuring'] },
        hint: expect.stringContaining('POST /api/compliance/travel-rule'),
      })
  })

  it('does not count a transfer that was refused for other reasons', async () => {
    const [payer, payee] = await Promise.all([newPerson(), newPerson()])
    const destination = await readAddress(payee)
    const { token } = await createKey(payer, '1')
    const denied = await transferBy(token, origins()[0] ?? '', '9', destination)
    expect(denied.body.code).toBe('policy_denied')
    expect((await race(payer, origins(), '9', destination)).passed).toBe(2)
  })

  it('admits two of 40 parallel transfers of a key that allows more', async () => {
    const [payer, payee] = await Promise.all([newPerson(), newPerson()])
    const key = await createKey(payer, '1000')
    const { passed, refused } = await race(key, origins(), '9', await readAddress(payee))
    expect(passed).toBe(2)
    expect(new Set(refused.map(({ body }) => body.code))).toEqual(new Set(['aml_blocked']))
  })
})
