/**
 * Reviews by Sumsub; each request is signed with the app's secret.
 * @see https://docs.sumsub.com/reference/authentication
 */
import { z } from 'zod'
import { toAlpha3 } from '../../core/base/alpha-3.ts'
import type { Clock } from '../../core/base/clock.ts'
import { timers } from '../../core/base/timers.ts'
import { Failure } from '../../core/failures/failure.ts'
import { callProvider, type ProviderAnswer } from '../http-client.ts'
import type { Application, IdentityReview, Review } from './port.ts'
import { sumsubHeaders } from './sumsub-signature.ts'
import { readSumsubWebhook, verifySumsubWebhook } from './sumsub-webhook.ts'

/**
 * Connection to Sumsub.
 * @property levels its level names for ours.
 * @property webhookSecret null: webhooks are rejected.
 */
export interface SumsubOptions {
  readonly url: string
  readonly appToken: string
  readonly secretKey: string
  readonly webhookSecret: string | null
  readonly levels: Readonly<Record<'basic' | 'full', string>>
  readonly clock: Clock
}

/** Total time limit of an operation; a person is waiting. */
const TIMEOUT_MS = 8_000

/** Lifetime of a link to the page. */
const PAGE_SECONDS = 1_800

/** @see https://docs.sumsub.com/reference/generate-websdk-external-link */
const page = z.object({ url: z.url({ protocol: /^https?$/ }).max(4_096) })

/** Steps of a level by name; null: not submitted. @see https://docs.sumsub.com/reference/get-status-of-verification-steps */
const steps = z.record(z.string(), z.object({}).nullable())

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

export function createSumsubReview(options: SumsubOptions): IdentityReview {
  const { url, appToken, secretKey, levels, clock } = options

  async function request(
    signal: AbortSignal,
    method: 'GET' | 'POST',
    path: string,
    content?: object,
  ): Promise<ProviderAnswer> {
    const body = content === undefined ? '' : JSON.stringify(content)
    try {
      return await callProvider({
        url: new URL(path, url),
        method,
        headers: {
          ...sumsubHeaders({ appToken, secretKey }, { method, path, body, at: clock() }),
          ...(body === '' ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === '' ? {} : { body }),
        timeoutMs: TIMEOUT_MS,
        signal,
      })
    } catch (cause) {
      throw unavailable('The identity reviewer cannot be reached.', cause)
    }
  }

  async function parseApplicant(response: ProviderAnswer): Promise<z.output<typeof applicant>> {
    // The error omits the body, which may contain personal data.
    if (!response.ok) throw unavailable(`The identity reviewer answered ${response.status}.`)
    const parsed = applicant.safeParse(jsonOr(response.text))
    if (!parsed.success) throw unavailable('The identity reviewer returned an unexpected answer.')
    return parsed.data
  }

  async function create(application: Application, signal: AbortSignal) {
    const level = encodeURIComponent(levels[application.level])
    const { firstName, lastName, dateOfBirth, email, phone } = application.applicant
    const response = await request(signal, 'POST', `/resources/applicants?levelName=${level}`, {
      externalUserId: application.id,
      ...(email === null ? {} : { email }),
      ...(phone === null ? {} : { phone }),
      fixedInfo: {
        firstName,
        lastName,
        dob: dateOfBirth,
        country: toAlpha3(application.applicant.country),
        addresses: [buildAddress(application.applicant)],
      },
    })
    // The application was sent before, and the answer was lost.
    if (response.status === 409)
      return parseApplicant(
        await request(
          signal,
          'GET',
          `/resources/applicants/-;externalUserId=${encodeURIComponent(application.id)}/one`,
        ),
      )
    return parseApplicant(response)
  }

  /** Checks that each step of the level was submitted; levels without documents have none. */
  async function hasEveryStep(id: string, signal: AbortSignal): Promise<boolean> {
    const response = await request(signal, 'GET', `/resources/applicants/${id}/requiredIdDocsStatus`)
    if (!response.ok) throw unavailable(`The identity reviewer answered ${response.status}.`)
    const parsed = steps.safeParse(jsonOr(response.text))
    if (!parsed.success) throw unavailable('The identity reviewer returned an unexpected answer.')
    return Object.values(parsed.data).every((step) => step !== null)
  }

  async function requestReview(id: string, signal: AbortSignal): Promise<void> {
    const requested = await request(signal, 'POST', `/resources/applicants/${id}/status/pending`)
    if (!requested.ok && requested.status !== 409)
      throw unavailable(`The identity reviewer answered ${requested.status}.`)
  }

  return {
    async page({ id, level }, now) {
      const response = await request(
        timers.deadline(TIMEOUT_MS),
        'POST',
        '/resources/sdkIntegrations/levels/-/websdkLink',
        { levelName: levels[level], userId: id, ttlInSecs: PAGE_SECONDS },
      )
      if (!response.ok) throw unavailable(`The identity reviewer answered ${response.status}.`)
      const parsed = page.safeParse(jsonOr(response.text))
      if (!parsed.success) throw unavailable('The identity reviewer returned an unexpected answer.')
      return { url: parsed.data.url, expiresAt: new Date(now.getTime() + PAGE_SECONDS * 1_000) }
    },
    async submit(application) {
      const signal = timers.deadline(TIMEOUT_MS)
      const created = await create(application, signal)
      if (created.review === undefined || created.review.reviewStatus === 'init') {
        // A review that is requested before its documents are there is rejected; the page requests it by itself.
        if (await hasEveryStep(created.id, signal)) await requestReview(created.id, signal)
      }
      return { reference: created.id, review: parseReview(created) }
    },
    verify: (delivery) => verifySumsubWebhook(delivery, options.webhookSecret),
    readNotice: readSumsubWebhook,
    async read(reference) {
      return parseReview(
        await parseApplicant(
          await request(timers.deadline(TIMEOUT_MS), 'GET', `/resources/applicants/${reference}/one`),
        ),
      )
    },
  }
}

/** @see https://docs.sumsub.com/reference/create-applicant */
function buildAddress({ address, residence, country }: Application['applicant']) {
  const { street = address, city, state, postalCode } = residence
  return {
    country: toAlpha3(country),
    street,
    ...(city === undefined ? {} : { town: city }),
    ...(state === undefined ? {} : { state }),
    ...(postalCode === undefined ? {} : { postCode: postalCode }),
  }
}

/**
 * Maps a review: GREEN is an approval; RED is a rejection, permanent or until the person tries again. Anything
 * incomplete is pending.
 */
function parseReview(found: z.output<typeof applicant>): Review {
  const subject = { reference: found.id, applicationId: found.externalUserId ?? null }
  return { ...parseVerdict(found), subject }
}

function parseVerdict({ review }: z.output<typeof applicant>): Review {
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
