import { createHash, createPublicKey, generateKeyPairSync, sign } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { newId } from '../../../src/core/base/ids.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import { createBridgeBanking } from '../../../src/providers/banking/bridge.ts'
import { createSandboxBanking } from '../../../src/providers/banking/sandbox.ts'
import { signBankingWebhook, verifyBankingWebhook } from '../../../src/providers/banking/signature.ts'
import { createSnapshotRates } from '../../../src/providers/rates/sandbox.ts'
import { depositInstructions } from '../../contracts/bridge-server.ts'

const noon = new Date('2026-11-20T12:00:00.000Z')

/** The provider's published example. */
const published = {
  key: createPublicKey(
    '-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAtqsEE4eI7EmzhcquGJXt\nLX9PMK0UH6Kl1WIR21sv8HtueG8BuvvpP3MiN7ltzmIhS8KaynCjN4l+620PnXeu\nxWG+CSnEdkinL9hCqbEid5vv9zl0j9LWiJx3FkKHqADU7cgm46aa8dKUdIQYF2X+\nO7WmyLkC4wUM/mWhBPMsIQBznashRMZxx7XJjsVp27ACUE4eNIjEXbVYN6U8jSbU\nhG++CfL8xXu+GHDqKmFE6Po6HnuURvLFVnCtE3mXXBcVFlPy+octfx8nOMLT3X8O\n9UehIigJ34o2yMm/Fq3HUJzg2BsiAiGgtr0vmeoV9Q7upSNj9TuOumAzZFi4pYA+\nqwIDAQAB\n-----END PUBLIC KEY-----\n',
  ),
  at: new Date(1705854411204),
  signature:
    't=1705854411204,v0=jz/0dmHJ63FAzacGutrDTEoq+iSz/PHm/ugdooXDQu5NwuVIT2LmZGjsnCsBHgR9Py6OBP9zurzW4dHgygU4EDqmMPTUOvhvndYb4lWt+TY66LihaFI2whL6DAf/jb1QjYjNU0A6x9SLzC45dgE6X7zTDUM+2Z+scG/WEQf6SxQMt4E2sEipl5PqMK5lYUe3otdJV+X2c9D64bGwCEE7QSia+Vhozg8QNOQEk/rdz2IEONIg6oC43CeiN4E2kF9XLAGuy9uAHx9O9OJH5ZPLJZjyo4VcXYeWQgxaQ1gZ1Qu6hEEzgiPSff/1nou58dm4bIIazgCWli/mO0NyGcpfFw==',
}
const bodies = ['{"message":"Hello World!"}', '{\n  "message": "Hello World!"\n}']

const buildDelivery = (signature: string | undefined, body: string) => ({
  header: (name: string) => (name === 'x-webhook-signature' ? signature : undefined),
  body: Buffer.from(body),
})
const holds = (signature: string | undefined, body: string, now: Date, key = published.key) => {
  try {
    verifyBankingWebhook(buildDelivery(signature, body), [key], now)
    return true
  } catch {
    return false
  }
}

describe('the banking provider’s signature', () => {
  it('verifies for the published example, and for nothing else', () => {
    const { signature, at } = published
    expect(bodies.filter((body) => holds(signature, body, at))).toHaveLength(1)
    expect(bodies.some((body) => holds(signature.replace('411204', '411205'), body, at))).toBe(false)
    expect(bodies.some((body) => holds(signature, `${body} `, at))).toBe(false)
    expect(
      [undefined, '', 't=1,v0=', 'v0=AAAA', `${signature},v0=AAAA`].map((each) =>
        holds(each, bodies[0] ?? '', at),
      ),
    ).toEqual(Array(5).fill(false))
  })

  it('covers the digest of the digest, and is valid for ten minutes', () => {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const ours = signBankingWebhook('{}', { key: privateKey, at: noon })
    const digest = createHash('sha256').update(`${noon.getTime()}.{}`).digest()
    expect(ours).toBe(`t=${noon.getTime()},v0=${sign('RSA-SHA256', digest, privateKey).toString('base64')}`)
    const after = (ms: number) => holds(ours, '{}', new Date(noon.getTime() + ms), publicKey)
    expect([600_000, 600_001, -600_001].map(after)).toEqual([true, false, false])
    const once = sign('RSA-SHA256', Buffer.from(`${noon.getTime()}.{}`), privateKey).toString('base64')
    expect(holds(`t=${noon.getTime()},v0=${once}`, '{}', noon, publicKey)).toBe(false)
  })
})

describe('the sandbox’s bank', () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const bank = createSandboxBanking({
    webhookUrl: () => '',
    key: privateKey,
    rates: createSnapshotRates(),
    clock: () => noon,
    newId,
  })
  const open = async (currency: 'USD' | 'EUR' | 'GBP' | 'INR') => {
    const holder = { accountId: 'acct_1', name: 'Ada', customer: null }
    const { instructions } = await bank.open({ id: newId('va', noon), currency, holder, destination: null })
    return z.looseObject({}).catchall(z.any()).parse(instructions)
  }

  it('makes routing numbers, IBANs, account numbers and IFSCs with valid check digits', async () => {
    for (let times = 0; times < 50; times += 1) {
      const usd = await open('USD')
      const weighted = [...String(usd.routingNumber)].map(
        (digit, at) => Number(digit) * ([3, 7, 1][at % 3] ?? 0),
      )
      expect(weighted.reduce((sum, each) => sum + each, 0) % 10).toBe(0)
      const iban = String((await open('EUR')).iban)
      const moved = `${iban.slice(4)}${iban.slice(0, 4)}`.replaceAll(/[A-Z]/g, (letter) =>
        String(letter.charCodeAt(0) - 55),
      )
      expect([iban.length, BigInt(moved) % 97n]).toEqual([22, 1n])
      const gbp = await open('GBP')
      const account = String(gbp.accountNumber)
      const sum = [...account].reduce((total, digit, at) => total + Number(digit) * Number('71371371'[at]), 0)
      expect([gbp.sortCode, account.length, sum % 10]).toEqual(['089999', 8, 0])
      expect(await open('INR')).toMatchObject({ ifsc: expect.stringMatching(/^[A-Z]{4}0[A-Z0-9]{6}$/) })
    }
  })
})

describe('Bridge', () => {
  const requests: { path: string; headers: Record<string, unknown>; body: unknown }[] = []
  let server: Server
  let url = ''
  let status = 200
  beforeAll(async () => {
    server = createServer((request, response) => {
      const parts: Buffer[] = []
      request.on('data', (part: Buffer) => parts.push(part))
      request.on('end', () => {
        const path = request.url ?? ''
        requests.push({ path, headers: request.headers, body: JSON.parse(Buffer.concat(parts).toString()) })
        const answer = path.endsWith('virtual_accounts')
          ? {
              id: 'va_provider',
              status: 'activated',
              source_deposit_instructions: depositInstructions,
            }
          : {}
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
  })
  afterAll(() => new Promise((resolve) => server.close(resolve)))
  const order = {
    id: 'va_1',
    currency: 'USD' as const,
    holder: { accountId: 'acct_1', name: 'Ada Lovelace', customer: 'customer_1' },
    destination: {
      token: 'USDC' as const,
      chain: 'base',
      address: '0x000000000000000000000000000000000000dEaD' as const,
    },
  }
  const bridge = () => createBridgeBanking({ url, apiKey: 'secret', webhookKeys: [], log: silentLog })

  it('opens an account for a customer, each with an idempotency key', async () => {
    expect(await bridge().open(order)).toEqual({
      providerId: 'va_provider',
      customer: 'customer_1',
      status: 'active',
      bankName: 'Lead Bank',
      bankAddress: '1801 Main St., Kansas City, MO 64108',
      instructions: { routingNumber: '101019644', accountNumber: '123456789', rails: ['ach', 'wire'] },
    })
    expect(
      requests.map(({ path, headers }) => [path, headers['idempotency-key'], headers['api-key']]),
    ).toEqual([['/v0/customers/customer_1/virtual_accounts', 'va_1', 'secret']])
    expect(requests[0]?.body).toEqual({
      source: { currency: 'usd' },
      destination: { currency: 'usdc', payment_rail: 'base', address: order.destination.address },
    })
    await expect(
      bridge().open({ ...order, holder: { ...order.holder, customer: null } }),
    ).rejects.toMatchObject({ code: 'provider_unavailable', members: { isFinal: true } })
    expect(requests).toHaveLength(1)
  })

  it('reports a refused opening, and never verifies without a key', async () => {
    await expect(bridge().open({ ...order, currency: 'INR' })).rejects.toMatchObject({
      code: 'provider_unavailable',
    })
    await expect(bridge().open({ ...order, currency: 'EUR' })).rejects.toMatchObject({
      code: 'provider_unavailable',
    })
    status = 500
    await expect(bridge().open(order)).rejects.toMatchObject({ code: 'provider_unavailable' })
    expect(() => bridge().verify(buildDelivery(published.signature, bodies[0] ?? ''), published.at)).toThrow(
      /does not verify/,
    )
  })

  it.each([
    [{}],
    [{ event_id: 'e', event_category: 'transfer', event_type: 'created' }],
    [{ event_id: 1, event_category: 'transfer', event_type: 'created', event_object_id: 'x' }],
  ])('rejects an event without a required member: %j', (event) => {
    expect(() => bridge().read(event)).toThrow()
  })
})
