/**
 * A Travel Rule network behind one HTTPS API, as a bridge to a real network (TRP, TRISA, GTR and others need
 * memberships of their own). `POST {url}/transfers` with `Idempotency-Key` and a Bearer key takes `{id,
 * beneficiaryVASP: {name, lei}, asset, amount, chain, destination, ivms101}` and answers `{reference, status:
 * sent|accepted|declined, reason}`; `GET {url}/transfers/{reference}` answers the same. Any other answer is an error,
 * and the request is retried.
 */
import { z } from 'zod'
import { Failure } from '../../core/failures/failure.ts'
import { callProvider } from '../http-client.ts'
import type { TravelRuleAnswer, TravelRuleNetwork } from './port.ts'

export interface TravelRuleHttpOptions {
  readonly url: string
  readonly apiKey: string | null
  readonly timeoutMs?: number
}

const answer = z.object({
  reference: z.string().regex(/^[\w.~-]{1,200}$/),
  status: z.enum(['sent', 'accepted', 'declined']),
  reason: z
    .string()
    .transform((text) => text.slice(0, 500))
    .nullish(),
})

export function createHttpTravelRule({
  url,
  apiKey,
  timeoutMs = 5_000,
}: TravelRuleHttpOptions): TravelRuleNetwork {
  const base = url.replace(/\/+$/, '')
  const request = async (
    path: string,
    request: { method?: string; headers?: Record<string, string>; body?: string } = {},
  ) => {
    try {
      const response = await callProvider({
        ...request,
        url: `${base}${path}`,
        headers: {
          accept: 'application/json',
          ...(apiKey === null ? {} : { authorization: `Bearer ${apiKey}` }),
          ...request.headers,
        },
        timeoutMs,
      })
      if (!response.ok) throw unavailable(`answered ${response.status}`)
      const parsed = answer.safeParse(JSON.parse(response.text))
      // The error omits the body, which may contain personal data.
      if (!parsed.success) throw unavailable('returned an unexpected answer')
      return parsed.data
    } catch (cause) {
      throw cause instanceof Failure ? cause : unavailable('cannot be reached', cause)
    }
  }
  return {
    send: async ({ id, institution, token, amount, chain, destination, payload }) => {
      const answered = await request('/transfers', {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': id },
        body: JSON.stringify({
          id,
          beneficiaryVASP: institution,
          asset: token,
          amount,
          chain,
          destination,
          ivms101: payload,
        }),
      })
      return { reference: answered.reference, ...toAnswer(answered) }
    },
    read: async (reference) => {
      const answered = await request(`/transfers/${encodeURIComponent(reference)}`)
      return { reference: answered.reference, ...toAnswer(answered) }
    },
  }
}

function toAnswer({ status, reason = null }: z.output<typeof answer>): TravelRuleAnswer {
  return { status, reason }
}

function unavailable(why: string, cause?: unknown): Failure {
  return new Failure(
    'provider_unavailable',
    `The Travel Rule network ${why}.`,
    { retryAfter: 30 },
    cause === undefined ? undefined : { cause },
  )
}
