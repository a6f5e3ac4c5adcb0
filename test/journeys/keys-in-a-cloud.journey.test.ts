/** A gateway in production whose keys are in a cloud: it pays, signs receipts, and does nothing without them. */
import { randomUUID } from 'node:crypto'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { bursar } from '../commands/bursar.ts'
import { testServerUrl } from '../engines.ts'
import { type AwsServer, startAwsServer } from '../providers/keys/aws-kms-server.ts'
import { type GoogleServer, startGoogleServer } from '../providers/keys/google-kms-server.ts'
import { hasAnvil } from '../rails/selling/x402/world.ts'
import { startGateway } from './gateway.ts'
import { type Mainnet, startMainnet } from './mainnet.ts'
import { type OnMainnet, openOnMainnet, openPayer } from './on-mainnet.ts'
import { type Person, requestJson } from './people.ts'

const SLOW = { timeout: 40_000, interval: 500 }
const secrets = { DATA_KEY: 'd'.repeat(31).concat('1'), SESSION_SECRET: 's'.repeat(31).concat('2') }
const report = z.object({ checks: z.array(z.object({ check: z.string(), detail: z.string() })) })
const decisions = z.object({ decisions: z.array(z.looseObject({ verified: z.boolean() })) })

/** @returns the settings of a gateway with all of its keys there. */
async function placeKeys(server: AwsServer | GoogleServer): Promise<Record<string, string>> {
  const wrap = async (name: keyof typeof secrets) => {
    const place = { ...server.env, [name]: secrets[name] }
    const { out, err } = await bursar(['keys', 'wrap', name, '--with', server.at.wrapping], place)
    expect(err).toBe('')
    return out.trim()
  }
  return {
    ...server.env,
    CHAIN_SPONSOR_KEY: `${server.at.sponsor}?address=${server.address('sponsor')}`,
    CHAIN_OWNER_KEY: `${server.at.owner}?address=${server.address('owner')}`,
    ...('receipts' in server.at ? { RECEIPT_KEY: server.at.receipts } : {}),
    DATA_KEY: await wrap('DATA_KEY'),
    SESSION_SECRET: await wrap('SESSION_SECRET'),
  }
}

describe.skipIf(testServerUrl === undefined || !hasAnvil()).each([
  ['AWS KMS', startAwsServer],
  ['Google Cloud KMS', startGoogleServer],
])('keys in %s', (_, start) => {
  let server: AwsServer | GoogleServer
  let base: Mainnet
  let scene: OnMainnet
  let env: Record<string, string>
  let apiKey: string
  let person: Person

  const pay = (destination: `0x${string}`, idempotencyKey: string = randomUUID()) =>
    requestJson(scene.production.gateway().origin, 'POST', '/api/wallets/transfer', {
      body: { destination, amount: '1' },
      headers: { authorization: `Bearer ${apiKey}`, 'Idempotency-Key': idempotencyKey },
    })
  const newPayee = () => privateKeyToAccount(generatePrivateKey()).address

  beforeAll(async () => {
    server = await start()
    env = await placeKeys(server)
    base = await startMainnet('base')
    await base.giveGas(server.address('sponsor'))
    scene = await openOnMainnet(base, env)
    ;({ person, apiKey } = await openPayer(scene, base))
  }, 240_000)
  afterAll(async () => {
    await scene?.close()
    await base?.close()
    await server?.close()
  }, 60_000)

  it('are told by the doctor: what each is, and where, without a secret', async () => {
    const { out } = await bursar(['doctor', '--json'], { ...scene.production.environment, ...env })
    const details = new Map(report.parse(JSON.parse(out)).checks.map(({ check, detail }) => [check, detail]))
    expect(details.get('key CHAIN_SPONSOR_KEY')).toMatch(
      new RegExp(`^secp256k1, ${server.address('sponsor')}, key .* in (AWS|Google Cloud) KMS$`),
    )
    expect(details.get('key DATA_KEY')).toMatch(/wrapped by key .* in (AWS|Google Cloud) KMS$/)
    for (const secret of [...Object.values(secrets), 'wrapped=', 'PRIVATE KEY', 'EXAMPLEKEY'])
      expect(out).not.toContain(secret)
  })

  it('pay a transfer, and sign its receipt', async () => {
    const destination = newPayee()
    expect(await pay(destination)).toMatchObject({ status: 200, body: { chain: 'base' } })
    await expect.poll(() => base.readBalance(destination), SLOW).toBe(1_000_000n)
    const { body } = await person.send('GET', '/api/agents/decisions?limit=50')
    const { decisions: listed } = decisions.parse(body)
    expect(listed.length).toBeGreaterThan(0)
    expect(listed.every(({ verified }) => verified)).toBe(true)
  }, 90_000)

  it.each(['silence', 'fail', 'other-key'] as const)(
    'hold the money of a payment during %s, and pay it once afterwards',
    async (kind) => {
      const [destination, idempotencyKey] = [newPayee(), randomUUID()]
      server.disturb(kind)
      const refused = await pay(destination, idempotencyKey)
      const paidMeanwhile = await base.readBalance(destination)
      server.disturb(kind, 0)
      expect(refused).toMatchObject({ status: 503, body: { code: 'settlement_pending' } })
      expect(paidMeanwhile).toBe(0n)
      await expect.poll(async () => (await pay(destination, idempotencyKey)).status, SLOW).toBe(200)
      await expect.poll(() => base.readBalance(destination), SLOW).toBe(1_000_000n)
    },
    120_000,
  )

  it('stop a start with another address, another key or refused credentials, by the name of the variable', async () => {
    const started = (more: Record<string, string>) =>
      startGateway({ ...scene.production.environment, ...env, PORT: '0', ...more }).then(
        async (gateway) => {
          await gateway.stop()
          return 'it started'
        },
        (error: Error) => error.message,
      )
    const swapped = { CHAIN_SPONSOR_KEY: `${server.at.owner}?address=${server.address('sponsor')}` }
    expect(await started(swapped)).toMatch(/CHAIN_SPONSOR_KEY: the key .* has the address 0x\w{40}, not 0x/)
    const wrong = (env.DATA_KEY ?? '').replace(server.at.wrapping, server.at.wrapping2)
    expect(await started({ DATA_KEY: wrong })).toMatch(/DATA_KEY: the key .* cannot be used/)
    server.deny(true)
    const denied = await started({})
    server.deny(false)
    expect(denied).toMatch(/(CHAIN|DATA|SESSION|RECEIPT)_\w+: the key .* cannot be used: allow /)
  }, 120_000)
})
