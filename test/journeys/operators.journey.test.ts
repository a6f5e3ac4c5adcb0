/** What an operator does to a deployment with data of people: rotates its data key, backs it up, loses it, restores it. */
import { createECDH, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { bursar } from '../commands/bursar.ts'
import { createEmptyDatabase, testServerUrl } from '../engines.ts'
import { computeTotp } from '../people/identity/signed-in.ts'
import { closedPort } from '../smtp.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { enrollMfa, newMailbox, type Person, signInByEmail } from './people.ts'

const [first, second] = ['first data key', 'second data key'].map((text) => text.padEnd(40, '.'))

describe('a deployment on PGlite', () => operate(null))
describe.skipIf(testServerUrl === undefined)('a deployment on PostgreSQL', () => operate(testServerUrl ?? ''))

/** Many processes start, one after the other. */
const PATIENT_MS = 240_000

function operate(serverUrl: string | null): void {
  const directory = mkdtempSync(join(tmpdir(), 'bursar-operators-'))
  const file = join(directory, 'saved')
  const mailbox = newMailbox('ada')
  let databases: Awaited<ReturnType<typeof createEmptyDatabase>>[] = []
  let gateway: Gateway
  let person: Person
  let totp: string
  let bought: { id: string; response: unknown }
  const place = () => databases.at(-1)?.url ?? join(directory, `data-${copies}`)
  let copies = 1
  let port: string
  const env = (keys: Record<string, string>) => ({
    CHAIN: 'simulated',
    PORT: port,
    RATE_OTP_RESEND: '1000/60',
    ...(serverUrl === null ? { DATA_DIR: place() } : { DATABASE_URL: place() }),
    ...keys,
  })
  const both = { DATA_KEY: second ?? '', DATA_KEY_PREVIOUS: first ?? '' }
  const onlyFirst = { DATA_KEY: first ?? '' }
  const onlySecond = { DATA_KEY: second ?? '' }
  const start = async (keys: Record<string, string>) => {
    gateway = await startGateway(env(keys))
  }
  beforeAll(async () => {
    port = String(await closedPort())
    if (serverUrl !== null) databases = [await createEmptyDatabase(serverUrl)]
    await start(onlyFirst)
  })
  afterAll(async () => {
    await gateway?.stop()
    for (const { drop } of databases) await drop()
    rmSync(directory, { recursive: true, force: true })
  })
  const send = (method: string, path: string, body?: unknown) => person.send(method, path, body)
  const done = async (...request: Parameters<typeof send>) => {
    const answer = await send(...request)
    expect([request[1], answer.status, answer.body]).toEqual([request[1], 200, expect.anything()])
    return answer.body
  }

  it('holds sealed data of a person', async () => {
    person = await signInByEmail(gateway.origin, mailbox)
    totp = await enrollMfa(person)
    const hook = await done('POST', '/api/webhook-endpoints', { url: 'http://127.0.0.1:9/hook' })
    await done('POST', `/api/webhook-endpoints/${String(hook.id)}/rotate`)
    await done('POST', '/api/compliance/kyc', {
      applicant: {
        firstName: 'Ada',
        lastName: 'Lovelace',
        dateOfBirth: '1990-12-10',
        country: 'GB',
        address: '1 Dorset Street, London',
      },
    })
    await done('POST', '/api/banking/recipients', {
      currency: 'EUR',
      name: 'Emmy Noether',
      country: 'DE',
      account: { iban: 'DE89370400440532013000' },
    })
    await done('POST', '/api/notifications/subscriptions', {
      endpoint: 'https://push.example.com/send/1',
      keys: {
        p256dh: createECDH('prime256v1').generateKeys('base64url'),
        auth: randomBytes(16).toString('base64url'),
      },
    })
    await done('POST', '/sandbox/faucet', {})
    const url = `${gateway.origin}/sandbox/sellers/weather`
    const { purchaseId: id } = await done('POST', '/api/purchases', { url, maxAmount: '0.10' })
    const { response } = await done('GET', `/api/purchases/${String(id)}`)
    bought = { id: String(id), response }
  })

  it(
    'takes a new data key while both are known, and then needs the new one only',
    async () => {
      const wallet = (await done('GET', '/api/wallets')).safeAddress
      await gateway.stop()
      const rotate = () => bursar(['keys', 'rotate'], env(both))
      if (serverUrl !== null) await start(both)
      // On PostgreSQL the gateway serves meanwhile.
      const [rotated] = await Promise.all([
        rotate(),
        serverUrl === null
          ? null
          : done('POST', '/api/webhook-endpoints', { url: 'http://127.0.0.1:9/other' }),
      ])
      expect([rotated.code, rotated.err]).toEqual([0, ''])
      for (const column of [
        'mfa.sealed_secret',
        'login_destination.sealed_address',
        'webhook_endpoint.secret',
        'webhook_endpoint.previous_secret',
        'push_subscription.sealed',
        'kyc_application.sealed',
        'payout_recipient.sealed',
        'purchase.credential',
        'purchase.delivered',
      ])
        expect(rotated.out).toContain(`${column}: 1\n`)
      expect(await rotate()).toMatchObject({ code: 0, out: expect.stringMatching(/^Everything is sealed/) })
      if (serverUrl !== null) await gateway.stop()

      const refused = await bursar(['serve'], env(onlyFirst))
      expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('rotated to') })
      await start(onlySecond)
      await expectUnharmed(wallet)
    },
    PATIENT_MS,
  )

  it(
    'is the same after a backup, a loss and a restore',
    async () => {
      const wallet = (await done('GET', '/api/wallets')).safeAddress
      if (serverUrl === null) await gateway.stop()
      expect(await bursar(['backup', '--out', file], env(onlySecond))).toMatchObject({ code: 0, err: '' })
      expect((await bursar(['backup', '--out', file], env(onlySecond))).err).toContain(
        'never replaces a file',
      )
      expect((await bursar(['restore', file], env(onlySecond))).code).toBe(1)
      if (serverUrl === null) rmSync(place(), { recursive: true })
      else {
        await gateway.stop()
        await databases.pop()?.drop()
        databases = [await createEmptyDatabase(serverUrl)]
      }
      copies += 1
      const restored = await bursar(['restore', file], env(onlySecond))
      expect(restored).toMatchObject({ code: 0, err: '', out: expect.stringContaining('Restored.') })
      const verified = await bursar(['audit', 'verify'], env(onlySecond))
      expect([verified.code, verified.err]).toEqual([0, ''])
      await start(onlySecond)
      await expectUnharmed(wallet)
    },
    PATIENT_MS,
  )

  /** By every kind of sealed data, and by what is derived from the key: addresses, hashes, receipts. */
  async function expectUnharmed(wallet: unknown): Promise<void> {
    person = await signInByEmail(gateway.origin, mailbox)
    // The enrollment used the present code, and each works once.
    const code = computeTotp(totp, new Date(Date.now() + 30_000))
    if (copies === 1) await done('POST', '/api/security/mfa', { action: 'verify', code })
    expect((await done('GET', '/api/wallets')).safeAddress).toBe(wallet)
    expect((await done('GET', `/api/purchases/${bought.id}`)).response).toEqual(bought.response)
    expect(JSON.stringify(await done('GET', '/api/banking/recipients'))).toContain('Emmy Noether')
    const figures = z.string().parse(await (await fetch(`${gateway.origin}/metrics`)).text())
    expect(figures).toMatch(/bursar_ledger_drift\{asset="USDC",chain="base-sepolia"\} 0/)
    expect(figures).not.toMatch(/bursar_wallet_shortfall\{.*\} [1-9]/)
  }
}
