/**
 * A cluster as `docs/operating/` describes it under load, while one part after the other fails: nothing answered is lost, nothing is
 * done twice, no money stays held, and books equal the chain. The pause is the longest time without a confirmed transfer.
 * CLUSTER=full runs all faults (`npm run cluster`), CLUSTER_KEEP=1 keeps the nodes' logs.
 */
import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../src/storage/database.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { hasAnvil } from '../rails/selling/x402/world.ts'
import { type Cluster, type Fault, faults } from './faults.ts'
import { startGateways } from './gateways.ts'
import { openPayers, type Payer, startLoad } from './load.ts'
import { startNodes, until } from './nodes.ts'
import { whyNoCluster } from './programs.ts'
import { judge, type Verdict } from './verdict.ts'

const isFull = process.env.CLUSTER === 'full'
const GATEWAYS = isFull ? 4 : 2
const CALLERS = 6
/** Confirmed transfers before the fault, and after it. */
const STEADY = 20
/** The longest pause that is accepted: the time in which a lost primary is replaced, on a busy machine. */
const MAX_PAUSE_MS = 90_000

const reason = hasAnvil() ? whyNoCluster : 'not installed: anvil'
if (reason !== undefined) process.stderr.write(`the cluster is not tested: ${reason}\n`)

describe.skipIf(reason !== undefined)('a cluster under load', () => {
  let cluster: Cluster
  let database: Database
  let payers: readonly Payer[]

  beforeAll(async () => {
    const nodes = await startNodes()
    cluster = { nodes, gateways: await startGateways(GATEWAYS, nodes) }
    database = await openPostgres({ url: nodes.databaseUrl, poolSize: 2 })
    payers = await openPayers(cluster.gateways.origin, CALLERS)
    process.stdout.write(HEAD)
  }, 180_000)
  afterAll(async () => {
    await database?.close()
    await cluster?.gateways.close()
    await cluster?.nodes.close()
  }, 60_000)

  for (const [index, fault] of faults.filter(({ isShort }) => isFull || isShort).entries())
    it(`loses and repeats nothing: ${fault.name}`, async () => {
      const { nodes, gateways } = cluster
      const destination = `0x${randomBytes(20).toString('hex')}` as const
      const load = startLoad(gateways.origin, { payers, destination, name: `fault-${index}` })
      let heal: Awaited<ReturnType<Fault['strike']>> = () => {}
      let pauseMs = 0
      try {
        await until('a steady load', 30_000, async () => load.countConfirmed() >= STEADY)
        load.measure()
        heal = await fault.strike(cluster)
        const struck = load.countConfirmed()
        await pause(fault.watchMs)
        const enough = struck + CALLERS + STEADY
        await until('transfers again', MAX_PAUSE_MS, async () => load.countConfirmed() >= enough)
        await heal()
        await nodes.untilWhole()
        pauseMs = load.longestPauseMs()
        await load.stop()
      } catch (error) {
        // The next fault finds a whole cluster.
        await load.abort()
        await heal()
        await nodes.untilWhole()
        throw error
      }
      const verdict = await judge({
        origin: gateways.origin,
        rpcUrl: gateways.node.url,
        database,
        destination,
        calls: load.calls,
        payers,
      })
      process.stdout.write(formatRow(fault.name, pauseMs, verdict))
      expect(verdict).toMatchObject({ lost: 0, doubled: 0 })
      expect(gateways.listDefects()).toEqual([])
    }, 300_000)
})

const COLUMNS = ['answered', 'refused', 'lost', 'doubled'] as const
const HEAD = `${'fault'.padEnd(60)}${'pause'.padStart(8)}${COLUMNS.map((name) => name.padStart(9)).join('')}\n`

function formatRow(name: string, pauseMs: number, verdict: Verdict): string {
  const counts = COLUMNS.map((column) => String(verdict[column]).padStart(9)).join('')
  return `${name.padEnd(60)}${`${(pauseMs / 1000).toFixed(1)} s`.padStart(8)}${counts}\n`
}
