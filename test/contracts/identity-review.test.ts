/** The review port's contract, and Sumsub's request shapes on a local server. */
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import type { Application } from '../../src/providers/identity-review/port.ts'
import { createSandboxReview } from '../../src/providers/identity-review/sandbox.ts'
import { createSumsubReview } from '../../src/providers/identity-review/sumsub.ts'
import { newApplicant } from './sumsub-server.ts'

const noon = new Date('2026-11-20T12:00:00.000Z')
const application = (lastName: string): Application => ({
  id: 'kyc_01kaj8e8z8f9t9w8m4q6x7v5r2',
  level: 'basic',
  applicant: {
    firstName: 'Ada',
    lastName,
    dateOfBirth: '1990-12-10',
    country: 'DE',
    address: 'Unter den Linden 1, Berlin, 10117',
    residence: { street: 'Unter den Linden 1', city: 'Berlin', postalCode: '10117' },
    email: 'ada@example.com',
    phone: null,
  },
  documents: [],
})

describe('the sandbox’s reviewer', () => {
  it.each([
    ['Lovelace', 'approved'],
    ['Pending', 'pending'],
    ['Retry', 'retry'],
    ['Rejected', 'rejected'],
    ['constructor', 'approved'],
  ])('decides on %s: %s', async (lastName, status) => {
    const { review, reference } = await createSandboxReview(() => noon).submit(application(lastName))
    expect(review.status).toBe(status)
    expect((await createSandboxReview(() => noon).read(reference)).status).toBe(status)
    const later = () => new Date(noon.getTime() + 11_000)
    expect((await createSandboxReview(later).read(reference)).status).toBe(
      status === 'pending' ? 'approved' : status,
    )
  })
})

describe('Sumsub', () => {
  interface Seen {
    readonly method: string
    readonly path: string
    readonly body: string
    readonly isSigned: boolean
  }
  const start = async (answer: (seen: Seen, response: ServerResponse) => void | Promise<void>) => {
    const all: Seen[] = []
    const server = createServer(async (request: IncomingMessage, response) => {
      const body = await text(request)
      const { method = '', url: path = '' } = request
      const { 'x-app-access-ts': seconds, 'x-app-access-sig': signature } = request.headers
      const expected = createHmac('sha256', 'secret')
        .update(`${String(seconds)}${method}${path}${body}`)
        .digest('hex')
      const seen = {
        method,
        path,
        body,
        isSigned: signature === expected && request.headers['x-app-token'] === 'token',
      }
      all.push(seen)
      await answer(seen, response)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close().closeAllConnections())
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('no port')
    const review = createSumsubReview({
      url: `http://127.0.0.1:${address.port}`,
      appToken: 'token',
      secretKey: 'secret',
      webhookSecret: 'hook secret',
      levels: { basic: 'basic-kyc-level', full: 'full kyc' },
      clock: () => noon,
    })
    return { review, all }
  }
  const respond = (response: ServerResponse, body: object, status = 200) =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  const buildCompleted = (reviewResult: object) => ({
    id: '5cb56e8e0a975a35f333cb83',
    review: { reviewStatus: 'completed', reviewResult },
  })

  it('creates an applicant by signed requests and requests the check', async () => {
    const { review, all } = await start(({ path }, response) => {
      if (path.endsWith('/requiredIdDocsStatus')) return respond(response, {})
      const fresh = { id: 'abc123', review: { reviewStatus: 'init' } }
      return respond(response, path.endsWith('/status/pending') ? { ok: 1 } : fresh)
    })
    expect(await review.submit(application('Lovelace'))).toMatchObject({
      reference: 'abc123',
      review: { status: 'pending', labels: [] },
    })
    expect(all.map(({ method, path, isSigned }) => [method, path, isSigned])).toEqual([
      ['POST', '/resources/applicants?levelName=basic-kyc-level', true],
      ['GET', '/resources/applicants/abc123/requiredIdDocsStatus', true],
      ['POST', '/resources/applicants/abc123/status/pending', true],
    ])
    expect(newApplicant.parse(JSON.parse(all[0]?.body ?? ''))).toEqual({
      externalUserId: application('').id,
      email: 'ada@example.com',
      fixedInfo: {
        firstName: 'Ada',
        lastName: 'Lovelace',
        dob: '1990-12-10',
        country: 'DEU',
        addresses: [{ country: 'DEU', street: 'Unter den Linden 1', town: 'Berlin', postCode: '10117' }],
      },
    })
  })

  it('requests no check while the level waits for documents, and links to the page for them', async () => {
    const link = z.strictObject({
      levelName: z.literal('full kyc'),
      userId: z.literal(application('').id),
      ttlInSecs: z.int().positive(),
    })
    const { review, all } = await start(({ path, body }, response) => {
      if (path.endsWith('/requiredIdDocsStatus'))
        return respond(response, { IDENTITY: { imageIds: [1] }, SELFIE: null })
      if (path === '/resources/sdkIntegrations/levels/-/websdkLink') {
        const isRight = link.safeParse(JSON.parse(body)).success
        return respond(response, { url: 'https://in.sumsub.example/websdk/p/private' }, isRight ? 200 : 400)
      }
      return respond(response, { id: 'abc123', review: { reviewStatus: 'init' } })
    })
    const submitted = await review.submit({ ...application('Lovelace'), level: 'full' })
    expect(submitted).toMatchObject({ reference: 'abc123', review: { status: 'pending' } })
    expect(all.filter(({ path }) => path.endsWith('/status/pending'))).toEqual([])
    expect(await review.page?.({ id: application('').id, level: 'full' }, noon)).toEqual({
      url: 'https://in.sumsub.example/websdk/p/private',
      expiresAt: new Date(noon.getTime() + 1_800_000),
    })
    expect(all.every(({ isSigned }) => isSigned)).toBe(true)
    await expect(review.page?.({ id: 'kyc_other', level: 'full' }, noon)).rejects.toMatchObject({
      code: 'provider_unavailable',
    })
  })

  it('sends an address of one line as the street', async () => {
    const { review, all } = await start((_seen, response) =>
      respond(response, buildCompleted({ reviewAnswer: 'GREEN' })),
    )
    const { applicant, ...rest } = application('Lovelace')
    await review.submit({ ...rest, applicant: { ...applicant, residence: {} } })
    expect(newApplicant.parse(JSON.parse(all[0]?.body ?? '')).fixedInfo.addresses).toEqual([
      { country: 'DEU', street: 'Unter den Linden 1, Berlin, 10117' },
    ])
  })

  it('finds the applicant of an earlier attempt whose answer was lost', async () => {
    const { review, all } = await start(({ method, path }, response) => {
      if (method === 'GET') return respond(response, buildCompleted({ reviewAnswer: 'GREEN' }))
      return respond(response, path.endsWith('/status/pending') ? {} : { code: 409 }, 409)
    })
    expect((await review.submit(application('Lovelace'))).review.status).toBe('approved')
    expect(all.at(-1)?.path).toBe(`/resources/applicants/-;externalUserId=${application('').id}/one`)
  })

  it.each([
    [{ reviewAnswer: 'GREEN' }, 'approved', []],
    [
      { reviewAnswer: 'RED', reviewRejectType: 'RETRY', rejectLabels: ['BAD_SELFIE'] },
      'retry',
      ['BAD_SELFIE'],
    ],
    [{ reviewAnswer: 'RED', reviewRejectType: 'FINAL', rejectLabels: ['FORGERY'] }, 'rejected', ['FORGERY']],
    [{ reviewAnswer: 'BLUE' }, 'pending', []],
  ])('maps %j to %s', async (result, status, labels) => {
    const { review } = await start((_seen, response) => respond(response, buildCompleted(result)))
    expect(await review.read('abc123')).toMatchObject({
      status,
      labels,
      subject: { reference: expect.any(String), applicationId: null },
    })
  })

  it.each<[string, (seen: Seen, response: ServerResponse) => void | Promise<void>]>([
    ['an error', (_seen, response) => respond(response, { description: 'Ada Lovelace is unknown' }, 500)],
    ['garbage', (_seen, response) => void response.end('<html>')],
    ['an unexpected document', (_seen, response) => respond(response, { id: 5 })],
    ['a broken connection', (_seen, response) => void response.destroy()],
  ])('is unavailable when it answers %s, and exposes no personal data', async (_name, answer) => {
    const { review } = await start(answer)
    const error: unknown = await review.submit(application('Lovelace')).catch((caught: unknown) => caught)
    expect(error).toMatchObject({ code: 'provider_unavailable' })
    expect(String(error)).not.toContain('Lovelace')
  })

  it('times out', async () => {
    const { review } = await start(async (_seen, response) => {
      await sleep(7_000)
      response.destroy()
    })
    await expect(review.read('abc123')).rejects.toMatchObject({ code: 'provider_unavailable' })
  }, 15_000)
})
