/**
 * The head of a day on a real node, and whoever rewrites the chain of decisions afterwards with every key of the gateway: the rewritten books
 * add up, and contradict the block.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { decisionMac } from '../../../src/books/spending/authenticate.ts'
import { type ContentRow, contentColumns, toContent } from '../../../src/books/spending/decision-content.ts'
import { type AnvilProcess, findAnvil, spawnAnvil } from '../../../src/chain/node/anvil-process.ts'
import { createNodeClient, localNodeOptions } from '../../../src/chain/rpc/client.ts'
import { connectRpcChain } from '../../../src/chain/rpc.ts'
import { withSigningKey } from '../../../src/commands/audit-database.ts'
import { systemClock } from '../../../src/core/base/clock.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import { readConfig } from '../../../src/core/config/read-config.ts'
import type { Chain, Hex } from '../../../src/providers/chain/port.ts'
import { anchorHead, encodeAnchor } from '../../../src/records/decisions/anchor-head.ts'
import { FIRST_PREVIOUS } from '../../../src/records/decisions/chain.ts'
import { createSealRound } from '../../../src/records/decisions/seal-decisions.ts'
import { readHead } from '../../../src/records/decisions/store.ts'
import { openDatabase } from '../../../src/runtime.ts'
import type { Database } from '../../../src/storage/database.ts'
import { bursar } from '../../commands/bursar.ts'
import { createTestDatabase, testServerUrl } from '../../engines.ts'
import { startGateway } from '../../journeys/gateway.ts'
import { spendInEveryWay } from './spend-in-every-way.ts'
import { canVerify, verifyBundle } from './verify-bundle.ts'

const DAY_MS = 86_400_000
const started = new Date()
const today = started.toISOString().slice(0, 10)
const month = today.slice(0, 7)

describe.skipIf(!canVerify)('anchors of PGlite', () => prove(undefined))
describe.skipIf(!canVerify || testServerUrl === undefined)('anchors of PostgreSQL', () =>
  prove(testServerUrl),
)

function prove(serverUrl: string | undefined): void {
  const directory = mkdtempSync(join(tmpdir(), 'bursar-anchors-'))
  let drop = async () => {}
  let env: Record<string, string> = {}
  let node: AnvilProcess
  let chain: Chain
  let bundles = 0

  beforeAll(async () => {
    node = await spawnAnvil(findAnvil(process.env.ANVIL_BIN), 0, 10_000, 'base-sepolia')
    const database = serverUrl === undefined ? undefined : await createTestDatabase(serverUrl)
    drop = database?.drop ?? drop
    env = database === undefined ? { DATA_DIR: join(directory, 'data') } : { DATABASE_URL: database.url }
    env = { ...env, CHAIN_RPC_URL: node.url, CHAINS: 'base-sepolia', ANCHOR_CHAIN: 'base-sepolia' }
    const gateway = await startGateway(env)
    try {
      await spendInEveryWay(gateway)
      // The newest decisions are sealed within seconds.
      await new Promise((resolve) => setTimeout(resolve, 3_000))
    } finally {
      await gateway.stop()
    }
    chain = await connectRpcChain({ name: 'base-sepolia', url: node.url, clock: systemClock, log: silentLog })
  }, 180_000)
  afterAll(async () => {
    await chain.close()
    await node.stop()
    await drop()
    rmSync(directory, { recursive: true, force: true })
  })

  async function onDatabase<Result>(work: (database: Database) => Promise<Result>): Promise<Result> {
    const database = await openDatabase(readConfig(env), silentLog)
    try {
      return await work(database)
    } finally {
      await database.close()
    }
  }

  /** The job's round this many minutes after the end of today. */
  const anchor = (database: Database, minutes: number) =>
    anchorHead(
      {
        ...{ database, chain, onCalendar: (at: Date) => at, log: silentLog },
        clock: () => new Date(Date.parse(`${today}T00:00:00Z`) + DAY_MS + minutes * 60_000),
        settings: { anchorChain: 'base-sepolia' },
      },
      new AbortController().signal,
    )

  const readAnchor = (database: Database) =>
    database.kysely.selectFrom('decision_anchor').selectAll().executeTakeFirstOrThrow()

  async function exportBooks(): Promise<string> {
    bundles += 1
    const bundle = join(directory, `books-${bundles}`)
    expect(await bursar(['export', '--month', month, '--out', bundle], env)).toMatchObject({
      code: 0,
      err: '',
    })
    return bundle
  }

  const verify = (bundle: string, ...options: readonly string[]) => verifyBundle(bundle, ...options)
  const tokens = () => ['--token', `base-sepolia:USDC=${chain.tokens.USDC}`]
  const withNode = () => ['--rpc', `base-sepolia=${node.url}`, ...tokens()]

  /** Changes rows as somebody who owns the database does. */
  const asOwner = (database: Database, table: string, work: () => Promise<unknown>) =>
    database
      .call({ name: `disable_${table}`, text: `alter table ${table} disable trigger user` }, [])
      .then(work)
      .then(() =>
        database.call({ name: `enable_${table}`, text: `alter table ${table} enable trigger user` }, []),
      )

  it('is in a transaction of the sponsor, again after its block was replaced', async () => {
    await onDatabase(async (database) => {
      const rpc = createNodeClient(localNodeOptions('base-sepolia', node.url)).transport
      // The sponsor gets its gas with its first transaction.
      await chain.signer.sendTransaction({ to: chain.signer.address, data: '0x' })
      const before = await rpc.request({ method: 'evm_snapshot', params: [] })
      await anchor(database, 10)
      expect(await readAnchor(database)).toMatchObject({ day: today, state: 'sent' })
      await rpc.request({ method: 'evm_revert', params: [before] })
      await chain.forget()
      await anchor(database, 12)
      expect((await readAnchor(database)).state).toBe('sent')
      await anchor(database, 25)
      await anchor(database, 26)
      const { sequence, hash, state, transaction_hash: sent } = await readAnchor(database)
      expect({ state, sequence, hash }).toEqual({ state: 'confirmed', ...(await readHead(database)) })
      const client = createNodeClient(localNodeOptions('base-sepolia', node.url))
      const mined = await client.getTransaction({ hash: toHex(sent) })
      expect(mined).toMatchObject({ input: encodeAnchor({ sequence, hash }), value: 0n })
      expect([mined.from, mined.to]).toEqual(Array(2).fill(chain.signer.address.toLowerCase()))
    })
  }, 60_000)

  it('is named by the books, and found on the chain', async () => {
    const bundle = await exportBooks()
    const anchors = readFileSync(join(bundle, 'anchors.jsonl'), 'utf8').trim().split('\n')
    expect(anchors.map((line) => JSON.parse(line))).toEqual([
      {
        day: today,
        sequence: expect.any(Number),
        hash: expect.stringMatching(/^[0-9a-f]{64}$/),
        chain: 'base-sepolia',
        transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
        sender: chain.signer.address,
      },
    ])
    const { code, out, err } = await verify(bundle, ...withNode())
    expect({ code, err }).toMatchObject({ code: 0, err: expect.not.stringContaining('fault') })
    expect(out).toContain(`1 days anchored by ${chain.signer.address}`)
    expect(await bursar(['audit', 'verify'], env)).toMatchObject({
      code: 0,
      out: expect.stringContaining('1 anchored head compared'),
    })
  }, 60_000)

  it('shows that the whole chain was rewritten with the keys of the gateway', async () => {
    await onDatabase(rewriteChain)
    const bundle = await exportBooks()
    const { code, err } = await verify(bundle)
    expect({ code, err: err.trim().split('\n').at(-1) }).toEqual({ code: 1, err: '1 faults' })
    expect(err).toContain(`${today} was anchored with another hash`)
    expect(await bursar(['audit', 'verify'], env)).toMatchObject({
      code: 1,
      out: expect.stringContaining('anchor contradicts'),
    })
  }, 90_000)

  it('shows it when the records of the anchors were rewritten too', async () => {
    await onDatabase(async (database) => {
      const { sequence, hash } = await readHead(database)
      await asOwner(database, 'decision_anchor', () =>
        database.kysely.updateTable('decision_anchor').set({ sequence, hash }).execute(),
      )
    })
    expect((await bursar(['audit', 'verify'], env)).code).toBe(0)
    const bundle = await exportBooks()
    expect((await verify(bundle)).code).toBe(0)
    expect(await verify(bundle, ...withNode())).toMatchObject({
      code: 1,
      err: expect.stringContaining('does not say so'),
    })
  }, 90_000)

  it('shows it when the sponsor anchored the rewritten chain days later', async () => {
    const rpc = createNodeClient(localNodeOptions('base-sepolia', node.url)).transport
    await rpc.request({ method: 'evm_increaseTime', params: [4 * 86_400] })
    await onDatabase(async (database) => {
      const data = encodeAnchor(await readHead(database))
      const hash = await chain.signer.sendTransaction({ to: chain.signer.address, data })
      await database.kysely.updateTable('decision_anchor').set({ transaction_hash: hash }).execute()
    })
    expect(await verify(await exportBooks(), ...withNode())).toMatchObject({
      code: 1,
      err: expect.stringContaining('more than two days after'),
    })
  }, 90_000)

  /** Changes what the first refused decision says, and seals every decision anew. */
  async function rewriteChain(database: Database): Promise<void> {
    const own = await withSigningKey(database, readConfig(env), async (keys) => keys)
    if (own === null) throw new Error('the sandbox has a data key')
    const { issuer } = await database.kysely
      .selectFrom('decision_seal')
      .select('issuer')
      .limit(1)
      .executeTakeFirstOrThrow()
    const select = `select ${contentColumns} from decision d where verdict <> 'allow' order by id limit 1`
    const [row] = await database.call<ContentRow>({ name: 'refused', text: select }, [])
    if (row === undefined) throw new Error('nothing was refused')
    const facts = { ...Object(row.facts), counterparty: 'somebody else' }
    const mac = decisionMac(own.dataKey, toContent({ ...row, facts }))
    await asOwner(database, 'decision', () =>
      database.kysely.updateTable('decision').set({ facts, mac }).where('id', '=', row.id).execute(),
    )
    const { hash } = await readHead(database)
    await asOwner(database, 'decision_seal', () => database.kysely.deleteFrom('decision_seal').execute())
    await database.kysely.updateTable('decision_head').set({ sequence: 0n, hash: FIRST_PREVIOUS }).execute()
    const seal = createSealRound({
      ...{
        database,
        clock: systemClock,
        onCalendar: (at: Date) => at,
        log: silentLog,
        unstoredCodes: new Map<string, string>(),
      },
      settings: { ...own, origin: issuer ?? '' },
    })
    expect(await seal(new AbortController().signal)).toBeGreaterThan(8)
    expect((await readHead(database)).hash).not.toBe(hash)
  }
}

function toHex(text: string | null): Hex {
  return `0x${text?.slice(2) ?? ''}`
}
