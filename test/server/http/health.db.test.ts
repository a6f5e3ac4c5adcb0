/** Access to a production gateway's metrics without a token: loopback only, and not through a proxy. */
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { Hono } from 'hono'
import { expect, it } from 'vitest'
import { silentLog } from '../../../src/core/base/log.ts'
import { routeHealth } from '../../../src/server/http/health.ts'
import { ownHostCheck } from '../../../src/server/http/own-host.ts'
import { problemResponse } from '../../../src/server/http/problem.ts'
import type { Env } from '../../../src/server/http/request.ts'
import { onBothEngines } from '../../engines.ts'
import { servicesOn } from '../../kernel/scene.ts'

onBothEngines('the metrics in production', (database) => {
  const requestMetrics = async (
    peer: string,
    headers: Record<string, string> = {},
    metricsToken: string | null = null,
  ) => {
    const sandbox = await servicesOn(database())
    const services = {
      ...sandbox,
      settings: { ...sandbox.settings, mode: 'production' as const, metricsToken },
    }
    const app = new Hono<Env>()
    routeHealth(app, services, ownHostCheck({ origin: 'https://bursar.example', mode: 'production' }))
    app.onError((error) => problemResponse(error, { requestId: 'r', instance: '/metrics', log: silentLog }))
    const socket = Object.defineProperties(new Socket(), {
      remoteAddress: { value: peer },
      localPort: { value: 8787 },
    })
    const { host = 'bursar.example' } = headers
    const incoming = Object.assign(new IncomingMessage(socket), { url: '/metrics', headers: { host } })
    return (await app.request('/metrics', { headers }, { incoming })).status
  }

  it('are served to this machine', async () => {
    for (const peer of ['127.0.0.1', '127.8.8.8', '::1', '::ffff:127.0.0.1'])
      expect([peer, await requestMetrics(peer)]).toEqual([peer, 200])
  })

  it('are served to this machine by its address, as a plain request sends it', async () => {
    for (const host of ['127.0.0.1:8787', 'localhost:8787', '[::1]:8787'])
      expect([host, await requestMetrics('127.0.0.1', { host })]).toEqual([host, 200])
    for (const host of ['evil.example', '127.0.0.1:9', '10.0.0.1:8787'])
      expect([host, await requestMetrics('127.0.0.1', { host })]).toEqual([host, 403])
    expect(await requestMetrics('10.0.0.1', { host: '127.0.0.1:8787' })).toBe(403)
    expect(await requestMetrics('127.0.0.1', { host: '127.0.0.1:8787', via: '1.1 proxy' })).toBe(403)
  })

  it('are hidden from other machines, and from proxied requests', async () => {
    for (const peer of ['203.0.113.7', '10.0.0.1', '2001:db8::1', '::ffff:10.0.0.1'])
      expect([peer, await requestMetrics(peer)]).toEqual([peer, 404])
    for (const name of ['x-forwarded-for', 'forwarded', 'via', 'x-real-ip'])
      expect([name, await requestMetrics('127.0.0.1', { [name]: '127.0.0.1' })]).toEqual([name, 404])
  })

  it('are served to anybody with the token, and to nobody without it', async () => {
    const token = 'a token of enough letters'.replaceAll(' ', '-')
    expect(await requestMetrics('203.0.113.7', { authorization: `Bearer ${token}` }, token)).toBe(200)
    expect(await requestMetrics('127.0.0.1', {}, token)).toBe(401)
  })
})
