/** Host names of a gateway: those of its own origin are accepted, and no other that resolves to it. */
import { request } from 'node:http'
import { beforeAll, describe, expect, it } from 'vitest'
import { newAgent } from '../../journeys/agent.ts'
import { sharedGateway } from '../../journeys/gateway.ts'
import { newGuest } from '../../journeys/people.ts'

const gateway = { origin: sharedGateway() }
let port: string
beforeAll(async () => {
  port = new URL(gateway.origin).port
})

const sendRaw = (host: string, line: string, headers: Record<string, string> = {}, to = port) =>
  new Promise<{ status: number; body: string }>((resolve, reject) => {
    const [method = '', path = ''] = line.split(' ')
    const given = { ...(method === 'GET' ? {} : { 'content-type': 'application/json' }), host, ...headers }
    request({ host: '127.0.0.1', port: to, method, path, headers: given })
      .on('error', reject)
      .on('response', (response) => {
        let body = ''
        response.setEncoding('utf8').on('data', (part: string) => {
          body += part
        })
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body }))
      })
      .end(method === 'GET' ? undefined : '{}')
  })

const lines = [
  'GET /sandbox/credentials',
  'GET /sandbox/outbox',
  'GET /api/rails',
  'GET /metrics',
  'GET /sign-in',
  'GET /nowhere',
  'GET /.well-known/jwks.json',
  'GET /oauth/authorize',
  'GET /sandbox/openid/.well-known/openid-configuration',
  'POST /api/auth/guest',
  'POST /api/webhooks/lithic',
  'POST /mcp',
]
const loopback = ['127.0.0.1', 'localhost', '[::1]', 'LocalHost']

describe('a request under a foreign name', () => {
  it('is rejected on every path', async () => {
    for (const line of lines)
      for (const host of [`evil.example:${port}`, 'localhost.evil.example', '127.0.0.1:1', 'x']) {
        const { status, body } = await sendRaw(host, line)
        expect([line, host, status]).toEqual([line, host, 403])
        expect(body).toContain('"cross_site_request"')
      }
  })

  it('may read the liveness check, as balancers do, and nothing else', async () => {
    expect((await sendRaw('10.0.0.7:8080', 'GET /healthz')).body).toBe('{"status":"ok"}')
    expect((await sendRaw('10.0.0.7:8080', 'GET /readyz')).status).toBe(200)
  })
})

describe('a gateway on this machine', () => {
  it('accepts each of its names', async () => {
    for (const name of loopback)
      expect([name, (await sendRaw(`${name}:${port}`, 'GET /api/rails')).status]).toEqual([name, 200])
  })

  it('identifies itself to MCP clients under the name they used', async () => {
    for (const name of ['127.0.0.1', 'localhost', '[::1]']) {
      const host = `${name}:${port}`
      const { body } = await sendRaw(host, 'GET /.well-known/oauth-protected-resource/mcp')
      expect(JSON.parse(body)).toMatchObject({ resource: `http://${host}/mcp` })
    }
  })

  it('accepts signatures for each of its names, and for no other', async () => {
    const owner = await newGuest(gateway.origin)
    const agent = await newAgent()
    await owner.send('POST', '/api/agents/keys', {
      name: 'Bot',
      publicKey: agent.jwk,
      scopes: ['wallets:read'],
    })
    const statusFor = async (host: string, signedFor: string) => {
      const headers = await agent.sign({ method: 'GET', url: `http://${signedFor}/api/wallets` })
      return (await sendRaw(host, 'GET /api/wallets', headers)).status
    }
    for (const name of ['127.0.0.1', 'localhost', '[::1]'])
      for (const host of [`${name}:${port}`, `127.0.0.1:${port}`])
        expect([host, name, await statusFor(host, `${name}:${port}`)]).toEqual([host, name, 200])
    expect(await statusFor(`127.0.0.1:${port}`, `evil.example:${port}`)).toBe(401)
    expect(await statusFor(`127.0.0.1:${port}`, 'localhost:1')).toBe(401)
  })

  it('accepts cookies from its own pages under each of its names, and from no other', async () => {
    const owner = await newGuest(gateway.origin)
    const statusFrom = async (origin: string) => {
      const headers = { origin, cookie: `bursar_session=${owner.token}` }
      return (await sendRaw(`127.0.0.1:${port}`, 'POST /api/security/mfa', headers)).status
    }
    for (const name of ['127.0.0.1', 'localhost', '[::1]'])
      expect([name, await statusFrom(`http://${name}:${port}`)]).toEqual([name, 400])
    for (const foreign of [`http://evil.example:${port}`, 'http://localhost:1', `https://localhost:${port}`])
      expect([foreign, await statusFrom(foreign)]).toEqual([foreign, 403])
  })
})
