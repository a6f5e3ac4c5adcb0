/** Requests that buy are signed as this deployment's: a seller that verifies them by the library of the field sells to nobody else. */
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verify } from 'web-bot-auth'
import { verifierFromJWK } from 'web-bot-auth/crypto'
import { z } from 'zod'
import { type Gateway, startGateway } from '../../journeys/gateway.ts'
import { newGuest, requestJson } from '../../journeys/people.ts'

const DIRECTORY = '/.well-known/http-message-signatures-directory'
const directory = z.object({
  keys: z.tuple([z.looseObject({ kty: z.string(), crv: z.string(), x: z.string(), kid: z.string() })]),
})

describe('Web Bot Auth', () => {
  let gateway: Gateway
  let seller: Server
  const seen: IncomingMessage[] = []
  const faults: string[] = []
  let url = ''

  /** The seller asks the directory that the buyer names, as the draft has it. */
  const authenticate = async (request: IncomingMessage): Promise<void> => {
    const agent = /^"(http:\/\/127\.0\.0\.1:\d+)"$/.exec(String(request.headers['signature-agent']))?.[1]
    const { keys } = directory.parse(await (await fetch(`${agent}${DIRECTORY}`)).json())
    const headers = new Headers(
      Object.entries(request.headers).map(([name, value]): [string, string] => [name, String(value)]),
    )
    await verify(
      { method: request.method ?? '', url: `http://${request.headers.host}${request.url}`, headers },
      await verifierFromJWK(keys[0]),
    )
    expect(headers.get('signature-input')).toContain(`keyid="${keys[0].kid}"`)
  }

  beforeAll(async () => {
    gateway = await startGateway()
    seller = createServer((request, response) => {
      seen.push(request)
      authenticate(request).then(
        () => response.end('sold for nothing'),
        (error: unknown) => {
          faults.push(String(error))
          response.writeHead(403).end()
        },
      )
    }).listen(0, '127.0.0.1')
    await new Promise((resolve) => seller.once('listening', resolve))
    url = `http://127.0.0.1:${(seller.address() as AddressInfo).port}/report?day=1`
  }, 60_000)
  afterAll(async () => {
    seller.close()
    await gateway.stop()
  })

  const buy = async (headers: Readonly<Record<string, string>> = {}) => {
    const owner = await newGuest(gateway.origin)
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'Buyer',
      scopes: ['purchases:pay'],
      policy: { perTransaction: { max: '1' }, dailyBudget: { max: '5' }, categories: { allow: ['x402'] } },
    })
    const { key } = z.looseObject({ key: z.string() }).parse(body)
    return requestJson(gateway.origin, 'POST', '/api/purchases', {
      body: { url, maxAmount: '0.10', headers },
      headers: { authorization: `Bearer ${key}`, 'idempotency-key': crypto.randomUUID() },
    })
  }

  it('names its directory, whose key verifies the request', async () => {
    const { status, body } = await buy()
    expect([status, body.status, faults]).toEqual([200, 'free', []])
    const [request] = seen
    expect(request?.headers['signature-input']).toMatch(
      /^sig1=\("@authority" "@method" "@path" "signature-agent"\);created=\d+;expires=\d+;.*tag="web-bot-auth"$/,
    )
  })

  it('signs each request anew, and for one address', async () => {
    await buy()
    const [first, second] = seen.map(({ headers }) => String(headers['signature-input']))
    expect(first).not.toBe(second)
    const [request] = seen
    if (request === undefined) throw new Error('nothing was asked')
    const moved = { ...request, headers: { ...request.headers, host: 'other.example' } }
    await expect(authenticate(moved as IncomingMessage)).rejects.toThrow()
  })

  it('proves in its directory that it has the key, for its own name only', async () => {
    const answer = await fetch(`${gateway.origin}${DIRECTORY}`, { headers: { host: 'copy.example' } })
    expect(answer.headers.get('content-type')).toBe('application/http-message-signatures-directory+json')
    const { keys } = directory.parse(await answer.clone().json())
    const { host } = new URL(gateway.origin)
    const verifier = await verifierFromJWK(keys[0])
    const input = String(answer.headers.get('signature-input'))
    expect(input).toMatch(/^sig1=\("@authority";req\);.*tag="http-message-signatures-directory"$/)
    const line = (name: string) =>
      `"@authority";req: ${name}\n"@signature-params": ${input.slice('sig1='.length)}`
    const signature = Buffer.from(
      /^sig1=:(.*):$/.exec(String(answer.headers.get('signature')))?.[1] ?? '',
      'base64',
    )
    const at = { keyid: keys[0].kid, created: new Date(), expires: new Date() }
    const check = (name: string) => verifier(line(name), signature, { ...at, tag: 'web-bot-auth' })
    await expect(check(host)).resolves.toBeUndefined()
    await expect(check('copy.example')).rejects.toThrow()
  })

  it('is off where it is set so', async () => {
    const other = await startGateway({ WEB_BOT_AUTH: 'off' })
    try {
      expect((await fetch(`${other.origin}${DIRECTORY}`)).status).toBe(404)
    } finally {
      await other.stop()
    }
  })
})
