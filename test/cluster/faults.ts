/** Faults of a cluster: each strikes one part, and is healed as an operator or a supervisor heals it. */
import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { canShiftClock, type Gateways } from './gateways.ts'
import type { Nodes } from './nodes.ts'

export interface Cluster {
  readonly nodes: Nodes
  readonly gateways: Gateways
}

export interface Fault {
  readonly name: string
  /** Part of the short form. */
  readonly isShort: boolean
  /** Milliseconds after the strike within which its effects begin. */
  readonly watchMs: number
  /** @returns what heals it. */
  strike(cluster: Cluster): Promise<() => Promise<void> | void>
}

/** Longer than Patroni and Sentinel take to notice. */
const NOTICED_MS = 30_000

/** The clock of a gateway is off by this. */
const OFF_SECONDS = 90

export const faults: readonly Fault[] = [
  {
    name: 'gateway: kill -9',
    isShort: true,
    watchMs: 3_000,
    strike: async ({ gateways }) => {
      await gateways.kill(0)
      return () => gateways.restart(0)
    },
  },
  {
    name: 'Redis primary: kill -9',
    isShort: true,
    watchMs: 5_000,
    strike: async ({ nodes }) => {
      const name = `redis-${await nodes.redisPrimary()}`
      await nodes.processes.kill(name)
      return () => nodes.processes.restart(name)
    },
  },
  {
    name: 'database primary and its Patroni: kill -9',
    isShort: true,
    watchMs: 2_000,
    strike: async ({ nodes }) => {
      const primary = await nodes.primary()
      await nodes.killDatabase(primary)
      return () => nodes.restartDatabase(primary)
    },
  },
  {
    name: 'PostgreSQL of the primary: kill -9',
    isShort: false,
    watchMs: 10_000,
    strike: async ({ nodes }) => {
      nodes.killPostgres(await nodes.primary())
      return () => {}
    },
  },
  {
    name: 'synchronous standby and its Patroni: kill -9',
    isShort: false,
    watchMs: NOTICED_MS,
    strike: async ({ nodes }) => {
      const standby = await nodes.synchronousStandby()
      await nodes.killDatabase(standby)
      return () => nodes.restartDatabase(standby)
    },
  },
  {
    name: 'leader of etcd: kill -9',
    isShort: false,
    watchMs: NOTICED_MS,
    strike: async ({ nodes }) => {
      const name = `etcd-${await nodes.etcdLeader()}`
      await nodes.processes.kill(name)
      return () => nodes.processes.restart(name)
    },
  },
  {
    name: 'node of the primary: every process killed at once',
    isShort: false,
    watchMs: NOTICED_MS,
    strike: async ({ nodes }) => {
      const primary = await nodes.primary()
      await nodes.killNode(primary)
      return () => nodes.restartNode(primary)
    },
  },
  {
    // PostgreSQL goes on without room, so Patroni sees nothing to do: an operator must.
    name: 'disk of the primary: full, another one after 10 s',
    isShort: false,
    watchMs: 5_000,
    strike: async ({ nodes }) => {
      const primary = await nodes.primary()
      const file = join(nodes.diskOf(primary), 'other-data')
      try {
        execFileSync('dd', ['if=/dev/zero', `of=${file}`, 'bs=1M'], { stdio: 'ignore' })
      } catch {
        // It ends when nothing more fits.
      }
      await pause(10_000)
      await nodes.switchOver(primary)
      return () => rmSync(file)
    },
  },
  {
    name: 'network: the primary is cut off from the other nodes',
    isShort: false,
    watchMs: NOTICED_MS,
    strike: async ({ nodes }) => {
      const primary = await nodes.primary()
      nodes.network.cut(primary, 'nodes')
      return () => nodes.network.join(primary, 'nodes')
    },
  },
  {
    name: 'network: the primary is cut off from everything',
    isShort: false,
    watchMs: NOTICED_MS,
    strike: async ({ nodes }) => {
      const primary = await nodes.primary()
      nodes.network.cut(primary, 'nodes')
      nodes.network.cut(primary, 'gateways')
      return () => {
        nodes.network.join(primary, 'nodes')
        nodes.network.join(primary, 'gateways')
      }
    },
  },
  {
    name: 'Patroni of the primary: stopped, PostgreSQL goes on',
    isShort: false,
    watchMs: NOTICED_MS,
    strike: async ({ nodes }) => {
      const pid = nodes.processes.pid(`patroni-${await nodes.primary()}`)
      process.kill(pid, 'SIGSTOP')
      return () => {
        process.kill(pid, 'SIGCONT')
      }
    },
  },
  ...(canShiftClock ? [-OFF_SECONDS, OFF_SECONDS] : []).map((seconds) => ({
    name: `clock of a gateway: ${Math.abs(seconds)} s ${seconds < 0 ? 'behind' : 'ahead'}`,
    isShort: false,
    watchMs: 15_000,
    strike: async ({ gateways }: Cluster) => {
      await gateways.kill(1)
      await gateways.restart(1, seconds)
      return async () => {
        await gateways.kill(1)
        await gateways.restart(1)
      }
    },
  })),
]
