/**
 * A Travel Rule network behind one HTTPS API, for a gateway to any of the real ones (TRP, TRISA, GTR and the like each want their
 * own membership). `POST {url}/transfers` with `Idempotency-Key` and a Bearer key takes `{id, beneficiaryVASP: {name, lei},
 * asset, amount, chain, destination, ivms101}` and answers `{reference, status: sent|accepted|declined, reason}`;
 * `GET {url}/transfers/{reference}` answers the same. Every other answer is none, and the question is asked again.
 */
import { z } from 'zod'
import { Failure } from '../../failures/failure.ts'
import { callProvider } from '../http-client.ts'
import type { TravelRuleAnswer, TravelRuleNetwork } from '../travel-rule-network.ts'

/** How to reach it. */
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

/** The network port over the API. */
export function createHttpTravelRule({
  url,
  apiKey,
  timeoutMs = 5_000,
}: TravelRuleHttpOptions): TravelRuleNetwork {
  const base = url.replace(/\/+$/, '')
  const ask = async (
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
      // What it says may hold what it was told of people: it is not repeated.
      if (!parsed.success) throw unavailable('answered something else')
      return parsed.data
    } catch (cause) {
      throw cause instanceof Failure ? cause : unavailable('cannot be reached', cause)
    }
  }
  return {
    send: async ({ id, institution, token, amount, chain, destination, payload }) => {
      const told = await ask('/transfers', {
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
      return { reference: told.reference, ...answerOf(told) }
    },
    read: async (reference) => {
      const told = await ask(`/transfers/${encodeURIComponent(reference)}`)
      return { reference: told.reference, ...answerOf(told) }
    },
  }
}

function answerOf({ status, reason = null }: z.output<typeof answer>): TravelRuleAnswer {
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
