/** A misbehaving mail server: a request for a code fails in bounded time with the code unsent. */
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { silentLog as log } from '../../src/core/base/log.ts'
import { Failure } from '../../src/core/failures/failure.ts'
import { createSmtpMessages } from '../../src/providers/messages/smtp.ts'

const every = (socket: Socket, ms: number, text: string) => {
  const timer = setInterval(() => socket.write(text), ms)
  socket.on('close', () => clearInterval(timer))
}

const moods: Readonly<Record<string, (socket: Socket) => void>> = {
  'says nothing': () => {},
  'hangs up at once': (socket) => socket.destroy(),
  'speaks HTTP': (socket) => void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n<html>'),
  'greets without an end': (socket) => every(socket, 1, `220-${'welcome '.repeat(100)}\r\n`),
  'greets byte by byte': (socket) => every(socket, 50, '2'),
  'greets and then says nothing': (socket) => void socket.write('220 here\r\n'),
  'agrees to everything with nonsense': (socket) => {
    socket.write('220 here\r\n')
    socket.on('data', () => socket.write('999 what\r\n'))
  },
}

describe('mail through a server that', () => {
  const servers: Server[] = []
  const found = new Map<string, { error: unknown; ms: number }>()

  beforeAll(async () => {
    await Promise.all(
      Object.entries(moods).map(async ([name, mood]) => {
        const server = createServer((socket) => {
          socket.on('error', () => {})
          socket.resume()
          mood(socket)
        }).listen(0, '127.0.0.1')
        servers.push(server)
        await once(server, 'listening')
        const { port } = z.object({ port: z.number() }).parse(server.address())
        const startedAt = performance.now()
        const error = await createSmtpMessages({
          url: `smtp://127.0.0.1:${port}`,
          from: 'a@b.example',
          log,
        })
          .send({
            ...{
              channel: 'email',
              destination: 'c@d.example',
              subject: 'Code',
              text: '123456',
              code: '123456',
            },
            at: new Date(),
          })
          .catch((thrown: unknown) => thrown)
        found.set(name, { error, ms: performance.now() - startedAt })
      }),
    )
  }, 30_000)
  afterAll(() => {
    for (const server of servers) server.close()
  })

  it.each(Object.keys(moods))('%s is reported as not sent', (name) => {
    const { error, ms } = found.get(name) ?? { error: undefined, ms: 0 }
    expect(error).toBeInstanceOf(Failure)
    expect(error).toMatchObject({ code: 'provider_unavailable', members: { retryAfter: expect.any(Number) } })
    expect(ms).toBeLessThan(7_000)
  })
})
