/** The provider HTTP client, against a misbehaving server; and adapters that lacked its limits. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { silentLog } from '../../src/core/base/log.ts'
import { callProvider } from '../../src/providers/http-client.ts'
import { createEcbRates } from '../../src/providers/rates/ecb.ts'
import { createHttpTravelRule } from '../../src/providers/travel-rule-network/http.ts'

const noon = new Date('2026-11-20T12:00:00.000Z')

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

describe('calls to providers', () => {
  let url = ''
  let seen: string[] = []
  const routes: Record<string, (response: ServerResponse) => void> = {
    '/plain': (response) => void response.end('{"a":1}'),
    '/moved': (response) => void response.writeHead(302, { location: '/plain' }).end(),
    '/large': (response) => void response.end('x'.repeat(2_000)),
    '/large-refusal': (response) =>
      void response.writeHead(503, { 'retry-after': '7' }).end('x'.repeat(2_000)),
    '/slow-body': (response) => void response.writeHead(200).write('{'),
    '/byte-by-byte': (response) => {
      const timer = setInterval(() => response.write('x'), 20)
      response.on('close', () => clearInterval(timer))
    },
    '/endless/transfers/one': (response) => {
      response.writeHead(200)
      const more = () => {
        while (!response.destroyed && response.write('x'.repeat(65_536))) {}
        if (!response.destroyed) response.once('drain', more)
      }
      more()
    },
  }
  const server = createServer((request, response) => {
    seen.push(request.url ?? '')
    routes[request.url ?? '']?.(response)
  })
  beforeAll(async () => {
    await once(server.listen(0, '127.0.0.1'), 'listening')
    // A listening server has an address object with a port.
    const { port } = server.address() as AddressInfo
    url = `http://127.0.0.1:${port}`
  })
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })

  it.each(['/byte-by-byte', '/never'])('end in time at %s, even after garbage collection', async (path) => {
    const collecting = setInterval(collectGarbage, 25)
    try {
      const call = callProvider({ url: `${url}${path}`, timeoutMs: 500 })
      await expect(call).rejects.toMatchObject({ name: 'TimeoutError' })
    } finally {
      clearInterval(collecting)
    }
  })

  it('return the whole answer, with the status and the headers', async () => {
    expect(await callProvider({ url: `${url}/plain`, timeoutMs: 5_000 })).toMatchObject({
      status: 200,
      ok: true,
      text: '{"a":1}',
    })
    const refused = await callProvider({ url: `${url}/large-refusal`, maxBytes: 1_000 })
    expect([refused.status, refused.ok, refused.headers.get('retry-after'), refused.text]).toEqual([
      503,
      false,
      '7',
      '',
    ])
  })

  it('follow no redirect, read a bounded body, and time out', async () => {
    await expect(callProvider({ url: `${url}/moved` })).rejects.toThrow()
    await expect(callProvider({ url: `${url}/large`, maxBytes: 1_000 })).rejects.toThrow('over 1000 bytes')
    await expect(callProvider({ url: `${url}/slow-body`, timeoutMs: 200 })).rejects.toThrow(
      /aborted|timeout/i,
    )
    const signal = AbortSignal.timeout(200)
    await expect(callProvider({ url: `${url}/slow-body`, signal })).rejects.toThrow(/aborted|timeout/i)
  })

  it.each(['file:///etc/passwd', 'ftp://example.com/', 'not a URL', 'https://user:word@example.com/'])(
    'reject %s, without naming it',
    async (bad) => {
      const error = await callProvider({ url: bad }).catch((thrown: unknown) => thrown)
      expect(error).toBeInstanceOf(Error)
      expect(String(error)).not.toContain(bad)
    },
  )

  it('calls for rates follow no redirect', async () => {
    seen = []
    const rates = createEcbRates({ url: `${url}/moved`, log: silentLog })
    await expect(rates.latest(noon)).rejects.toMatchObject({ code: 'rates_unavailable' })
    expect(seen).not.toContain('/plain')
  })

  it('calls for the Travel Rule stop reading an endless answer', async () => {
    const network = createHttpTravelRule({ url: `${url}/endless`, apiKey: null, timeoutMs: 20_000 })
    const startedAt = performance.now()
    await expect(network.read('one')).rejects.toMatchObject({ code: 'provider_unavailable' })
    expect(performance.now() - startedAt).toBeLessThan(10_000)
  })
})
