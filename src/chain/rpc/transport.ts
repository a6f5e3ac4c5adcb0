/**
 * JSON-RPC over HTTP with batching. Calls made in one turn of the event loop share a request: requests took half the
 * time of a transfer, and viem's timer-based batches delay each call by a millisecond.
 */
import {
  BaseError,
  type CustomTransport,
  custom,
  HttpRequestError,
  RpcRequestError,
  TimeoutError,
} from 'viem'
import { z } from 'zod'
import { fetchWithin } from '../../core/base/fetch-within.ts'
import { timers } from '../../core/base/timers.ts'

/** Target node. Calls per request; 1 for nodes without batch support. */
export interface TransportOptions {
  readonly url: string
  readonly timeoutMs: number
  readonly batchSize: number
}

interface Call {
  readonly method: string
  readonly params: unknown
  resolve(result: unknown): void
  reject(error: unknown): void
}

const answers = z
  .array(
    z.object({
      id: z.number(),
      result: z.unknown().optional(),
      error: z.object({ code: z.number(), message: z.string(), data: z.unknown().optional() }).optional(),
    }),
  )
  .or(z.object({ error: z.object({ message: z.string() }) }))

/** Receipts of a burst of transfers share a response, each with its logs. */
const MAX_BYTES = 64 * 1024 * 1024

/** Maximum attempts of a read whose block was pruned. */
const ATTEMPTS = 5

/**
 * Creates a transport that never repeats calls with side effects; only the caller can decide whether that is safe.
 */
export function batchTransport(options: TransportOptions): CustomTransport {
  let waiting: Call[] = []

  function flush(): void {
    const calls = waiting
    waiting = []
    for (let start = 0; start < calls.length; start += options.batchSize)
      void post(options, calls.slice(start, start + options.batchSize))
  }

  const enqueue = (method: string, params: unknown) =>
    new Promise((resolve, reject) => {
      if (waiting.length === 0) timers.soon(flush)
      waiting.push({ method, params, resolve, reject })
    })

  /**
   * Repeats a read whose block was pruned before it was executed, which happens on a development node that mines many
   * blocks. Such a rejection comes before any execution.
   */
  async function request({ method, params }: { method: string; params?: unknown }): Promise<unknown> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await enqueue(method, params)
      } catch (error) {
        if (attempt === ATTEMPTS || !isBlockGone(error)) throw error
      }
    }
  }

  return custom({ request }, { retryCount: 0, name: 'batched HTTP' })
}

async function post(
  { url: address, timeoutMs, batchSize }: TransportOptions,
  calls: readonly Call[],
): Promise<void> {
  // Errors are logged, and the path of a node's URL may contain an API key.
  const url = new URL(address).origin
  const bodies = calls.map(({ method, params }, id) => ({ jsonrpc: '2.0', id, method, params }))
  const [only] = bodies
  const body = { ...only, batch: bodies.length }
  try {
    const { response, text } = await fetchWithin(
      address,
      {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(batchSize === 1 ? only : bodies),
        redirect: 'error',
      },
      { timeoutMs, maxBytes: MAX_BYTES },
    )
    if (!response.ok)
      throw new HttpRequestError({ body, details: text.slice(0, 200), status: response.status, url })
    const parsed: unknown = JSON.parse(text)
    const answered = answers.parse(batchSize === 1 ? [parsed] : parsed)
    if (!Array.isArray(answered)) throw new HttpRequestError({ body, details: answered.error.message, url })
    const byId = new Map(answered.map((answer) => [answer.id, answer]))
    for (const [id, call] of calls.entries()) {
      const answer = byId.get(id)
      if (answer === undefined)
        call.reject(new HttpRequestError({ body, details: `no answer to ${call.method}`, url }))
      else if (answer.error === undefined) call.resolve(answer.result)
      else
        call.reject(new RpcRequestError({ body: { ...body, method: call.method }, error: answer.error, url }))
    }
  } catch (error) {
    const failure = toConnectionError(error, body, url)
    for (const call of calls) call.reject(failure)
  }
}

function toConnectionError(error: unknown, body: Record<string, unknown>, url: string): BaseError {
  if (error instanceof BaseError) return error
  if (error instanceof Error && error.name === 'TimeoutError') return new TimeoutError({ body, url })
  return new HttpRequestError({ body, cause: error instanceof Error ? error : new Error(String(error)), url })
}

function isBlockGone(error: unknown): boolean {
  return error instanceof BaseError && error.details.startsWith('BlockOutOfRangeError')
}
