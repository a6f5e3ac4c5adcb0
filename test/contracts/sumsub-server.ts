/**
 * A server with the parts of Sumsub's API that the adapter uses, as strict as its documentation: unknown members, wrong
 * words and wrong signatures are refused. Tests say which steps a level has and how a review ends.
 */
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { z } from 'zod'

const alpha3 = z.string().regex(/^[A-Z]{3}$/)

/** @see https://docs.sumsub.com/reference/create-applicant */
export const newApplicant = z.strictObject({
  externalUserId: z.string(),
  email: z.email().optional(),
  phone: z.string().optional(),
  fixedInfo: z.strictObject({
    firstName: z.string(),
    lastName: z.string(),
    dob: z.iso.date(),
    country: alpha3,
    addresses: z.array(
      z.strictObject({
        country: alpha3,
        street: z.string().optional(),
        town: z.string().optional(),
        state: z.string().optional(),
        postCode: z.string().optional(),
      }),
    ),
  }),
})

/** @see https://docs.sumsub.com/reference/generate-websdk-external-link */
const newPage = z.strictObject({
  levelName: z.string().min(1),
  userId: z.string().min(1),
  ttlInSecs: z.int().positive(),
})

/** @property steps by name; null: not submitted. */
export interface KeptApplicant extends z.output<typeof newApplicant> {
  readonly id: string
  readonly levelName: string
  readonly steps: Record<string, { imageIds: number[] } | null>
  review: { reviewStatus: string; reviewResult?: { reviewAnswer: string; reviewRejectType?: string } }
}

/** @param levels steps that each level asks for. */
export async function startSumsubServer(levels: Readonly<Record<string, readonly string[]>>) {
  const [token, secret, webhookSecret] = ['token', 'secret', 'the secret of the webhook']
  const applicants = new Map<string, KeptApplicant>()
  let events = 0
  const server = createServer(async (request, response) => {
    const body = await text(request)
    const { method = '', url: path = '' } = request
    const { 'x-app-access-ts': seconds, 'x-app-access-sig': signature, 'x-app-token': app } = request.headers
    const expected = createHmac('sha256', secret)
      .update(`${String(seconds)}${method}${path}${body}`)
      .digest('hex')
    const isSigned = signature === expected && app === token
    const [status, answer] = isSigned
      ? answerTo(method, new URL(path, 'http://sumsub'), body === '' ? null : JSON.parse(body))
      : [401, { description: 'the signature does not match' }]
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  })
  function answerTo(method: string, url: URL, body: unknown): [number, unknown] {
    const route = `${method} ${url.pathname}`
    if (route === 'POST /resources/applicants') return create(url.searchParams.get('levelName') ?? '', body)
    if (route === 'POST /resources/sdkIntegrations/levels/-/websdkLink') {
      const parsed = newPage.safeParse(body)
      const isKnown = [...applicants.values()].some(
        ({ externalUserId, levelName }) =>
          externalUserId === parsed.data?.userId && levelName === parsed.data.levelName,
      )
      return isKnown
        ? [200, { url: 'https://in.sumsub.example/websdk/p/private' }]
        : [400, { description: 'no such applicant on this level' }]
    }
    const [, named = '', rest = ''] =
      /^\/resources\/applicants\/([^/]+)\/(one|requiredIdDocsStatus|status\/pending)$/.exec(url.pathname) ??
      []
    const external = /^-;externalUserId=(.+)$/.exec(named)?.[1]
    const found = [...applicants.values()].find(({ id, externalUserId }) =>
      external === undefined ? id === named : externalUserId === decodeURIComponent(external),
    )
    if (found === undefined) return [404, { description: 'not found' }]
    if (`${method} ${rest}` === 'GET one') return [200, found]
    if (`${method} ${rest}` === 'GET requiredIdDocsStatus') return [200, found.steps]
    if (`${method} ${rest}` !== 'POST status/pending') return [405, { description: 'not allowed' }]
    if (found.review.reviewStatus !== 'init') return [409, { description: 'already requested' }]
    found.review = { reviewStatus: 'pending' }
    return [200, { ok: 1 }]
  }
  function create(levelName: string, body: unknown): [number, unknown] {
    const parsed = newApplicant.safeParse(body)
    const steps = levels[levelName]
    if (!parsed.success || steps === undefined) return [400, { description: 'bad request' }]
    const isKnown = [...applicants.values()].some(
      ({ externalUserId }) => externalUserId === parsed.data.externalUserId,
    )
    if (isKnown) return [409, { description: 'the applicant exists' }]
    const id = `applicant${applicants.size + 1}`
    const review = { reviewStatus: 'init' }
    const kept = {
      ...parsed.data,
      id,
      levelName,
      steps: Object.fromEntries(steps.map((name) => [name, null])),
    }
    applicants.set(id, { ...kept, review })
    return [201, applicants.get(id)]
  }
  await once(server.listen(0, '127.0.0.1'), 'listening')
  // A listening server has an address object with a port.
  const { port } = server.address() as AddressInfo
  return {
    applicants,
    env: {
      SUMSUB_URL: `http://127.0.0.1:${port}`,
      SUMSUB_APP_TOKEN: token,
      SUMSUB_SECRET_KEY: secret,
      SUMSUB_WEBHOOK_SECRET: webhookSecret,
    },
    /** The person submits every step on the page, and the review ends. */
    decide: (applicant: KeptApplicant, reviewAnswer: 'GREEN' | 'RED') => {
      for (const name of Object.keys(applicant.steps)) applicant.steps[name] = { imageIds: [1] }
      applicant.review = { reviewStatus: 'completed', reviewResult: { reviewAnswer } }
    },
    /** Announces a change of an applicant by a signed webhook. @returns the status of the answer. */
    notify: async (origin: string, { id: applicantId, externalUserId, levelName }: KeptApplicant) => {
      events += 1
      const body = JSON.stringify({
        ...{ applicantId, externalUserId, levelName, inspectionId: 'i1', correlationId: `c${events}` },
        ...{ type: 'applicantReviewed', reviewStatus: 'completed', createdAtMs: String(Date.now()) },
      })
      const { status } = await fetch(`${origin}/api/webhooks/sumsub`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-payload-digest-alg': 'HMAC_SHA256_HEX',
          'x-payload-digest': createHmac('sha256', webhookSecret).update(body).digest('hex'),
        },
        body,
      })
      return status
    },
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
