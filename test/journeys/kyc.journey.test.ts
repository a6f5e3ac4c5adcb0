/**
 * Identity verification: some data over REST, the rest by an agent over MCP; verification raises the investing limit.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { postCall } from '../mcp/post-call.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { type Person, signInByEmail } from './people.ts'

const record = z.looseObject({})

describe('identity verification', () => {
  let gateway: Gateway
  let person: Person
  beforeAll(async () => {
    gateway = await startGateway({ CHAIN: 'simulated', KYC_LIMITS: 'none:10,basic:100' })
    person = await signInByEmail(gateway.origin, 'ada@example.com')
  }, 60_000)
  afterAll(() => gateway?.stop())

  const callMcp = async (key: string, name: string, args: object) => {
    const response = await postCall(gateway.origin, key, name, args)
    const { result } = z
      .object({ result: z.object({ content: z.array(z.object({ text: z.string() })) }) })
      .parse(await response.json())
    return record.parse(JSON.parse(result.content[0]?.text ?? '{}'))
  }
  const order = (notional: string) =>
    person.send('POST', '/api/investing/order', { symbol: 'VTI', side: 'buy', notional })

  it('is required above the unverified limit, and then allows larger orders', async () => {
    const { body: wallet } = await person.send('GET', '/api/banking')
    expect(wallet).toHaveProperty('accounts')
    expect(await order('11')).toMatchObject({ status: 403, body: { code: 'kyc_required' } })

    const first = await person.send('POST', '/api/compliance/kyc', {
      applicant: { firstName: 'Ada', lastName: 'Pending' },
    })
    expect(first).toMatchObject({ status: 200, body: { status: 'init', level: 'basic' } })
    const { body: made } = await person.send('POST', '/api/developer/keys', {
      name: 'Clerk',
      scopes: ['compliance:write'],
    })
    const key = z.string().parse(made.key)
    const rest = { applicant: { dateOfBirth: '1990-12-10', country: 'JP', address: 'Chiyoda 1-1' } }
    expect(await callMcp(key, 'compliance_kyc', rest)).toMatchObject({ code: 'insufficient_scope' })
    const { body: second } = await person.send('POST', '/api/compliance/kyc', rest)
    expect(second).toMatchObject({ id: first.body.id, status: 'pending', requirements: [] })
    expect(await order('11')).toMatchObject({ status: 403 })
    await expect
      .poll(async () => (await callMcp(key, 'compliance_kyc', {})).status, { timeout: 30_000, interval: 500 })
      .toBe('approved')
    const { body: session } = await person.send('GET', '/api/auth/session')
    expect(session.account).toMatchObject({ kycLevel: 'basic' })
    // Verified, but without cash: funds are the only remaining obstacle.
    expect(await order('11')).toMatchObject({ status: 422, body: { code: 'insufficient_funds' } })
    expect(await order('101')).toMatchObject({ status: 403, body: { code: 'kyc_required' } })
    expect(gateway.output()).not.toContain('Chiyoda')
  }, 60_000)

  it('is erased at the person’s request', async () => {
    const person = await signInByEmail(gateway.origin, 'grace@example.com')
    const applicant = {
      firstName: 'Grace',
      lastName: 'Hopper',
      dateOfBirth: '1990-12-09',
      country: 'US',
      address: 'New York',
    }
    expect((await person.send('POST', '/api/compliance/kyc', { applicant })).body).toMatchObject({
      status: 'approved',
    })
    expect(await person.send('DELETE', '/api/compliance/personal-data')).toMatchObject({
      status: 200,
      body: { erased: true },
    })
    const { body } = await person.send('POST', '/api/compliance/kyc', {})
    expect(body).toMatchObject({ status: 'approved', level: 'basic' })
  })
})
