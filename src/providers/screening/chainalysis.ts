/**
 * Screening with Chainalysis' sanctions API, or a compatible one: `GET {base}/api/v1/address/{address}` with the key
 * in `X-API-Key` answers `{identifications: [{category, name, …}]}`, empty for a clear address. Any other answer is
 * an error.
 * @see https://www.chainalysis.com/free-cryptocurrency-sanctions-screening-tools/
 */
import { z } from 'zod'
import type { Log } from '../../core/base/log.ts'
import { Failure } from '../../core/failures/failure.ts'
import { rootCause } from '../../core/failures/root-cause.ts'
import type { Address } from '../chain/port.ts'
import { callProvider, parseRetryAfter } from '../http-client.ts'
import type { AddressScreening } from './port.ts'

const answer = z.object({ identifications: z.array(z.object({ category: z.string() })) })

const LISTS = ['chainalysis']

/** Connection to the provider. @property timeoutMs time limit for the whole answer; payments wait for it. */
export interface ChainalysisOptions {
  readonly url: string
  readonly apiKey: string | null
  readonly log: Log
  readonly timeoutMs?: number
}

export function createChainalysisScreening(options: ChainalysisOptions): AddressScreening {
  return {
    screen: async (address) => {
      const { identifications } = await requestScreening(options, address)
      return { result: identifications.length > 0 ? 'blocked' : 'clear', lists: LISTS }
    },
  }
}

async function requestScreening(
  { url, apiKey, log, timeoutMs = 2_000 }: ChainalysisOptions,
  address: Address,
) {
  try {
    const response = await callProvider({
      url: `${url.replace(/\/+$/, '')}/api/v1/address/${address}`,
      headers: { accept: 'application/json', ...(apiKey === null ? {} : { 'x-api-key': apiKey }) },
      timeoutMs,
    })
    if (response.status === 200) return answer.parse(JSON.parse(response.text))
    throw unavailable(`answered ${response.status}`, { retryAfter: parseRetryAfter(response) })
  } catch (cause) {
    const failure =
      cause instanceof Failure
        ? cause
        : unavailable(`returned no usable answer within ${timeoutMs} ms`, { cause })
    log.warn({ why: rootCause(cause) }, 'the AML screening provider failed')
    throw failure
  }
}

function unavailable(
  why: string,
  { retryAfter = 5, cause }: { retryAfter?: number | undefined; cause?: unknown },
): Failure {
  return new Failure(
    'screening_unavailable',
    `The AML screening provider ${why}; nothing was sent.`,
    {
      retryAfter,
      hint: 'Send the same request again later.',
    },
    cause === undefined ? undefined : { cause },
  )
}
