/**
 * Public texts, equal for all readers, compressed once and not for each request: compression tells nothing about a secret
 * then, and costs a flood of requests nothing.
 */
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { HttpContext } from './request.ts'

const compress = promisify(gzip)

/** Below this, the header fields of a compressed answer cost what it saves. */
const MIN_BYTES = 1_024

interface Compressed {
  readonly text: string
  readonly gzip: Promise<Uint8Array<ArrayBuffer>>
}

/** By the name of the text. A process has as many as it has files and pages. */
const known = new Map<string, Compressed>()

/**
 * Answers with a public text. @param name of the text, never taken from a request as it is.
 */
export async function sendPublic(
  c: HttpContext,
  { name, text, headers }: { name: string; text: string; headers: Readonly<Record<string, string>> },
): Promise<Response> {
  if (text.length < MIN_BYTES) return c.body(text, 200, headers)
  c.header('Vary', 'Accept-Encoding')
  if (!acceptsGzip(c.req.header('accept-encoding') ?? '')) return c.body(text, 200, headers)
  const kept = known.get(name)
  const compressed = kept?.text === text ? kept : { text, gzip: compress(text) }
  known.set(name, compressed)
  return c.body(await compressed.gzip, 200, { ...headers, 'Content-Encoding': 'gzip' })
}

function acceptsGzip(accepted: string): boolean {
  return accepted.split(',').some((coding) => /^\s*(gzip|\*)\s*(;(?!\s*q=0(\.0*)?\s*$).*)?$/i.test(coding))
}
