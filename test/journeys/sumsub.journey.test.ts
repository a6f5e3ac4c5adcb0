/**
 * Identity review by Sumsub on the built gateway: a signed webhook announces a change, and the API supplies the state.
 */
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Gateway, startGateway } from './gateway.ts'
import { type Person, signInByEmail } from './people.ts'

const SECRET = 'the secret of the webhook'
const applicantId = '5cb56e8e0a975a35f333cb83'

const applicant = {
  firstName: 'Ada',
  lastName: 'Lovelace',
  dateOfBirth: '1990-12-10',
  country: 'JP',
  address: 'Chiyoda 1-1',
}

/** Starts a gateway whose Sumsub is this server. */
async function startWithSumsub(api: Server, env: Record<string, string>): Promise<Gateway> {
  await once(api, 'listening')
  const address = z.object({ port: z.int() }).parse(api.address())
  return startGateway({
    CHAIN: 'simulated',
    SUMSUB_URL: `http://127.0.0.1:${address.port}`,
    SUMSUB_APP_TOKEN: 'token',
    SUMSUB_SECRET_KEY: 'key',
    ...env,
  })
}

describe('Sumsub’s webhook', () => {
  let gateway: Gateway
  let api: Server
  let person: Person
  let review: object = { reviewStatus: 'init' }
  let reads = 0
  let isDown = false

  beforeAll(async () => {
    api = createServer((request, response) => {
      const isSteps = request.url?.endsWith('/requiredIdDocsStatus') === true
      if (request.method === 'GET' && !isSteps) reads += 1
      response.writeHead(isDown ? 502 : 200, { 'content-type': 'application/json' })
      response.end(JSON.stringify(isSteps ? {} : { id: applicantId, review }))
    }).listen(0, '127.0.0.1')
    gateway = await startWithSumsub(api, { SUMSUB_WEBHOOK_SECRET: SECRET })
    person = await signInByEmail(gateway.origin, 'ada@example.com')
  }, 60_000)
  afterAll(async () => {
    await gateway?.stop()
    api?.close().closeAllConnections()
  })

  const hook = async (
    event: object,
    { hash = 'sha256', secret = SECRET, sent }: { hash?: string; secret?: string; sent?: object } = {},
  ) => {
    const body = JSON.stringify(event)
    const response = await fetch(`${gateway.origin}/api/webhooks/sumsub`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-payload-digest-alg': `HMAC_${hash.toUpperCase()}_HEX`,
        'x-payload-digest': createHmac(hash, secret).update(body).digest('hex'),
      },
      body: sent === undefined ? body : JSON.stringify(sent),
    })
    return { status: response.status, body: z.looseObject({}).parse(await response.json()) }
  }
  const buildEvent = (reviewAnswer: string, createdAtMs: string) => ({
    applicantId,
    inspectionId: '5cb56e8e0a975a35f333cb84',
    correlationId: 'req-a260b669',
    externalUserId: 'somebody',
    levelName: 'basic-kyc-level',
    type: 'applicantReviewed',
    reviewResult: { reviewAnswer },
    reviewStatus: 'completed',
    createdAtMs,
  })
  const readStatus = async () => (await person.send('POST', '/api/compliance/kyc', {})).body.status

  it('moves a review by the API’s state, regardless of the body, and never back', async () => {
    review = { reviewStatus: 'pending' }
    expect((await person.send('POST', '/api/compliance/kyc', { applicant })).body.status).toBe('pending')

    // Claims an approval that the API does not report.
    expect((await hook(buildEvent('GREEN', '1'))).status).toBe(200)
    expect(await readStatus()).toBe('pending')
    // Fails while the API is down, and is accepted when redelivered.
    isDown = true
    expect((await hook(buildEvent('GREEN', '2'))).status).toBe(503)
    isDown = false
    review = { reviewStatus: 'completed', reviewResult: { reviewAnswer: 'GREEN' } }
    const taken = await hook(buildEvent('GREEN', '2'), { hash: 'sha512' })
    expect(taken).toMatchObject({ status: 200, body: { received: true } })
    expect(await readStatus()).toBe('approved')
    review = {
      reviewStatus: 'completed',
      reviewResult: { reviewAnswer: 'RED', reviewRejectType: 'FINAL' },
    }
    const before = reads
    expect((await hook(buildEvent('RED', '3'))).status).toBe(200)
    expect((await hook(buildEvent('GREEN', '2'))).status).toBe(200)
    expect([await readStatus(), reads]).toEqual(['approved', before])
  }, 30_000)

  it('rejects unsigned webhooks, and accepts unknown ones without any effect', async () => {
    const event = buildEvent('GREEN', '4')
    const refused = [
      await hook(event, { secret: 'another' }),
      await hook(event, { sent: { ...event, applicantId: 'other' } }),
      await hook(event, { hash: 'sha1' }),
      await person.send('POST', '/api/webhooks/sumsub', event),
    ]
    expect(refused.map(({ status, body }) => `${status} ${String(body.code)}`)).toEqual(
      Array(4).fill('401 signature_invalid'),
    )
    expect((await hook({ ...event, applicantId: 'unknown' })).status).toBe(200)
    expect((await hook({ type: 'applicantActionReviewed' })).status).toBe(200)
    const odd = await hook({ ...event, applicantId: 'Ada Lovelace' })
    expect([odd.status, JSON.stringify(odd.body).includes('Ada')]).toEqual([400, false])
    expect((await hook({ ...event, padding: 'x'.repeat(70_000) })).status).toBe(413)
    expect(gateway.output()).not.toContain('Chiyoda')
  })
})

describe('Sumsub with a lost answer', () => {
  /** Names by application id, as first sent to the provider. */
  const known = new Map<string, { id: string; lastName: string }>()
  let gateway: Gateway
  let api: Server
  let losesAnswers = true

  beforeAll(async () => {
    const created = z.object({ externalUserId: z.string(), fixedInfo: z.object({ lastName: z.string() }) })
    api = createServer(async (request, response) => {
      const chunks: Uint8Array[] = []
      for await (const chunk of request) chunks.push(chunk)
      const text = Buffer.concat(chunks).toString()
      const end = (status: number, body: object) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
      const viewApplicant = (externalUserId: string) => ({
        id: known.get(externalUserId)?.id,
        externalUserId,
        review: { reviewStatus: 'completed', reviewResult: { reviewAnswer: 'GREEN' } },
      })
      const requestedId = /externalUserId=([^/]+)\/one/.exec(request.url ?? '')?.[1]
      if (requestedId !== undefined) return end(200, viewApplicant(requestedId))
      const { externalUserId, fixedInfo } = created.parse(JSON.parse(text))
      if (known.has(externalUserId)) return end(409, {})
      known.set(externalUserId, { id: `applicant${known.size}`, lastName: fixedInfo.lastName })
      if (losesAnswers) return request.socket.destroy()
      return end(201, viewApplicant(externalUserId))
    }).listen(0, '127.0.0.1')
    gateway = await startWithSumsub(api, { RATE_OTP_RESEND: '1000/60' })
  }, 60_000)
  afterAll(async () => {
    await gateway?.stop()
    api?.close().closeAllConnections()
  })

  it.each([
    ['told', false],
    ['erased', true],
  ])('never approves one name for data sent under another, %s', async (name, isErased) => {
    const person = await signInByEmail(gateway.origin, `${name}@example.com`)
    losesAnswers = true
    const lost = await person.send('POST', '/api/compliance/kyc', { applicant })
    expect(lost.body.code).toBe('provider_unavailable')
    losesAnswers = false
    if (isErased) await person.send('DELETE', '/api/compliance/personal-data')
    const mallory = { applicant: { ...applicant, lastName: 'Mallory' } }
    const { body } = await person.send('POST', '/api/compliance/kyc', mallory)
    expect(body).toMatchObject({ status: 'pending', labels: ['IDENTITY_CHANGED'] })
    expect([...known.values()].map(({ lastName }) => lastName)).not.toContain('Mallory')
  })

  it('is requested again for the same name, and with another application for another address', async () => {
    const person = await signInByEmail(gateway.origin, 'again@example.com')
    losesAnswers = true
    await person.send('POST', '/api/compliance/kyc', { applicant })
    losesAnswers = false
    const count = known.size
    const moved = { applicant: { ...applicant, address: 'Chiyoda 2-2' } }
    expect((await person.send('POST', '/api/compliance/kyc', moved)).body.status).toBe('approved')
    expect(known.size).toBe(count + 1)
  })
})
