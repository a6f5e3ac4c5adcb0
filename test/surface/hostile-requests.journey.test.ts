/** Malformed requests, byte by byte: each is rejected with a problem, and the gateway continues. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Gateway, startGateway } from '../journeys/gateway.ts'
import { newGuest } from '../journeys/people.ts'
import { answerIn, sendRaw } from '../server/http/raw.ts'

const problem = z.looseObject({
  code: z.string(),
  status: z.int(),
  instance: z.string(),
  requestId: z.string(),
})

let gateway: Gateway
let port = 0
let token = ''
beforeAll(async () => {
  gateway = await startGateway({
    CHAIN: 'simulated',
    RATE_FEEDBACK: '100000/60',
    RATE_MUTATIONS: '100000/60',
  })
  port = Number(new URL(gateway.origin).port)
  token = (await newGuest(gateway.origin)).token
})
afterAll(() => gateway?.stop())

const head = (line: string, ...headers: string[]) =>
  `${[line, `Host: 127.0.0.1:${port}`, 'Connection: close', ...headers].join('\r\n')}\r\n\r\n`
const get = (target: string, ...headers: string[]) => head(`GET ${target} HTTP/1.1`, ...headers)
const post = (body: string | Buffer, ...headers: string[]) => {
  const bytes = Buffer.from(body)
  const type = 'Content-Type: application/json'
  const start = head('POST /api/docs/feedback HTTP/1.1', type, `Content-Length: ${bytes.length}`, ...headers)
  return Buffer.concat([Buffer.from(start), bytes])
}
const postStart = (...headers: string[]) =>
  head('POST /api/docs/feedback HTTP/1.1', 'Content-Type: application/json', ...headers)
const fine = '{"page":"docs/quick-start","vote":"up"}'
const many = (count: number, line: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => line(index))

/** Raw requests, with the expected answers. */
const refused: readonly (readonly [
  name: string,
  status: number,
  code: string,
  bytes: () => string | Buffer,
])[] = [
  ['a header over 16 KiB', 431, 'headers_too_large', () => get('/api/rails', `X-A: ${'a'.repeat(17_000)}`)],
  [
    'headers over 16 KiB together',
    431,
    'headers_too_large',
    () => get('/api/rails', ...many(3_000, (index) => `X-${index}: aaaa`)),
  ],
  [
    'cookies over 16 KiB',
    431,
    'headers_too_large',
    () => get('/api/rails', `Cookie: ${many(3_000, (index) => `a${index}=b`).join('; ')}`),
  ],
  ['a target over 16 KiB', 431, 'headers_too_large', () => get(`/api/rails?a=${'a'.repeat(17_000)}`)],
  [
    'arrays that are nested 30,000 times',
    400,
    'invalid_request',
    () => post('['.repeat(30_000) + ']'.repeat(30_000)),
  ],
  ['arrays that are nested 100,000 times', 413, 'body_too_large', () => post('['.repeat(100_000))],
  ['objects that are nested deep', 400, 'invalid_request', () => post('{"a":'.repeat(10_000))],
  [
    'a member twice',
    400,
    'invalid_request',
    () => post('{"page":"docs/quick-start","vote":"up","vote":"down"}'),
  ],
  [
    'a member twice, once escaped',
    400,
    'invalid_request',
    () => post('{"page":"docs/quick-start","vote":"up","v\\u006fte":"up"}'),
  ],
  ['__proto__', 400, 'invalid_request', () => post('{"__proto__":{"vote":"up"},"page":"docs/quick-start"}')],
  [
    '__proto__, escaped',
    400,
    'invalid_request',
    () => post('{"\\u005f_proto__":{"vote":"up"},"page":"docs/quick-start"}'),
  ],
  [
    'constructor',
    400,
    'invalid_request',
    () => post('{"page":"docs/quick-start","vote":"up","constructor":{"prototype":{"x":1}}}'),
  ],
  ['a number beyond all', 400, 'invalid_request', () => post('{"page":1e999,"vote":"up"}')],
  ['a number of 400 digits', 400, 'invalid_request', () => post(`{"page":${'9'.repeat(400)},"vote":"up"}`)],
  ['bytes that are not UTF-8', 400, 'invalid_request', () => post(Buffer.from([0x22, 0xff, 0x22]))],
  ['an overlong zero', 400, 'invalid_request', () => post(Buffer.from([0x22, 0xc0, 0x80, 0x22]))],
  ['UTF-16', 400, 'invalid_request', () => post(Buffer.from(fine, 'utf16le'))],
  ['half a surrogate pair', 400, 'invalid_request', () => post('{"page":"\\ud800","vote":"up"}')],
  ['a zero character', 400, 'invalid_request', () => post('{"page":"\\u0000","vote":"up"}')],
  ['a compressed body', 415, 'unsupported_media_type', () => post(fine, 'Content-Encoding: gzip')],
  [
    'a body in chunks over 64 KiB',
    413,
    'body_too_large',
    () => `${postStart('Transfer-Encoding: chunked')}11000\r\n${'x'.repeat(0x11000)}\r\n0\r\n\r\n`,
  ],
  ['a declared length over 64 KiB', 413, 'body_too_large', () => postStart('Content-Length: 70000')],
  ['a body longer than its length', 400, 'invalid_request', () => `${postStart('Content-Length: 5')}${fine}`],
  [
    'a length and chunks',
    400,
    'invalid_request',
    () => `${postStart('Content-Length: 5', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
  ],
  [
    'two lengths',
    400,
    'invalid_request',
    () => `${postStart('Content-Length: 5', 'Content-Length: 6')}${fine}`,
  ],
  ['an invalid length', 400, 'invalid_request', () => `${postStart('Content-Length: +5')}${fine}`],
  ['invalid chunks', 400, 'invalid_request', () => `${postStart('Transfer-Encoding: chunked')}zz\r\n`],
  ['no Host', 400, 'invalid_request', () => 'GET /api/rails HTTP/1.1\r\nConnection: close\r\n\r\n'],
  ['two Hosts', 400, 'invalid_request', () => get('/api/rails', 'Host: evil.example')],
  [
    'an invalid Host',
    400,
    'invalid_request',
    () => 'GET /api/rails HTTP/1.1\r\nHost: a b/c?\r\nConnection: close\r\n\r\n',
  ],
  ['HTTP/1.0 without a Host', 400, 'invalid_request', () => 'GET /api/rails HTTP/1.0\r\n\r\n'],
  ['HTTP/0.9', 400, 'invalid_request', () => 'GET /api/rails\r\n\r\n'],
  ['HTTP/2', 400, 'invalid_request', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['TLS', 400, 'invalid_request', () => Buffer.from('160301020001000001fc0303', 'hex')],
  ['bare line feeds', 400, 'invalid_request', () => 'GET /api/rails HTTP/1.1\nHost: x\n\n'],
  ['a folded header', 400, 'invalid_request', () => get('/api/rails', 'X-A: a\r\n b')],
  ['a space before a colon', 400, 'invalid_request', () => get('/api/rails', 'X-A : a')],
  ['a method in lower case', 400, 'invalid_request', () => head('get /api/rails HTTP/1.1')],
  ['an unknown method', 400, 'invalid_request', () => head('BREW /api/rails HTTP/1.1')],
  ['TRACE', 405, 'method_not_allowed', () => head('TRACE /api/rails HTTP/1.1', 'Authorization: Bearer x')],
  ['CONNECT', 405, 'method_not_allowed', () => head('CONNECT evil.example:443 HTTP/1.1')],
  ['OPTIONS *', 400, 'invalid_request', () => head('OPTIONS * HTTP/1.1')],
  ['*', 400, 'invalid_request', () => get('*')],
  ['an invalid absolute target', 400, 'invalid_request', () => get('http://[/api/rails')],
  ['dot segments', 400, 'invalid_request', () => get('/api/docs/../rails')],
  ['dot segments, escaped', 400, 'invalid_request', () => get('/api/%2e%2E/api/rails')],
  ['dot segments behind an escaped slash', 400, 'invalid_request', () => get('/api/x%2f..%2frails')],
  ['dot segments in an absolute target', 400, 'invalid_request', () => get('http://127.0.0.1/api/./rails')],
  ['two slashes', 404, 'not_found', () => get('//api/rails')],
  ['an authority in the path', 404, 'not_found', () => get('//evil.example/api/rails')],
  ['an escaped zero', 404, 'not_found', () => get('/api/rails%00')],
  ['a zero in the target', 400, 'invalid_request', () => get('/api/rails\0')],
  ['a slash at the end', 404, 'not_found', () => get('/api/wallets/')],
  ['parameters of a segment', 404, 'not_found', () => get('/api/rails;a=b')],
  ['an escaped slash', 404, 'not_found', () => get('/api%2frails')],
  ['an invalid escape', 404, 'not_found', () => get('/api/%zz')],
  ['a backslash', 400, 'invalid_request', () => get('/api\\rails')],
  ['capital letters', 404, 'not_found', () => get('/API/rails')],
  [
    'two bearers',
    401,
    'unauthenticated',
    () => get('/api/wallets', `Authorization: Bearer ${token}`, 'Authorization: Bearer x'),
  ],
  [
    'a credential in an absolute target',
    400,
    'credential_in_query',
    () => get('http://evil.example/api/rails?token=x'),
  ],
  [
    'a foreign authority without a credential',
    401,
    'unauthenticated',
    () => get('http://evil.example/api/wallets'),
  ],
]

describe('a hostile request', () => {
  it.each(refused)('a request with %s gets %i %s', async (_name, status, code, bytes) => {
    const text = await sendRaw(port, bytes())
    expect(text).not.toBeNull()
    const answer = answerIn(text ?? '')
    expect([answer.status, JSON.parse(answer.body)]).toMatchObject([status, { code, status }])
    const { requestId } = problem.parse(JSON.parse(answer.body))
    expect(answer.head.toLowerCase()).toContain('content-type: application/problem+json')
    expect(answer.head.toLowerCase()).toContain('cache-control: no-store')
    expect(answer.head).toContain(`X-Request-Id: ${requestId}`)
    expect(answer.head).not.toMatch(/^(server|x-powered-by):/im)
    expect(text).not.toMatch(/node_modules|LosslessNumber| at .*:\d+:\d+/)
  })

  it('cannot change its method by a header', async () => {
    for (const name of ['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override', '_method']) {
      const text = await sendRaw(port, post(fine, `${name}: DELETE`))
      expect(answerIn(text ?? '').status).toBe(200)
    }
  })

  it('is answered in order in a pipeline, which ends at the first malformed request', async () => {
    const one = `GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`
    const text = (await sendRaw(port, `${one}${one}GET /healthz\r\n\r\n`)) ?? ''
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 400'])
  })

  it('cannot upgrade to another protocol', async () => {
    const upgrade = head('GET /healthz HTTP/1.1', 'Upgrade: websocket').replace(
      'Connection: close',
      'Connection: Upgrade, close',
    )
    expect(answerIn((await sendRaw(port, upgrade)) ?? '').status).toBe(200)
  })

  it('is harmless when its client disconnects in the middle of a body', async () => {
    await sendRaw(port, `${postStart('Content-Length: 100')}{"page"`, { withinMs: 50 })
    expect(answerIn((await sendRaw(port, post(fine))) ?? '').status).toBe(200)
  })

  it('leaves no trace of a bug in the log', () => {
    expect(gateway.output()).not.toContain('unexpected error')
    expect(gateway.process.exitCode).toBeNull()
  })
})
