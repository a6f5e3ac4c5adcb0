/** Keys in two clouds by the roles of machines and containers, whose credentials end while the gateway runs. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { keccak256, stringToHex } from 'viem'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { installTimers, systemTimers } from '../../../src/core/base/timers.ts'
import { readKeyConfig } from '../../../src/core/config/read-config.ts'
import { createConfiguredKeys } from '../../../src/providers/keys/configured.ts'
import { type AwsServer, startAwsServer } from './aws-kms-server.ts'
import { type GoogleServer, startGoogleServer } from './google-kms-server.ts'
import { CONTAINER_PATH, type MetadataServer, startMetadataServer } from './metadata-server.ts'

const digest = keccak256(stringToHex('a digest'))
const HOUR_MS = 3_600_000

let metadata: MetadataServer
beforeEach(async () => {
  metadata = await startMetadataServer()
})
afterEach(async () => {
  vi.useRealTimers()
  await metadata.close()
})

/** Pauses between attempts take no time. */
function hurry(): void {
  const before = installTimers({ ...systemTimers, sleep: (_ms, options) => systemTimers.sleep(1, options) })
  onTestFinished(() => void installTimers(before))
}

/** Sets the clock alone: connections go on. */
function pass(ms: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + ms })
}

describe('keys in AWS KMS', () => {
  let server: AwsServer
  beforeEach(async () => {
    server = await startAwsServer({ hasSession: true })
  })
  afterEach(() => server.close())
  const open = (env: Readonly<Record<string, string>>) =>
    createConfiguredKeys(readKeyConfig({ AWS_KMS_ENDPOINT: server.url, ...env })).openChainKey(
      'CHAIN_SPONSOR_KEY',
      server.at.sponsor,
    )
  const atInstance = () => ({
    AWS_KMS_CREDENTIALS_FROM: 'instance',
    AWS_EC2_METADATA_SERVICE_ENDPOINT: `${metadata.url}/`,
  })
  const inContainer = () => ({
    AWS_KMS_CREDENTIALS_FROM: 'container',
    AWS_CONTAINER_CREDENTIALS_FULL_URI: `${metadata.url}${CONTAINER_PATH}`,
  })

  it('are signed with by the role of an instance, whose credentials are read once for many signatures', async () => {
    const key = await open(atInstance())
    expect(key.address).toBe(server.address('sponsor'))
    const signatures = await Promise.all(Array.from({ length: 20 }, () => key.sign(digest)))
    expect(new Set(signatures.map(({ length }) => length))).toEqual(new Set([132]))
    expect(metadata.count()).toBe(1)
  })

  it('go on with new credentials before the old ones end, without a pause', async () => {
    const key = await open(atInstance())
    pass(HOUR_MS - 3 * 60_000)
    // Nobody waits for the next ones as long as these last.
    expect(await key.sign(digest)).toHaveLength(132)
    await expect.poll(() => metadata.count()).toBe(2)
    server.endSession('the next session token')
    metadata.given.session = 'the next session token'
    // The service ends a session early: those of the machine are read anew.
    expect(await key.sign(digest)).toHaveLength(132)
    expect(metadata.count()).toBe(3)
  })

  it('sign with what is held while the machine has no new ones, and nothing once they have ended', async () => {
    hurry()
    const key = await open(atInstance())
    metadata.given.isBroken = true
    pass(HOUR_MS - 3 * 60_000)
    expect(await key.sign(digest)).toHaveLength(132)
    pass(4 * 60_000)
    await expect(key.sign(digest)).rejects.toMatchObject({
      code: 'provider_unavailable',
      cause: expect.objectContaining({
        message: expect.stringContaining(
          'the credentials of this machine cannot be read: they are refused (500)',
        ),
      }),
    })
    metadata.given.isBroken = false
    expect(await key.sign(digest)).toHaveLength(132)
  }, 30_000)

  it('are signed with by the role of a container, whose platform replaces the token for it', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'bursar-token-'))
    onTestFinished(() => rmSync(directory, { recursive: true }))
    const file = join(directory, 'token')
    writeFileSync(file, 'first\n')
    metadata.given.containerToken = 'first'
    const key = await open({ ...inContainer(), AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file })
    writeFileSync(file, 'second\n')
    metadata.given.containerToken = 'second'
    server.endSession('the next session token')
    metadata.given.session = 'the next session token'
    expect(await key.sign(digest)).toHaveLength(132)
    expect(await open({ ...inContainer(), AWS_CONTAINER_AUTHORIZATION_TOKEN: 'second' })).toMatchObject({
      address: server.address('sponsor'),
    })
  })

  it('say why where there is no role, and no credential', async () => {
    const refusal = (env: Readonly<Record<string, string>>) =>
      open(env).then(
        () => 'opened',
        (error: Error) => error.message,
      )
    metadata.given.hasRole = false
    expect(await refusal(atInstance())).toContain('this machine has no role')
    metadata.given.containerToken = 'a token'
    const wrong = await refusal({ ...inContainer(), AWS_CONTAINER_AUTHORIZATION_TOKEN: 'another token' })
    expect(wrong).toContain('they are refused (401)')
    expect(wrong).not.toContain('another token')
    expect(await refusal({ AWS_KMS_CREDENTIALS_FROM: 'container' })).toContain('the container has no role')
    expect(await refusal({})).toContain('AWS_KMS_CREDENTIALS_FROM uses the role of a machine')
  })
})

describe('keys in Google Cloud KMS', () => {
  let server: GoogleServer
  beforeEach(async () => {
    server = await startGoogleServer()
    server.accept(metadata.given.accessToken)
  })
  afterEach(() => server.close())
  const open = () =>
    createConfiguredKeys(
      readKeyConfig({
        GCP_KMS_ENDPOINT: server.url,
        GCP_KMS_CREDENTIALS_FROM: 'instance',
        GCE_METADATA_HOST: metadata.host,
      }),
    ).openChainKey('CHAIN_SPONSOR_KEY', server.at.sponsor)

  it('are signed with by the account of a machine, whose tokens are renewed', async () => {
    const key = await open()
    await Promise.all(Array.from({ length: 20 }, () => key.sign(digest)))
    expect(metadata.count()).toBe(1)
    metadata.given.accessToken = 'ya29.the-next'
    server.accept('ya29.the-next')
    pass(2 * HOUR_MS)
    expect(await key.sign(digest)).toHaveLength(132)
    expect(metadata.count()).toBe(2)
  })

  it('sign with a new token after the former was refused, as when a clock was set back', async () => {
    const key = await open()
    server.refuse(metadata.given.accessToken)
    metadata.given.accessToken = 'ya29.the-next'
    server.accept('ya29.the-next')
    pass(-2 * HOUR_MS)
    expect(await key.sign(digest)).toHaveLength(132)
    expect(metadata.count()).toBe(2)
    // A refusal of new ones is final: it is asked for one each time.
    server.refuse('ya29.the-next')
    await expect(key.sign(digest)).rejects.toMatchObject({ code: 'provider_unavailable' })
    expect(metadata.count()).toBe(3)
  })

  it('are refused where another service answers, there is no account, or its token may not be used', async () => {
    metadata.given.hasFlavor = false
    await expect(open()).rejects.toThrow('another service answers there')
    metadata.given.hasFlavor = true
    metadata.given.accessToken = 'ya29.unknown'
    await expect(open()).rejects.toThrow('the scopes of the machine')
    metadata.given.hasRole = false
    await expect(open()).rejects.toThrow('this machine has no service account')
  })
})

it('credentials are asked for within the machine only', () => {
  const reading = (name: string, value: string) => () => readKeyConfig({ [name]: value })
  for (const far of ['http://metadata.example', 'http://10.0.0.1', 'ftp://127.0.0.1', 'no address'])
    for (const name of ['AWS_EC2_METADATA_SERVICE_ENDPOINT', 'AWS_CONTAINER_CREDENTIALS_FULL_URI'])
      expect(reading(name, far)).toThrow('must be https, or an address of the machine itself')
  expect(reading('AWS_EC2_METADATA_SERVICE_ENDPOINT', 'http://127.0.0.1/path')).toThrow('must be an origin')
  expect(reading('GCE_METADATA_HOST', 'metadata.example')).toThrow('must be the host of the metadata service')
  for (const near of ['http://169.254.170.2/v2', 'http://[fd00:ec2::23]/v1', 'https://agent.example/x'])
    expect(reading('AWS_CONTAINER_CREDENTIALS_FULL_URI', near)().awsKms.metadata.container).toBe(near)
  expect(
    reading('AWS_CONTAINER_CREDENTIALS_RELATIVE_URI', '/v2/credentials/1')().awsKms.metadata.container,
  ).toBe('http://169.254.170.2/v2/credentials/1')
})
