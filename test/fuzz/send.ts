/** Sends a request verbatim: no client normalizes targets or headers. */
import { Agent, request } from 'node:http'

/** An answer. @property ms from the first byte sent to the last received. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
  readonly ms: number
}

/** Far above our answer times. */
const TIMEOUT_MS = 20_000

const agent = new Agent({ keepAlive: true, maxSockets: 64 })

/** Sends one request. @throws Error without a complete answer. */
export function send(
  origin: string,
  {
    method,
    target,
    headers,
    body,
  }: {
    readonly method: string
    readonly target: string
    readonly headers: Readonly<Record<string, string>>
    readonly body: string | null
  },
): Promise<Answer> {
  const { hostname, port } = new URL(origin)
  const startedAt = performance.now()
  return new Promise((resolve, reject) => {
    const bytes = body === null ? null : Buffer.from(body)
    const outgoing = request(
      {
        agent,
        hostname,
        port,
        method,
        path: target,
        timeout: TIMEOUT_MS,
        headers: { ...headers, ...(bytes === null ? {} : { 'content-length': bytes.length }) },
      },
      (incoming) => {
        const parts: Buffer[] = []
        incoming.on('data', (part: Buffer) => parts.push(part))
        incoming.on('error', reject)
        incoming.on('end', () =>
          resolve({
            status: incoming.statusCode ?? 0,
            headers: incoming.headers,
            text: Buffer.concat(parts).toString(),
            ms: performance.now() - startedAt,
          }),
        )
      },
    )
    outgoing.on('timeout', () => outgoing.destroy(new Error(`no answer in ${TIMEOUT_MS} ms`)))
    outgoing.on('error', reject)
    outgoing.end(bytes ?? undefined)
  })
}
