/** The server below the app, with short timeouts. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createGatewayServer } from '../../../src/server/http/server.ts'
import { answerIn, sendRaw } from './raw.ts'

const PATIENCE = { headersMs: 300, requestMs: 600, idleMs: 5_000, checkMs: 50 }

let server: ReturnType<typeof createGatewayServer>
let port = 0
beforeEach(async () => {
  server = createGatewayServer(() => 'req_1', PATIENCE)
  server.on('request', (request, response) => {
    if (request.url === '/early') response.write('begun')
    request.on('end', () => response.end('whole')).resume()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  // A listening server has an address object with a port.
  port = (server.address() as AddressInfo).port
})
afterEach(() => void server.close())

it.each([
  ['headers', 'GET / HTTP/1.1\r\nHost: x\r\nX-Slow'],
  ['body', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nslow'],
  ['chunks', 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nslow\r\n'],
])('ends a slow %s with 408', async (_name, bytes) => {
  const { status, head, body } = answerIn((await sendRaw(port, bytes)) ?? '')
  expect(status).toBe(408)
  expect(head).toContain('Content-Type: application/problem+json')
  expect(head).toContain('X-Request-Id: req_1')
  expect(head).toContain('Connection: close')
  expect(JSON.parse(body)).toMatchObject({ code: 'request_timeout', status: 408, requestId: 'req_1' })
})

it('writes no second answer into one that has begun', async () => {
  const bytes = 'POST /early HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'
  const text = (await sendRaw(port, bytes)) ?? 'still open'
  expect(text.match(/HTTP\/1\.1/g)?.length ?? 0).toBeLessThan(2)
  expect(text).not.toContain('invalid_request')
})

it('survives clients that disconnect', async () => {
  await Promise.all(
    Array.from({ length: 50 }, () =>
      sendRaw(port, 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\na', { withinMs: 20 }),
    ),
  )
  expect(
    answerIn((await sendRaw(port, 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')) ?? '').status,
  ).toBe(200)
})
