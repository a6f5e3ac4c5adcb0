/** Compliance over real HTTP: a changing sanctions list, a failing provider, Travel Rule data by REST and MCP. */
import { once } from 'node:events'
import { rm, writeFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { randomToken } from '../../src/core/base/ids.ts'
import { postCall } from '../mcp/post-call.ts'
import { applicant } from '../tools/compliance/scene.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { enrollMfa, newGuest, type Person } from './people.ts'

const outsideAddress = `0x${'c1'.repeat(20)}`
const listed = `0x${'d2'.repeat(20)}`
const path = join(tmpdir(), `sanctions-journey-${randomToken(6)}.json`)
const writeList = (addresses: readonly string[]) =>
  writeFile(path, JSON.stringify({ source: 'Test', date: '2026-11-20', addresses }))

const clear = (response: ServerResponse) =>
  void response
    .writeHead(200, { 'content-type': 'application/json' })
    .end(JSON.stringify({ identifications: [] }))
let answer: (response: ServerResponse) => void = clear
const provider = createServer((_request, response) => answer(response))

let gateway: Gateway
let payer: Person
const send = (amount: string, destination = outsideAddress) =>
  payer.send('POST', '/api/wallets/transfer', { amount, destination, signature: 'sandbox' })

beforeAll(async () => {
  await Promise.all([writeList([listed]), once(provider.listen(0, '127.0.0.1'), 'listening')])
  // A listening server has an address object with a port.
  const { port } = provider.address() as AddressInfo
  gateway = await startGateway({
    CHAIN: 'simulated',
    LOG_LEVEL: 'silent',
    SANCTIONS_LIST: path,
    SCREENING_URL: `http://127.0.0.1:${port}`,
    SCREENING_API_KEY: 'a-key',
    AML_VELOCITY: '2000/86400',
    VASP_NAME: 'Example Bank',
  })
})
beforeEach(async () => {
  answer = clear
  await writeList([listed])
  payer = await newGuest(gateway.origin)
})
afterAll(async () => {
  await gateway?.stop()
  provider.closeAllConnections()
  provider.close()
  await rm(path, { force: true })
})

describe('screening', () => {
  it('checks the list, the sandbox and the provider, and names them in the decision', async () => {
    expect((await send('1')).body).toMatchObject({
      screening: {
        result: 'clear',
        lists: ['sanctions', 'sandbox', 'chainalysis', 'owner', 'velocity', 'structuring', 'travel_rule'],
      },
    })
    expect(await send('1', listed)).toMatchObject({
      status: 403,
      body: { code: 'aml_blocked', screening: { result: 'blocked', lists: ['sanctions'] } },
    })
  })

  it('blocks by a changed list from the next transfer on, and sends nothing with a broken list', async () => {
    await writeList([listed, outsideAddress])
    expect(await send('1')).toMatchObject({ status: 403, body: { screening: { lists: ['sanctions'] } } })
    await writeFile(path, '{"source":')
    expect(await send('1')).toMatchObject({
      status: 503,
      body: { code: 'screening_unavailable', retryAfter: 5 },
    })
    await writeList([listed])
    expect((await send('1')).status).toBe(200)
  })

  it('sends nothing while the provider fails or does not answer', async () => {
    answer = (response) => void response.writeHead(500).end()
    expect(await send('1')).toMatchObject({ status: 503, body: { code: 'screening_unavailable' } })
    answer = () => {}
    expect(await send('1')).toMatchObject({ status: 503, body: { code: 'screening_unavailable' } })
    answer = clear
    expect((await send('1')).status).toBe(200)
  })
})

describe('an owner’s block list', () => {
  it('is readable and writable by a session only; loosening it needs a second factor', async () => {
    const owner = await newGuest(gateway.origin)
    const path = '/api/compliance/blocked-addresses'
    expect(await owner.send('PUT', path, { addresses: [outsideAddress] })).toEqual({
      status: 200,
      body: { addresses: [outsideAddress] },
    })
    const transfer = { amount: '1', destination: outsideAddress, signature: 'x' }
    expect(await owner.send('POST', '/api/wallets/transfer', transfer)).toMatchObject({
      status: 403,
      body: { code: 'aml_blocked', screening: { result: 'blocked', lists: ['owner'] } },
    })
    await enrollMfa(owner)
    expect((await owner.send('PUT', path, { addresses: [] })).status).toBe(200)
    expect((await owner.send('GET', path)).body).toEqual({ addresses: [] })
    const key = await owner.send('POST', '/api/developer/keys', { name: 'K', scopes: ['compliance:write'] })
    const response = await fetch(`${gateway.origin}${path}`, {
      headers: { authorization: `Bearer ${String(key.body.key)}` },
    })
    expect(response.status).toBe(403)
  })
})

describe('the Travel Rule', () => {
  it('blocks a large transfer until its data is recorded with the request from the hint', async () => {
    const refused = await send('1000')
    expect(refused).toMatchObject({
      status: 403,
      body: { code: 'aml_blocked', screening: { result: 'review', lists: ['travel_rule'] } },
    })
    const [, body = ''] =
      /POST \/api\/compliance\/travel-rule (\{.*\}),/.exec(String(refused.body.hint)) ?? []
    const example = z.record(z.string(), z.unknown()).parse(JSON.parse(body))
    const disclose = () =>
      payer.send('POST', '/api/compliance/travel-rule', {
        ...example,
        beneficiary: { name: 'Grace Hopper', country: 'US' },
        anythingElse: true,
      })
    expect(await disclose()).toMatchObject({ status: 403, body: { code: 'kyc_required' } })
    expect(await payer.send('POST', '/api/compliance/kyc', { applicant })).toMatchObject({
      body: { status: 'approved' },
    })
    const recorded = await disclose()
    expect(recorded).toMatchObject({
      status: 200,
      body: {
        status: 'required',
        threshold: { amount: '1000', currency: 'USD' },
        payload: {
          originatingVASP: {
            legalPerson: { name: { nameIdentifier: [{ legalPersonName: 'Example Bank' }] } },
          },
        },
      },
    })
    // 1,000 exceeds the remaining balance.
    expect((await send('1')).status).toBe(200)
    expect(await send('1000')).toMatchObject({ status: 422, body: { code: 'insufficient_funds' } })
    const { safeAddress } = (await payer.send('GET', '/api/wallets')).body
    await payer.send('POST', '/sandbox/faucet', { address: safeAddress, token: 'USDC', amount: '5000' })
    const sent = await send('1000')
    expect(sent).toMatchObject({ status: 200, body: { status: 'confirmed' } })
    expect(await send('1000')).toMatchObject({ status: 403, body: { code: 'aml_blocked' } })
    const about = { transferId: sent.body.transferId, beneficiary: { name: 'Grace Hopper' } }
    expect(await payer.send('POST', '/api/compliance/travel-rule', about)).toMatchObject({
      status: 409,
      body: { code: 'conflict' },
    })
  })

  it('caps the outflow of a day at the configured amount', async () => {
    const person = await newGuest(gateway.origin)
    const { safeAddress } = (await person.send('GET', '/api/wallets')).body
    await person.send('POST', '/sandbox/faucet', { address: safeAddress, token: 'USDC', amount: '5000' })
    const pay = (amount: string) =>
      person.send('POST', '/api/wallets/transfer', { amount, destination: outsideAddress, signature: 'x' })
    for (const amount of ['700', '700']) expect((await pay(amount)).status).toBe(200)
    expect(await pay('700')).toMatchObject({
      status: 403,
      body: { screening: { result: 'review', lists: ['velocity'] } },
    })
    expect((await pay('600')).status).toBe(200)
  })

  it('accepts data from an agent over MCP that has the scope', async () => {
    const call = async (scopes: readonly string[]) => {
      const { body } = await payer.send('POST', '/api/developer/keys', { name: 'K', scopes })
      const response = await postCall(gateway.origin, String(body.key), 'compliance_travel_rule', {
        amount: '1',
        destination: outsideAddress,
        beneficiary: { legalName: 'Ours Ltd' },
      })
      return z
        .object({
          result: z.looseObject({
            structuredContent: z.unknown().optional(),
            isError: z.boolean().optional(),
          }),
        })
        .parse(await response.json()).result
    }
    expect((await call(['compliance:write'])).structuredContent).toMatchObject({ status: 'not_required' })
    expect((await call([])).isError).toBe(true)
  })
})

it.each([
  ['AML_VELOCITY', 'much', 'AML_VELOCITY must be like 50000/86400,10000/600/10.'],
  ['AML_STRUCTURING', '1/2/3', 'AML_STRUCTURING must be like 3/86400/80.'],
  ['TRAVEL_RULE_THRESHOLDS', 'US=3000', 'TRAVEL_RULE_THRESHOLDS must be like default:1000,US:3000,EU:0.'],
])('does not start with a wrong %s', async (name, value, message) => {
  await expect(startGateway({ CHAIN: 'simulated', [name]: value })).rejects.toThrow(message)
})
