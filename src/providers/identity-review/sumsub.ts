/** Reviews by Sumsub: each request is signed with the app's secret. @see https://docs.sumsub.com/reference/authentication */
import { createHmac } from 'node:crypto'
import { z } from 'zod'
import type { Clock } from '../../base/clock.ts'
import { Failure } from '../../failures/failure.ts'
import { callProvider, type ProviderAnswer } from '../http-client.ts'
import type { Application, IdentityReview, Review } from '../identity-review.ts'
import { readSumsubWebhook, verifySumsubWebhook } from './sumsub-webhook.ts'

/** How to reach it. @property levels the names of its levels that stand for ours. @property webhookSecret null: no webhook holds. */
export interface SumsubOptions {
  readonly url: string
  readonly appToken: string
  readonly secretKey: string
  readonly webhookSecret: string | null
  readonly levels: Readonly<Record<'basic' | 'full', string>>
  readonly clock: Clock
}

/** For all that one call takes: a person waits. */
const TIMEOUT_MS = 8_000

const applicant = z.object({
  externalUserId: z.string().nullish(),
  id: z.string().regex(/^[0-9a-zA-Z]{1,64}$/),
  review: z
    .object({
      reviewStatus: z.string(),
      reviewResult: z
        .object({
          reviewAnswer: z.string().optional(),
          reviewRejectType: z.string().optional(),
          rejectLabels: z.array(z.string()).default([]),
        })
        .optional(),
    })
    .optional(),
})

/** The adapter. */
export function createSumsubReview(options: SumsubOptions): IdentityReview {
  const { url, appToken, secretKey, levels, clock } = options

  async function ask(
    signal: AbortSignal,
    method: 'GET' | 'POST',
    path: string,
    content?: object,
  ): Promise<ProviderAnswer> {
    const body = content === undefined ? '' : JSON.stringify(content)
    const seconds = Math.floor(clock().getTime() / 1000)
    const signature = createHmac('sha256', secretKey)
      .update(`${seconds}${method}${path}${body}`)
      .digest('hex')
    try {
      return await callProvider({
        url: new URL(path, url),
        method,
        headers: {
          'x-app-token': appToken,
          'x-app-access-ts': String(seconds),
          'x-app-access-sig': signature,
          accept: 'application/json',
          ...(body === '' ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === '' ? {} : { body }),
        timeoutMs: TIMEOUT_MS,
        signal,
      })
    } catch (cause) {
      throw unavailable('The provider of identity reviews cannot be reached.', cause)
    }
  }

  async function applicantOf(response: ProviderAnswer): Promise<z.output<typeof applicant>> {
    // What it says of a person is not repeated: it may hold their data.
    if (!response.ok) throw unavailable(`The provider of identity reviews answered ${response.status}.`)
    const parsed = applicant.safeParse(jsonOr(response.text))
    if (!parsed.success) throw unavailable('The provider of identity reviews answered something else.')
    return parsed.data
  }

  async function create(application: Application, signal: AbortSignal) {
    const level = encodeURIComponent(levels[application.level])
    const { firstName, lastName, dateOfBirth, country, address, email, phone } = application.applicant
    const response = await ask(signal, 'POST', `/resources/applicants?levelName=${level}`, {
      externalUserId: application.id,
      ...(email === null ? {} : { email }),
      ...(phone === null ? {} : { phone }),
      fixedInfo: {
        firstName,
        lastName,
        dob: dateOfBirth,
        country,
        addresses: [{ street: address, country }],
      },
    })
    // It was sent before, and its answer was lost.
    if (response.status === 409)
      return applicantOf(
        await ask(
          signal,
          'GET',
          `/resources/applicants/-;externalUserId=${encodeURIComponent(application.id)}/one`,
        ),
      )
    return applicantOf(response)
  }

  return {
    async submit(application) {
      const signal = AbortSignal.timeout(TIMEOUT_MS)
      const created = await create(application, signal)
      if (created.review === undefined || created.review.reviewStatus === 'init') {
        const asked = await ask(signal, 'POST', `/resources/applicants/${created.id}/status/pending`)
        if (!asked.ok && asked.status !== 409)
          throw unavailable(`The provider of identity reviews answered ${asked.status}.`)
      }
      return { reference: created.id, review: reviewOf(created) }
    },
    verify: (delivery) => verifySumsubWebhook(delivery, options.webhookSecret),
    readNotice: readSumsubWebhook,
    async read(reference) {
      return reviewOf(
        await applicantOf(
          await ask(AbortSignal.timeout(TIMEOUT_MS), 'GET', `/resources/applicants/${reference}/one`),
        ),
      )
    },
  }
}

/** GREEN is a yes; RED is a no, for good or until the person tries again. Anything that is not completed is pending. */
function reviewOf(found: z.output<typeof applicant>): Review {
  const subject = { reference: found.id, applicationId: found.externalUserId ?? null }
  return { ...verdictOf(found), subject }
}

function verdictOf({ review }: z.output<typeof applicant>): Review {
  const { reviewAnswer, reviewRejectType, rejectLabels = [] } = review?.reviewResult ?? {}
  if (review?.reviewStatus !== 'completed') return { status: 'pending', labels: rejectLabels }
  if (reviewAnswer === 'GREEN') return { status: 'approved', labels: [] }
  if (reviewAnswer !== 'RED') return { status: 'pending', labels: rejectLabels }
  return { status: reviewRejectType === 'FINAL' ? 'rejected' : 'retry', labels: rejectLabels }
}

function unavailable(detail: string, cause?: unknown): Failure {
  return new Failure('provider_unavailable', detail, { retryAfter: 30 }, { cause })
}

function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
