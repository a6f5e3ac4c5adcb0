/** Real gateways over HTTP, one on each database engine, with a clock that a test can advance. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe } from 'vitest'
import { type AnvilProcess, findAnvil, spawnAnvil } from '../../src/chain/node/anvil-process.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { hasAnvil } from '../rails/selling/x402/world.ts'
import { forManyTests, type Gateway, sharedGateway, startGateway } from './gateway.ts'

/** Gateway of a suite. Available within hooks and tests. */
export interface GatewayFixture {
  gateway(): Gateway
  /** Database URL; null when the data is in the gateway's memory. */
  databaseUrl(): string | null
  now(): Date
  /** Advances the gateway's clock. On PostgreSQL, its next reading of the server's clock undoes that. */
  pass(seconds: number): void
}

/**
 * Declares a suite once per engine, each with its own gateway. @param env added to a sandbox on the simulated chain.
 */
export function overBothEngines(
  name: string,
  env: Readonly<Record<string, string>>,
  suite: (world: GatewayFixture) => void,
): void {
  describe(`${name} on PGlite`, () => over(() => env, null, suite))
  describe.skipIf(testServerUrl === undefined)(`${name} on PostgreSQL`, () =>
    over(() => env, testServerUrl, suite),
  )
}

/** A gateway over a chain of its own. */
export interface NodeFixture extends GatewayFixture {
  readonly rpcUrl: () => string
}

/**
 * Declares a suite once per engine, each with its own gateway and its own anvil, which must be installed.
 * @param more settings, read when a gateway starts.
 */
export function overBothEnginesOnNodes(
  name: string,
  suite: (world: NodeFixture) => void,
  more: () => Readonly<Record<string, string>> = () => ({}),
): void {
  const declare = (serverUrl: string | null | undefined) => () => {
    let node: AnvilProcess | undefined
    const rpcUrl = () => {
      if (node === undefined) throw new Error('the node is there only within hooks and tests')
      return node.url
    }
    beforeAll(async () => {
      node = await spawnAnvil(findAnvil(process.env.ANVIL_BIN), 0, 10_000)
    }, 30_000)
    afterAll(() => node?.stop())
    over(
      () => ({ CHAIN: '', CHAIN_RPC_URL: rpcUrl(), ...more() }),
      serverUrl,
      (world) => suite({ ...world, rpcUrl }),
    )
  }
  describe.skipIf(!hasAnvil())(`${name} on PGlite`, declare(null))
  describe.skipIf(!hasAnvil() || testServerUrl === undefined)(`${name} on PostgreSQL`, declare(testServerUrl))
}

/** What a suite needs that neither advances the clock nor changes settings. */
type PlainFixture = Pick<GatewayFixture, 'databaseUrl'> & { gateway(): Pick<Gateway, 'origin'> }

/**
 * Declares a suite once per engine: on this worker's gateway, and on one of its own with PostgreSQL. Its tests share
 * the first with other files.
 */
export function overSharedAndPostgres(name: string, suite: (world: PlainFixture) => void): void {
  describe(`${name} on PGlite`, () => {
    const origin = sharedGateway()
    suite({ gateway: () => ({ origin }), databaseUrl: () => null })
  })
  describe.skipIf(testServerUrl === undefined)(`${name} on PostgreSQL`, () =>
    over(() => forManyTests, testServerUrl, suite),
  )
}

function over(
  env: () => Readonly<Record<string, string>>,
  serverUrl: string | null | undefined,
  suite: (world: GatewayFixture) => void,
): void {
  const directory = mkdtempSync(join(tmpdir(), 'bursar-clock-'))
  const clock = join(directory, 'seconds')
  let offSeconds = 0
  let gateway: Gateway | undefined
  let database: Awaited<ReturnType<typeof createTestDatabase>> | null = null
  beforeAll(async () => {
    writeFileSync(clock, '0')
    if (serverUrl) database = await createTestDatabase(serverUrl)
    gateway = await startGateway({
      CHAIN: 'simulated',
      RATE_MUTATIONS: '100000/60',
      RATE_OTP_RESEND: '1000/60',
      RATE_OTP_DESTINATION: '1000/60',
      RATE_OTP_IP: '1000/60',
      RATE_RECOVERY: '1000/60',
      RATE_MESSAGES: '1000/60',
      ...(database === null ? {} : { DATABASE_URL: database.url }),
      NODE_OPTIONS: `--import=${resolve('test/faults/shift-clock.mjs')}`,
      CLOCK_OFF_FILE: clock,
      ...env(),
    })
  })
  afterAll(async () => {
    await gateway?.stop()
    await database?.drop()
    rmSync(directory, { recursive: true })
  })
  suite({
    gateway: () => {
      if (gateway === undefined) throw new Error('the gateway is there only within hooks and tests')
      return gateway
    },
    databaseUrl: () => database?.url ?? null,
    now: () => new Date(Date.now() + offSeconds * 1000),
    pass: (seconds) => {
      offSeconds += seconds
      writeFileSync(clock, String(offSeconds))
    },
  })
}
