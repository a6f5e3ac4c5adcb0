/**
 * JSON-RPC over HTTP, several calls to a request. Calls made in one turn of the event loop travel together: half the work
 * of a transfer was in its requests, and waiting for a timer, as viem's own batches do, costs each call a millisecond.
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
import { fetchWithin } from '../../../base/fetch-within.ts'

/** Where to, and how many calls may travel together: 1 for nodes that take no batches. */
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

/** Receipts of a burst of transfers travel together, each with its logs. */
const LARGEST_BYTES = 64 * 1024 * 1024

/** How often a read is asked again that met a new block. */
const ATTEMPTS = 5

/** A transport that never asks twice for what may have been done: whoever waits knows better whether that is safe. */
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
      if (waiting.length === 0) setImmediate(flush)
      waiting.push({ method, params, resolve, reject })
    })

  /**
   * Asks again where the block a read was for is gone before it was read, as happens on a development node that prunes its
   * history and mines many blocks. Such a refusal comes before anything is executed.
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
  // Errors are logged, and the path of a node's address may be a key of ours.
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
      { timeoutMs, maxBytes: LARGEST_BYTES },
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
    const failure = connectionErrorOf(error, body, url)
    for (const call of calls) call.reject(failure)
  }
}

function connectionErrorOf(error: unknown, body: Record<string, unknown>, url: string): BaseError {
  if (error instanceof BaseError) return error
  if (error instanceof Error && error.name === 'TimeoutError') return new TimeoutError({ body, url })
  return new HttpRequestError({ body, cause: error instanceof Error ? error : new Error(String(error)), url })
}

function isBlockGone(error: unknown): boolean {
  return error instanceof BaseError && error.details.startsWith('BlockOutOfRangeError')
}
