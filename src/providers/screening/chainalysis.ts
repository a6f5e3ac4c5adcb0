/**
 * Screening by Chainalysis' sanctions API, or by whoever speaks like it: `GET {base}/api/v1/address/{address}` with the key in
 * `X-API-Key` answers `{identifications: [{category, name, …}]}`, empty where nothing is known. Everything else is no answer.
 * @see https://www.chainalysis.com/free-cryptocurrency-sanctions-screening-tools/
 */
import { z } from 'zod'
import { Failure } from '../../failure.ts'
import type { Log } from '../../log.ts'
import { jsonOf } from '../../read-body.ts'
import { rootCause } from '../../root-cause.ts'
import type { Address } from '../chain.ts'
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
    const response = await fetch(`${url.replace(/\/+$/, '')}/api/v1/address/${address}`, {
      headers: { accept: 'application/json', ...(apiKey === null ? {} : { 'x-api-key': apiKey }) },
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    })
    if (response.status === 200) return answer.parse(await jsonOf(response))
    const retryAfter = response.headers.get('retry-after')
    await response.body?.cancel()
    throw unavailable(`answered ${response.status}`, { retryAfter })
  } catch (cause) {
    const failure =
      cause instanceof Failure ? cause : unavailable(`gave no usable answer in ${timeoutMs} ms`, { cause })
    log.warn({ why: rootCause(cause) }, 'the provider of AML screening cannot be used')
    throw failure
  }
}

function unavailable(
  why: string,
  { retryAfter = null, cause }: { retryAfter?: string | null; cause?: unknown },
): Failure {
  return new Failure(
    'screening_unavailable',
    `The provider of AML screening ${why}; nothing was sent.`,
    {
      retryAfter: retryAfter !== null && /^[1-9]\d{0,4}$/.test(retryAfter) ? Number(retryAfter) : 5,
      hint: 'Send the same request again later.',
    },
    cause === undefined ? undefined : { cause },
  )
}
