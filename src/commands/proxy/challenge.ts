/** Recognizes a 402 that asks for a payment which the gateway may know how to make. The gateway reads the terms itself. */
import type { IncomingMessage } from 'node:http'
import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib'
import { timers } from '../../core/base/timers.ts'

/** What is read of a body before it is decided: a longer one is no challenge. */
const MAX_BYTES = 64 * 1024
const READ_MS = 5_000

/** @property head what was read of the body; the rest is still in the answer, which is paused. */
export interface Challenge {
  readonly isPayable: boolean
  readonly head: readonly Buffer[]
}

/** Reads as much of a 402 as tells whether it asks by x402 or MPP. */
export async function readChallenge(answer: IncomingMessage): Promise<Challenge> {
  const { headers } = answer
  const asksByField =
    headers['payment-required'] !== undefined ||
    /(^|,)\s*payment(\s|$)/i.test(headers['www-authenticate'] ?? '')
  if (asksByField) return { isPayable: true, head: [] }
  const { head, isWhole } = await readHead(answer)
  const body = isWhole ? decode(Buffer.concat(head), headers['content-encoding']) : null
  return { isPayable: body !== null && isChallengeV1(body), head }
}

function readHead(answer: IncomingMessage): Promise<{ head: readonly Buffer[]; isWhole: boolean }> {
  return new Promise((resolve) => {
    const head: Buffer[] = []
    let size = 0
    const finish = (isWhole: boolean) => {
      cancel()
      answer.off('data', add).off('end', end).off('close', close).pause()
      resolve({ head, isWhole })
    }
    const add = (chunk: Buffer) => {
      head.push(chunk)
      size += chunk.length
      if (size > MAX_BYTES) finish(false)
    }
    const end = () => finish(true)
    const close = () => finish(false)
    const cancel = timers.after(READ_MS, close, { isIdle: true })
    answer.on('data', add).once('end', end).once('close', close)
  })
}

function decode(body: Buffer, encoding = 'identity'): string | null {
  const options = { maxOutputLength: MAX_BYTES }
  try {
    switch (encoding.trim().toLowerCase()) {
      case 'identity':
        return body.toString()
      case 'gzip':
      case 'x-gzip':
        return gunzipSync(body, options).toString()
      case 'deflate':
        return inflateSync(body, options).toString()
      case 'br':
        return brotliDecompressSync(body, options).toString()
      default:
        return null
    }
  } catch {
    return null
  }
}

/** Version 1 of x402 asks in the body. */
function isChallengeV1(text: string): boolean {
  try {
    const { x402Version, accepts }: { x402Version?: unknown; accepts?: unknown } = { ...JSON.parse(text) }
    return x402Version === 1 && Array.isArray(accepts)
  } catch {
    return false
  }
}
