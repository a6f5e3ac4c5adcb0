/**
 * Requests to live aggregators: JSON over HTTP within the caller's time limit, with one retry of repeatable calls.
 */
import { z } from 'zod'
import { callProvider } from '../http-client.ts'
import type { SwapAnswer } from './port.ts'

/** A request. @property body body of a POST. */
interface Question {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly signal: AbortSignal
}

/** Statuses of a working aggregator without a route. */
const NO_ROUTE: ReadonlySet<number> = new Set([400, 404, 422])

/**
 * Sends a request.
 * @param shape schema of a 200 answer.
 * @returns `none` when the route is refused.
 * @throws Error `timeout`, `unavailable` or `bad_answer`.
 */
export async function requestQuote<Schema extends z.ZodType>(
  question: Question,
  shape: Schema,
): Promise<{ found: z.output<Schema> } | Extract<SwapAnswer, { status: 'none' }>> {
  const response = await send(question)
  if (NO_ROUTE.has(response.status)) return { status: 'none', reason: 'no_route' }
  if (response.status !== 200) throw new Error('unavailable')
  const parsed = shape.safeParse(response.body)
  if (!parsed.success) throw new Error('bad_answer', { cause: parsed.error })
  return { found: parsed.data }
}

async function send(question: Question): Promise<{ status: number; body: unknown }> {
  const first = await sendOnce(question).catch((error: unknown) => ({ error }))
  const mayRepeat = question.body === undefined && !question.signal.aborted
  const isShaky = 'error' in first || first.status >= 500
  const answer =
    isShaky && mayRepeat ? await sendOnce(question).catch((error: unknown) => ({ error })) : first
  if (!('error' in answer)) return answer
  throw new Error(question.signal.aborted ? 'timeout' : 'unavailable', { cause: answer.error })
}

async function sendOnce({ url, headers = {}, body, signal }: Question) {
  const response = await callProvider({
    url,
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      accept: 'application/json',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal,
  })
  return { status: response.status, body: parseJsonText(response.text) }
}

function parseJsonText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Invalid JSON does not match any schema either.
    return undefined
  }
}

/** Smallest units as text, limited to the digits of a 256-bit number. */
export const units = z
  .string()
  .regex(/^\d{1,78}$/)
  .transform(BigInt)

export const hex = z.templateLiteral(['0x', z.string().regex(/^[0-9a-fA-F]*$/)])

export const address = z.templateLiteral(['0x', z.string().regex(/^[0-9a-fA-F]{40}$/)])

/** Expected duration of a swap, in seconds. */
export const seconds = z.number().nonnegative().max(1_000_000)

/** Dollars as decimal text or number, converted to millionths and rounded up, so that a fee is never understated. */
export const dollars = z
  .union([z.string().regex(/^\d{1,12}(\.\d{1,36})?$/), z.number().nonnegative().max(999_999_999_999)])
  .transform((value) => {
    const [whole = '0', fraction = ''] = (typeof value === 'number' ? value.toFixed(12) : value).split('.')
    const micros = BigInt(whole + fraction.slice(0, 6).padEnd(6, '0'))
    return /[1-9]/.test(fraction.slice(6)) ? micros + 1n : micros
  })

/** Checks for a route between EVM chains with token addresses and a known sender. */
export function isEvmRoute<Route extends { chainId: number | null; address: string | null }>(
  from: Route,
  to: Route,
): boolean {
  return [from, to].every(({ chainId, address }) => chainId !== null && address !== null)
}
