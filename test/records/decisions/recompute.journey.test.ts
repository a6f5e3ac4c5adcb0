/**
 * The books of a month, exported and recomputed by a verifier in Python that shares no code with the gateway, on both engines: what was
 * allowed, refused, released, bought and ordered adds up; whatever is changed or left out is found.
 */
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type AnvilProcess, findAnvil, spawnAnvil } from '../../../src/chain/node/anvil-process.ts'
import { chainFacts } from '../../../src/core/money/chains.ts'
import { bursar } from '../../commands/bursar.ts'
import { createTestDatabase, testServerUrl } from '../../engines.ts'
import { startGateway } from '../../journeys/gateway.ts'
import { requestJson } from '../../journeys/people.ts'
import { spendInEveryWay } from './spend-in-every-way.ts'
import { canVerify, verifyBundle } from './verify-bundle.ts'

const run = promisify(execFile)
const month = new Date().toISOString().slice(0, 7)
/** A thousand edits and a hundred omissions take a minute. */
const EDITS = process.env.BUNDLE_EDITS ?? '150'
const OMISSIONS = process.env.BUNDLE_OMISSIONS ?? '30'
const findings = z.strictObject({
  missed: z.array(z.string()),
  unfound: z.array(z.string()),
  recomputed: z.int(),
  of: z.int(),
  resigned: z.record(z.string(), z.int()),
})

if (!canVerify) process.stderr.write('No Python with "PyNaCl" here: exported books are not recomputed.\n')

describe.skipIf(!canVerify)('books of PGlite', () => recompute(undefined))
describe.skipIf(!canVerify || testServerUrl === undefined)('books of PostgreSQL', () =>
  recompute(testServerUrl),
)

function recompute(serverUrl: string | undefined): void {
  const directory = mkdtempSync(join(tmpdir(), 'bursar-recompute-'))
  const bundle = join(directory, 'books')
  const jwks = join(directory, 'jwks.json')
  let drop = async () => {}
  let env: Record<string, string> = {}
  let node: AnvilProcess | undefined

  beforeAll(async () => {
    node = await spawnAnvil(findAnvil(process.env.ANVIL_BIN), 0, 10_000, 'base-sepolia')
    const database = serverUrl === undefined ? undefined : await createTestDatabase(serverUrl)
    drop = database?.drop ?? drop
    env = database === undefined ? { DATA_DIR: join(directory, 'data') } : { DATABASE_URL: database.url }
    const gateway = await startGateway({ ...env, CHAIN_RPC_URL: node.url })
    try {
      await spendInEveryWay(gateway)
      const { body } = await requestJson(gateway.origin, 'GET', '/.well-known/jwks.json')
      writeFileSync(jwks, JSON.stringify(body))
      // The newest decisions are sealed within seconds.
      await new Promise((resolve) => setTimeout(resolve, 3_000))
    } finally {
      await gateway.stop()
    }
  }, 180_000)
  afterAll(async () => {
    await node?.stop()
    await drop()
    rmSync(directory, { recursive: true, force: true })
  })

  it('adds up', async () => {
    const exported = await bursar(['export', '--month', month, '--out', bundle], env)
    expect(exported).toMatchObject({ code: 0, err: '' })
    expect(exported.out).toMatch(/^\d+ decisions and \d+ postings until /)
    const { code, out, err } = await verifyBundle(bundle, '--jwks', jwks)
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toContain('as recomputed')
    const read = (name: string) => readFileSync(join(bundle, name), 'utf8').trim().split('\n')
    expect(read('decisions.jsonl').length).toBeGreaterThan(8)
    expect(read('usage.jsonl').length).toBeGreaterThan(0)
    expect(read('policies.jsonl').length).toBeGreaterThanOrEqual(2)
  }, 60_000)

  it('is on the chain, token by token', async () => {
    const { USDC, EURC } = chainFacts('base-sepolia').tokens
    const ask = (token: string) =>
      verifyBundle(
        bundle,
        ...['--jwks', jwks, '--rpc', `base-sepolia=${node?.url}`, '--token', `base-sepolia:USDC=${token}`],
      )
    const { code, out, err } = await ask(USDC.address)
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(Number(/(\d+) confirmed on chain/.exec(out)?.[1])).toBeGreaterThanOrEqual(4)
    expect(await ask(EURC?.address ?? '')).toMatchObject({
      code: 1,
      err: expect.stringContaining('does not pay'),
    })
  }, 60_000)

  it('overwrites nothing, and names what is wrong with its arguments', async () => {
    const again = await bursar(['export', '--month', month, '--out', bundle], env)
    expect(again).toMatchObject({ code: 1, err: expect.stringContaining('is not empty') })
    expect(readdirSync(bundle)).toHaveLength(8)
    const none = await bursar(['export', '--month', '2020-13', '--out', join(directory, 'none')], env)
    expect(none).toMatchObject({ code: 1, err: expect.stringContaining('must be a month') })
    const later = await bursar(['export', '--month', '2999-01', '--out', join(directory, 'later')], env)
    expect(later).toMatchObject({ code: 1, err: expect.stringContaining('Nothing has happened yet') })
    expect(existsSync(join(directory, 'later'))).toBe(false)
  }, 60_000)

  it('is refused under the keys of another gateway', async () => {
    const other = join(directory, 'other.json')
    const text = readFileSync(jwks, 'utf8')
    writeFileSync(other, text.replace(/"kid":"./, '"kid":"A'))
    expect(await verifyBundle(bundle, '--jwks', other)).toMatchObject({
      code: 1,
      err: expect.stringContaining('not signed by these keys'),
    })
  }, 60_000)

  it('shows every change and every omission', async () => {
    const { stdout } = await run('python3', [
      'test/records/decisions/edit_bundle.py',
      ...[bundle, EDITS, OMISSIONS, '7'],
    ])
    const { missed, unfound, recomputed, of, resigned } = findings.parse(JSON.parse(stdout))
    process.stdout.write(
      `${recomputed} of ${of} found without the signature; not: ${JSON.stringify(resigned)}\n`,
    )
    expect(missed).toEqual([])
    // Whoever has the database and no key cannot make a decided transfer another one.
    expect(unfound).toEqual([])
    // Of what the gateway itself would sign falsely, what the books rest on does not add up either; no budget adds a person's spends.
    expect(recomputed / of).toBeGreaterThan(0.75)
    expect(
      Object.keys(resigned).filter(
        (what) =>
          what !== 'spends.jsonl counted of a person' &&
          /counted|units|closing|opening|content|hash/.test(what),
      ),
    ).toEqual([])
  }, 600_000)
}
