/** A gateway in production whose keys are in a token: it pays, signs receipts, and does nothing without them. */
import { randomUUID } from 'node:crypto'
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { compactVerify, createLocalJWKSet, decodeProtectedHeader } from 'jose'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { bursar } from '../commands/bursar.ts'
import { testServerUrl } from '../engines.ts'
import { hasSoftHsm, makeToken, type TestToken } from '../providers/keys/token.ts'
import { hasAnvil } from '../rails/selling/x402/world.ts'
import { startGateway } from './gateway.ts'
import { type Mainnet, startMainnet } from './mainnet.ts'
import { type OnMainnet, openOnMainnet, openPayer } from './on-mainnet.ts'
import { type Person, requestJson } from './people.ts'
import type { ProductionGateway } from './production-gateway.ts'

const SLOW = { timeout: 40_000, interval: 500 }
const at = (object: string) => `pkcs11:token=bursar;object=${object}`
const secrets = { DATA_KEY: 'd'.repeat(31).concat('1'), SESSION_SECRET: 's'.repeat(31).concat('2') }
const report = z.object({
  ok: z.boolean(),
  checks: z.array(z.object({ check: z.string(), status: z.string(), detail: z.string() })),
})
const jwks = z.object({ keys: z.array(z.looseObject({ kid: z.string(), kty: z.string() })) })

describe.skipIf(!hasSoftHsm() || testServerUrl === undefined || !hasAnvil())('keys in a token', () => {
  let token: TestToken
  let base: Mainnet
  let scene: OnMainnet
  let production: ProductionGateway
  let env: Record<string, string>
  let apiKey: string
  let person: Person

  const origin = () => production.gateway().origin
  const doctor = async (more: Readonly<Record<string, string>> = {}) => {
    const { out } = await bursar(['doctor', '--json'], { ...production.environment, ...env, ...more })
    const { checks } = report.parse(JSON.parse(out))
    return { out, of: (name: string) => checks.find(({ check }) => check === `key ${name}`) }
  }
  const pay = (destination: string, headers = { 'Idempotency-Key': randomUUID() as string }) =>
    requestJson(origin(), 'POST', '/api/wallets/transfer', {
      body: { destination, amount: '1' },
      headers: { authorization: `Bearer ${apiKey}`, ...headers },
    })
  const newPayee = () => privateKeyToAccount(generatePrivateKey()).address
  const readKeys = async () =>
    jwks.parse(await (await fetch(`${origin()}/.well-known/jwks.json`)).json()).keys
  const listReceipts = async () => {
    const { body } = await person.send('GET', '/api/agents/decisions?limit=50')
    return z
      .object({ decisions: z.array(z.looseObject({ receipt: z.string(), verified: z.boolean() })) })
      .parse(body).decisions
  }
  const verifyAll = async () => {
    const keys = createLocalJWKSet({ keys: await readKeys() })
    const receipts = await listReceipts()
    for (const { receipt, verified } of receipts) {
      expect(verified).toBe(true)
      await compactVerify(receipt, keys, { algorithms: ['EdDSA'] })
    }
    return receipts.map(({ receipt }) => decodeProtectedHeader(receipt).kid)
  }

  beforeAll(async () => {
    token = makeToken()
    for (const label of ['sponsor', 'sponsor-2', 'owner', 'owner-2']) token.makePair('secp256k1', label)
    for (const label of ['receipts', 'receipts-2']) token.makePair('edwards25519', label)
    for (const label of ['wrapping', 'wrapping-2']) token.makeWrapping(label)
    const wrap = async (name: keyof typeof secrets) => {
      const { out, err } = await bursar(['keys', 'wrap', name, '--with', at('wrapping')], {
        ...token.env,
        [name]: secrets[name],
      })
      expect(err).toBe('')
      return out.trim()
    }
    const pinFile = `${token.configuration}.pin`
    writeFileSync(pinFile, `${token.pin}\n`)
    const { PKCS11_PIN: _pin, ...place } = token.env
    env = {
      ...place,
      PKCS11_PIN_FILE: pinFile,
      CHAIN_SPONSOR_KEY: at('sponsor'),
      CHAIN_OWNER_KEY: at('owner'),
      RECEIPT_KEY: at('receipts'),
      DATA_KEY: await wrap('DATA_KEY'),
      SESSION_SECRET: await wrap('SESSION_SECRET'),
    }
    base = await startMainnet('base')
    const { out } = await bursar(['doctor', '--json'], { ...env, CHAIN: 'simulated' })
    for (const { check, detail } of report.parse(JSON.parse(out)).checks)
      if (check === 'key CHAIN_SPONSOR_KEY')
        await base.giveGas(z.templateLiteral(['0x', z.string()]).parse(/0x\w{40}/.exec(detail)?.[0]))
    scene = await openOnMainnet(base, env)
    production = scene.production
    ;({ person, apiKey } = await openPayer(scene, base))
  }, 240_000)
  afterAll(async () => {
    await scene?.close()
    await base?.close()
    if (token !== undefined) rmSync(token.directory, { recursive: true, force: true })
  }, 60_000)

  it('are told by the doctor: what each is, and where, without a secret', async () => {
    const { of, out } = await doctor()
    expect(of('CHAIN_SPONSOR_KEY')).toMatchObject({
      status: 'ok',
      detail: expect.stringMatching(/^secp256k1, 0x\w{40}, key "sponsor" in PKCS#11 token "bursar"$/),
    })
    expect(of('CHAIN_OWNER_KEY')?.detail).toMatch(/^secp256k1, 0x\w{40}, key "owner"/)
    expect(of('RECEIPT_KEY')?.detail).toMatch(/^Ed25519, kid [\w-]{43}, key "receipts"/)
    expect(of('DATA_KEY')?.detail).toContain('wrapped by key "wrapping" in PKCS#11 token "bursar"')
    expect(of('SESSION_SECRET')?.detail).toContain('wrapped by key "wrapping"')
    for (const secret of [...Object.values(secrets), token.pin, 'wrapped=']) expect(out).not.toContain(secret)
  })

  it('pay a transfer, and sign its receipt', async () => {
    const destination = newPayee()
    const paid = await pay(destination)
    expect(paid).toMatchObject({ status: 200, body: { chain: 'base' } })
    await expect.poll(() => base.readBalance(destination), SLOW).toBe(1_000_000n)
    const [key] = await readKeys()
    expect(new Set(await verifyAll())).toEqual(new Set([key?.kid]))
    expect((await doctor()).of('RECEIPT_KEY')?.detail).toContain(`kid ${key?.kid}`)
  }, 90_000)

  it('hold the money of a payment while the token is away, and pay it once when the token is back', async () => {
    const [destination, idempotencyKey] = [newPayee(), randomUUID()]
    renameSync(token.directory, `${token.directory}-away`)
    const refused = await pay(destination, { 'Idempotency-Key': idempotencyKey })
    renameSync(`${token.directory}-away`, token.directory)
    // The transfer is recorded, its money held, and nothing was signed.
    expect(refused).toMatchObject({ status: 503, body: { code: 'settlement_pending' } })
    expect(JSON.stringify(refused.body)).not.toContain(token.pin)
    expect(await base.readBalance(destination)).toBe(0n)
    await expect
      .poll(async () => (await pay(destination, { 'Idempotency-Key': idempotencyKey })).status, SLOW)
      .toBe(200)
    await expect.poll(() => base.readBalance(destination), SLOW).toBe(1_000_000n)
  }, 90_000)

  it('stop a start with a wrong PIN, a missing token and a changed secret, each by the name of its variable', async () => {
    const started = async (more: Record<string, string>) => {
      const { PKCS11_PIN_FILE: _file, ...rest } = { ...production.environment, ...env }
      const ended = await startGateway({ ...rest, PORT: '0', PKCS11_PIN: token.pin, ...more }).then(
        async (gateway) => {
          await gateway.stop()
          return 'it started'
        },
        (error: Error) => error.message,
      )
      expect(ended).not.toContain(token.pin)
      return ended
    }
    expect(await started({ PKCS11_PIN: '000000' })).toMatch(/(CHAIN|DATA|SESSION)_\w+: .*it refuses the PIN/)
    expect(await started({ CHAIN_OWNER_KEY: 'pkcs11:token=other;object=owner' })).toContain(
      'CHAIN_OWNER_KEY: the key "owner" in PKCS#11 token "other" cannot be used: the token is not there.',
    )
    expect(await started({ RECEIPT_KEY: at('nobody') })).toContain('RECEIPT_KEY: the key "nobody"')
    const wrong = (env.DATA_KEY ?? '').replace('object=wrapping', 'object=wrapping-2')
    expect(await started({ DATA_KEY: wrong })).toContain('DATA_KEY: the key "wrapping-2"')
    expect(await started({ PKCS11_MODULE: '/nowhere.so' })).toContain('PKCS11_MODULE (/nowhere.so)')
  }, 120_000)

  it('are replaced by a restart: the sponsor, the key of receipts and the wrapping key', async () => {
    const before = await readKeys()
    const { out } = await bursar(['keys', 'wrap', 'DATA_KEY', '--with', at('wrapping-2')], env)
    const renewed = {
      ...env,
      CHAIN_SPONSOR_KEY: at('sponsor-2'),
      RECEIPT_KEY: at('receipts-2'),
      DATA_KEY: out.trim(),
    }
    const { of } = await doctor(renewed)
    expect(of('DATA_KEY')?.detail).toContain('wrapped by key "wrapping-2"')
    await base.giveGas(
      z
        .templateLiteral(['0x', z.string()])
        .parse(/0x\w{40}/.exec(of('CHAIN_SPONSOR_KEY')?.detail ?? '')?.[0]),
    )
    await production.start(renewed)
    const destination = newPayee()
    expect(await pay(destination)).toMatchObject({ status: 200 })
    await expect.poll(() => base.readBalance(destination), SLOW).toBe(1_000_000n)
    // The session of before the restart is good, and so are the receipts of both keys.
    const kids = new Set(await verifyAll())
    expect(kids.size).toBe(2)
    const keys = await readKeys()
    expect(keys).toHaveLength(2)
    expect(keys[1]).toEqual(before[0])
    const audited = await bursar(['audit', 'verify'], { ...production.environment, ...renewed })
    expect(audited).toMatchObject({ code: 0, err: '' })
    expect(audited.out).toContain('chain intact')
  }, 120_000)

  it('replace the key of owners by another one of the token, and sign for it until it is replaced', async () => {
    const renewed = { ...env, CHAIN_SPONSOR_KEY: at('sponsor-2'), CHAIN_OWNER_KEY: at('owner-2') }
    const both = { ...renewed, CHAIN_OWNER_KEY_PREVIOUS: at('owner') }
    await production.start(both)
    const payOne = async () => {
      const destination = newPayee()
      const headers = { 'Idempotency-Key': randomUUID() as string }
      await expect.poll(async () => (await pay(destination, headers)).status, SLOW).toBe(200)
      await expect.poll(() => base.readBalance(destination), SLOW).toBe(1_000_000n)
    }
    await payOne()
    const readOwners = async () => {
      const { out } = await bursar(['doctor', '--json'], { ...production.environment, ...both })
      return report.parse(JSON.parse(out)).checks.find(({ check }) => check === 'owners')?.detail
    }
    await expect
      .poll(readOwners, { timeout: 90_000, interval: 2_000 })
      .toMatch(/ owns all: remove CHAIN_OWNER_KEY_PREVIOUS$/)
    const { of } = await doctor(both)
    expect(of('CHAIN_OWNER_KEY_PREVIOUS')?.detail).toMatch(
      /^secp256k1, 0x\w{40}, key "owner" in PKCS#11 token/,
    )
    await production.start(renewed)
    await payOne()
    await verifyAll()
  }, 240_000)
})
