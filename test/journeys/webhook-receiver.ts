/** A program that receives webhooks, verified by the reference library of Standard Webhooks. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { Webhook } from 'standardwebhooks'
import { eventShape, type SentEvent } from './event-stream.ts'

export interface Received {
  readonly event: SentEvent
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface Receiver {
  readonly url: string
  /** Every request whose signature verifies. */
  readonly received: Received[]
  /** Requests whose signature does not verify. */
  readonly forged: string[]
  /** Sets the secret. */
  trust(secret: string): void
  close(): Promise<void>
}

/** @param answer answers a verified request; by default with 204. */
export async function startReceiver(
  answer: (response: ServerResponse, event: SentEvent) => void = (response) => response.writeHead(204).end(),
): Promise<Receiver> {
  const received: Received[] = []
  const forged: string[] = []
  let webhook: Webhook | undefined
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      const body = Buffer.concat(parts).toString()
      const headers = Object.fromEntries(
        Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
      )
      try {
        const event = eventShape.parse(webhook?.verify(body, headers))
        received.push({ event, headers, body })
        answer(response, event)
      } catch {
        forged.push(body)
        response.writeHead(401).end()
      }
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the receiver has no port')
  return {
    url: `http://127.0.0.1:${address.port}/events`,
    received,
    forged,
    trust: (secret) => {
      webhook = new Webhook(secret)
    },
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
