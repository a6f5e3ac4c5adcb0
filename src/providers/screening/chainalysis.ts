/**
 * Screening by Chainalysis' sanctions API, or by whoever speaks like it: `GET {base}/api/v1/address/{address}` with the key in
 * `X-API-Key` answers `{identifications: [{category, name, …}]}`, empty where nothing is known. Everything else is no answer.
 * @see https://www.chainalysis.com/free-cryptocurrency-sanctions-screening-tools/
 */
import { z } from 'zod'
import type { Log } from '../../base/log.ts'
import { Failure } from '../../failures/failure.ts'
import { rootCause } from '../../failures/root-cause.ts'
import type { Address } from '../chain.ts'
import { callProvider, retryAfterOf } from '../http-client.ts'
import type { AddressScreening } from '../screening.ts'

const answer = z.object({ identifications: z.array(z.object({ category: z.string() })) })

const LISTS = ['chainalysis']

/** How to reach the provider. @property timeoutMs for the whole answer; money waits for it. */
export interface ChainalysisOptions {
  readonly url: string
  readonly apiKey: string | null
  readonly log: Log
  readonly timeoutMs?: number
}

/** The screening port over the API. */
export function createChainalysisScreening(options: ChainalysisOptions): AddressScreening {
  return {
    screen: async (address) => {
      const { identifications } = await ask(options, address)
      return { result: identifications.length > 0 ? 'blocked' : 'clear', lists: LISTS }
    },
  }
}

async function ask({ url, apiKey, log, timeoutMs = 2_000 }: ChainalysisOptions, address: Address) {
  try {
    const response = await callProvider({
      url: `${url.replace(/\/+$/, '')}/api/v1/address/${address}`,
      headers: { accept: 'application/json', ...(apiKey === null ? {} : { 'x-api-key': apiKey }) },
      timeoutMs,
    })
    if (response.status === 200) return answer.parse(JSON.parse(response.text))
    throw unavailable(`answered ${response.status}`, { retryAfter: retryAfterOf(response) })
  } catch (cause) {
    const failure =
      cause instanceof Failure ? cause : unavailable(`gave no usable answer in ${timeoutMs} ms`, { cause })
    log.warn({ why: rootCause(cause) }, 'the provider of AML screening cannot be used')
    throw failure
  }
}

function unavailable(
  why: string,
  { retryAfter = 5, cause }: { retryAfter?: number | undefined; cause?: unknown },
): Failure {
  return new Failure(
    'screening_unavailable',
    `The provider of AML screening ${why}; nothing was sent.`,
    {
      retryAfter,
      hint: 'Send the same request again later.',
    },
    cause === undefined ? undefined : { cause },
  )
}
