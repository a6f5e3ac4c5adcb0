/** The gateway that pays, as the proxy speaks to it: signed requests of one agent's key. */
import type { IncomingMessage } from 'node:http'
import { systemClock } from '../../core/base/clock.ts'
import { type SigningKey, signRequest } from '../../people/identity/keys/sign-request.ts'
import { requestGateway } from './outgoing.ts'

/** Longer than the gateway takes for a purchase whose seller answers late. */
const TIMEOUT_MS = 100_000
/** Purchases with their answers, 256 KiB of text that JSON may write six times as long. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024

export type Json = Readonly<Record<string, unknown>>

/** @property retryAfter seconds; null if the gateway does not say. */
export interface GatewayAnswer {
  readonly status: number
  readonly body: Json
  readonly retryAfter: number | null
}

export interface GatewayClient {
  readonly origin: string
  /** @param onSent called when bytes may have left. @throws Error if the gateway does not answer. */
  post(
    target: string,
    body: Json,
    options: { readonly idempotencyKey: string; readonly onSent: () => void },
  ): Promise<GatewayAnswer>
  /** Opens an answer as a stream. @throws Error if the gateway does not answer. */
  openStream(target: string): Promise<IncomingMessage>
  /** True for a gateway with play money. @throws Error if it does not answer. */
  isSandbox(): Promise<boolean>
}

export function createGatewayClient(origin: string, key: SigningKey): GatewayClient {
  const send = async (
    method: string,
    target: string,
    given: {
      readonly body?: Buffer
      readonly idempotencyKey?: string
      readonly accept?: string
      readonly onSent?: () => void
    },
  ) => {
    const { body = null, idempotencyKey, accept = 'application/json', onSent } = given
    const signed = await signRequest(key, {
      origin,
      method,
      target,
      body,
      idempotencyKey,
      at: systemClock(),
    })
    return requestGateway({
      url: new URL(target, origin),
      method,
      headers: { ...signed, accept, ...(body === null ? {} : { 'content-type': 'application/json' }) },
      body,
      timeoutMs: TIMEOUT_MS,
      ...(onSent === undefined ? {} : { onSent }),
    })
  }
  return {
    origin,
    async post(target, body, options) {
      const answer = await send('POST', target, { ...options, body: Buffer.from(JSON.stringify(body)) })
      const retryAfter = Number(answer.headers['retry-after'] ?? Number.NaN)
      return {
        status: answer.statusCode ?? 0,
        body: toJson(await readWhole(answer, MAX_ANSWER_BYTES)),
        retryAfter: Number.isFinite(retryAfter) ? retryAfter : null,
      }
    },
    openStream: (target) => send('GET', target, { accept: 'application/octet-stream' }),
    async isSandbox() {
      const answer = await requestGateway({
        url: new URL('/sandbox/sellers', origin),
        method: 'GET',
        headers: { accept: 'application/json' },
        body: null,
        timeoutMs: TIMEOUT_MS,
      })
      const body = toJson(await readWhole(answer, MAX_ANSWER_BYTES))
      return answer.statusCode === 200 && Array.isArray(body.sellers)
    },
  }
}

/** @throws Error for a body that is cut off or too long. */
async function readWhole(answer: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of answer) {
    const bytes = Buffer.from(chunk)
    size += bytes.length
    if (size > maxBytes) throw new Error('the answer is too long')
    chunks.push(bytes)
  }
  return Buffer.concat(chunks)
}

function toJson(bytes: Buffer): Json {
  try {
    return toRecord(JSON.parse(bytes.toString()))
  } catch {
    return {}
  }
}

export function toRecord(value: unknown): Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}
