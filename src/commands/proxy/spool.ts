/** A program's request body: it goes to the origin as it comes, and is kept beside it in case the origin wants to be paid. */
import type { ClientRequest, IncomingMessage } from 'node:http'
import { countPassed } from './passed-bytes.ts'

/** What a purchase can carry. */
const MAX_BODY_BYTES = 4 * 1024 * 1024
/** Bodies that are kept at a time, of all requests. */
const MAX_KEPT_BYTES = 32 * 1024 * 1024

/** The memory of all spools of a proxy. */
export interface SpoolSpace {
  kept: number
}

export type SpooledBody = { readonly body: Buffer | null } | { readonly problem: 'body_too_long' | 'aborted' }

export interface Spool {
  /** Ends sending to the origin, which has answered: the rest is only kept. */
  stopSending(): void
  /** Forgets what was kept: it will not be needed. */
  drop(): void
  /** Waits for the end of the body. */
  readWhole(): Promise<SpooledBody>
}

/** Sends a body to the origin while it comes, no faster than the origin takes it. */
export function spoolBody(request: IncomingMessage, outgoing: ClientRequest, space: SpoolSpace): Spool {
  let chunks: Buffer[] | null = []
  let size = 0
  let isSending = true
  let isWhole = false
  let isAborted = false
  const settled = new Set<() => void>()
  const settle = () => {
    for (const tell of settled) tell()
    settled.clear()
  }
  const drop = () => {
    if (chunks === null) return
    chunks = null
    space.kept -= size
    settle()
  }
  if (Number(request.headers['content-length'] ?? 0) > MAX_BODY_BYTES) drop()
  countPassed(request)
  const resume = () => void request.resume()
  request.on('data', (chunk: Buffer) => {
    if (chunks !== null) {
      chunks.push(chunk)
      size += chunk.length
      space.kept += chunk.length
      if (size > MAX_BODY_BYTES || space.kept > MAX_KEPT_BYTES) drop()
    }
    if (!isSending || outgoing.write(chunk)) return
    request.pause()
    outgoing.once('drain', resume)
  })
  request.once('end', () => {
    isWhole = true
    if (isSending) outgoing.end()
    settle()
  })
  request.once('close', () => {
    isAborted = !isWhole
    settle()
  })
  return {
    stopSending() {
      isSending = false
      outgoing.off('drain', resume)
      resume()
    },
    drop,
    async readWhole() {
      while (chunks !== null && !isWhole && !isAborted)
        await new Promise<void>((resolve) => settled.add(resolve))
      if (isAborted) return { problem: 'aborted' }
      return chunks === null ? { problem: 'body_too_long' } : { body: Buffer.concat(chunks) }
    },
  }
}
