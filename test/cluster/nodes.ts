/**
 * Three nodes as `docs/operating/` describes them, each with etcd, PostgreSQL under Patroni and a Sentinel; two of them have Redis.
 * The files of the documentation are used as they are, with the addresses, folders and passwords of this machine.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import pg from 'pg'
import { z } from 'zod'
import { type Network, openNetwork } from './network.ts'
import { openProcesses, type Processes } from './processes.ts'
import { postgresPrograms, run } from './programs.ts'

const NODES = [1, 2, 3] as const
const REDIS_NODES = [1, 2] as const
/** Room of each database: small enough to be filled. */
const DISK = '1g'
const PASSWORDS = {
  'change-superuser': 'secret-superuser',
  'change-replication': 'secret-replication',
  'change-redis': 'secret-redis',
  'change-restapi': 'secret-restapi',
}
/** For an answer of a node. */
const ANSWER_MS = 5_000

export interface Member {
  readonly node: number
  readonly isPrimary: boolean
  readonly isSynchronous: boolean
  readonly isRunning: boolean
}

export interface Nodes {
  readonly network: Network
  readonly processes: Processes
  readonly databaseUrl: string
  readonly redisUrl: string
  /** URL of the superuser at one node. */
  readonly urlAt: (node: number) => string
  /** Members by the node of Patroni that answers first; empty if none does. */
  listMembers(): Promise<readonly Member[]>
  primary(): Promise<number>
  synchronousStandby(): Promise<number>
  /** Waits until all three databases run, one is primary and one of the others synchronous. */
  untilWhole(): Promise<void>
  /** Sends SIGKILL to Patroni and PostgreSQL of a node at once, as a power cut does. */
  killDatabase(node: number): Promise<void>
  restartDatabase(node: number): void
  /** Sends SIGKILL to PostgreSQL alone; Patroni sees it and acts. */
  killPostgres(node: number): void
  /** Kills every process of a node, as a power cut does. */
  killNode(node: number): Promise<void>
  /** Makes another node primary, as `patronictl switchover` does. */
  switchOver(primary: number): Promise<void>
  restartNode(node: number): void
  /** Folder of a node's database, on a small disk of its own. */
  readonly diskOf: (node: number) => string
  etcdLeader(): Promise<number>
  redisPrimary(): Promise<number>
  close(): Promise<void>
}

const cluster = z.object({
  members: z.array(z.looseObject({ name: z.string(), role: z.string(), state: z.string() })),
})

const whole = z.object({ async: z.number(), sync: z.number(), names: z.string() })

export async function startNodes(): Promise<Nodes> {
  const network = openNetwork(NODES.length)
  const folder = mkdtempSync(join(tmpdir(), 'bursar-cluster-'))
  const [uid, gid] = ['-u', '-g'].map((flag) =>
    Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' })),
  )
  const own = (path: string) => chownSync(path, uid ?? 0, gid ?? 0)
  own(folder)
  const processes = openProcesses(folder)
  const folderOf = (node: number) => join(folder, String(node))
  const diskOf = (node: number) => join(folderOf(node), 'disk')
  const asPostgres = (node: number, ...command: string[]) =>
    [
      ...network.within(node),
      'setpriv',
      '--reuid=postgres',
      '--regid=postgres',
      '--init-groups',
      ...command,
    ] as [string, ...string[]]
  const write = (node: number, name: string, text: string) => {
    const path = join(folderOf(node), name)
    writeFileSync(path, text)
    own(path)
    chmodSync(path, 0o600)
    return path
  }
  /** Adapts an example file to a node: what names the first node's own address is the node's. */
  const adapt = (name: string, node: number, link: 'nodes' | 'gateways', ownLines: RegExp) => {
    let text = readFileSync(`docs/operating/${name}`, 'utf8')
      .split('\n')
      .map((line) => (ownLines.test(line) ? line.replaceAll('10.0.0.1', network.address(node, link)) : line))
      .join('\n')
    for (const other of NODES) text = text.replaceAll(`10.0.0.${other}:`, `${network.address(other, link)}:`)
    text = text.replaceAll('10.0.0.1 ', `${network.address(1, link)} `)
    for (const [example, secret] of Object.entries(PASSWORDS)) text = text.replaceAll(example, secret)
    return text
  }

  for (const node of NODES) {
    for (const path of [folderOf(node), diskOf(node), join(folderOf(node), 'etcd')]) {
      mkdirSync(path)
      own(path)
    }
    run('mount', '-t', 'tmpfs', '-o', `size=${DISK},mode=700,uid=${uid},gid=${gid}`, 'tmpfs', diskOf(node))
    const etcd = adapt('etcd.env', node, 'nodes', /^ETCD_(LISTEN|ADVERTISE|INITIAL_ADVERTISE)/)
      .replace('ETCD_NAME=node-1', `ETCD_NAME=node-${node}`)
      .replace('/var/lib/etcd/bursar', join(folderOf(node), 'etcd'))
    const env = Object.fromEntries(
      [...etcd.matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]),
    )
    processes.start(`etcd-${node}`, { command: asPostgres(node, 'etcd'), env })
    const patroni = adapt('patroni.yml', node, 'nodes', /connect_address:/)
      .replace('name: node-1', `name: node-${node}`)
      .replace('/var/lib/postgresql/15/bursar', join(diskOf(node), 'data'))
      .replace('/usr/lib/postgresql/15/bin', postgresPrograms ?? '')
      .replace('/var/run/postgresql', folderOf(node))
      .replaceAll(/10\.0\.[01]\.0\/24/g, '198.18.0.0/15')
      // This machine has no device that ends a machine.
      .replace('mode: automatic', "mode: 'off'")
    processes.start(`patroni-${node}`, {
      command: asPostgres(node, 'patroni', write(node, 'patroni.yml', patroni)),
      env: { PGPASSFILE: join(folderOf(node), 'pgpass') },
    })
    const inOwn = (text: string) => text.replace('/var/lib/redis', folderOf(node))
    if (REDIS_NODES.some((one) => one === node)) {
      const replica = node === 1 ? '' : `replicaof ${network.address(1, 'gateways')} 6379\n`
      const redis = inOwn(adapt('redis.conf', node, 'gateways', /^$/)) + replica
      processes.start(`redis-${node}`, {
        command: asPostgres(node, 'redis-server', write(node, 'redis.conf', redis)),
      })
    }
    const sentinel = inOwn(adapt('sentinel.conf', node, 'gateways', /^$/))
    processes.start(`sentinel-${node}`, {
      command: asPostgres(node, 'redis-sentinel', write(node, 'sentinel.conf', sentinel)),
    })
  }

  const askPatroni = async (node: number) => {
    const url = `http://${network.address(node, 'gateways')}:8008/cluster`
    return cluster.parse(await (await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS) })).json())
  }
  const listMembers = async () => {
    const { members } = await Promise.any(NODES.map(askPatroni)).catch(() => ({ members: [] }))
    return members.map(({ name, role, state }) => ({
      node: Number(name.replace('node-', '')),
      isPrimary: role === 'leader',
      isSynchronous: role === 'sync_standby',
      isRunning: state === 'running' || state === 'streaming',
    }))
  }
  const find = async (what: string, isIt: (member: Member) => boolean) => {
    const found = (await listMembers()).find(isIt)
    if (found === undefined) throw new Error(`there is no ${what}`)
    return found.node
  }
  const urlAt = (node: number) =>
    `postgres://postgres:${PASSWORDS['change-superuser']}@${network.address(node, 'gateways')}:5432`
  const hosts = NODES.map((node) => `${network.address(node, 'gateways')}:5432`).join(',')
  const sentinels = NODES.map((node) => `${network.address(node, 'gateways')}:26379`).join(',')

  const killPostgres = (node: number) => {
    const [pid] = readFileSync(join(diskOf(node), 'data', 'postmaster.pid'), 'utf8').split('\n')
    process.kill(Number(pid), 'SIGKILL')
  }
  const programsOf = (node: number) => [
    ...['etcd', 'patroni', 'sentinel'].map((name) => `${name}-${node}`),
    ...REDIS_NODES.filter((one) => one === node).map((one) => `redis-${one}`),
  ]

  const nodes: Nodes = {
    network,
    processes,
    databaseUrl: `postgres://bursar:secret-bursar@${hosts}/bursar`,
    redisUrl: `redis+sentinel://:${PASSWORDS['change-redis']}@${sentinels}/bursar`,
    urlAt,
    listMembers,
    primary: () => find('primary', ({ isPrimary }) => isPrimary),
    synchronousStandby: () => find('synchronous standby', ({ isSynchronous }) => isSynchronous),
    untilWhole: () =>
      until('a primary with two standbys that stream, one of them synchronous', 120_000, async () => {
        const primary = (await listMembers()).find(({ isPrimary }) => isPrimary)
        if (primary === undefined) return false
        // Patroni's own list is as old as the last report of each node.
        const [row] = await query(
          `${urlAt(primary.node)}/postgres`,
          "select count(*) filter (where sync_state in ('async', 'potential'))::int as async, count(*) filter (where sync_state = 'sync')::int as sync, current_setting('synchronous_standby_names') as names from pg_stat_replication where state = 'streaming' and application_name like 'node-%'",
        ).catch(() => [])
        const { async: others, sync, names } = whole.catch({ async: 0, sync: 0, names: '' }).parse(row)
        return others === 1 && sync === 1 && names !== '*'
      }),
    killDatabase: async (node) => {
      await processes.kill(`patroni-${node}`)
      killPostgres(node)
    },
    restartDatabase: (node) => processes.restart(`patroni-${node}`),
    killPostgres,
    killNode: async (node) => {
      const names = programsOf(node).filter(processes.isRunning)
      for (const pid of network.listProcesses(node)) killQuietly(pid)
      await Promise.all(names.map(processes.kill))
    },
    switchOver: async (primary) => {
      const credentials = Buffer.from(`patroni:${PASSWORDS['change-restapi']}`).toString('base64')
      const response = await fetch(`http://${network.address(primary, 'gateways')}:8008/switchover`, {
        method: 'POST',
        headers: { authorization: `Basic ${credentials}` },
        body: JSON.stringify({ leader: `node-${primary}` }),
      })
      if (!response.ok) throw new Error(`the switchover failed: ${await response.text()}`)
    },
    restartNode: (node) => {
      for (const name of programsOf(node)) processes.restart(name)
    },
    diskOf,
    etcdLeader: async () => {
      for (const node of NODES) {
        const url = `http://${network.address(node, 'nodes')}:2379/metrics`
        const metrics = await fetch(url).then(
          (response) => response.text(),
          () => '',
        )
        if (metrics.includes('etcd_server_is_leader 1')) return node
      }
      throw new Error('etcd has no leader')
    },
    redisPrimary: async () => {
      for (const node of REDIS_NODES) {
        if (!processes.isRunning(`redis-${node}`)) continue
        const redis = new Redis({
          host: network.address(node, 'gateways'),
          password: PASSWORDS['change-redis'],
          maxRetriesPerRequest: 1,
        })
        redis.on('error', () => {})
        const [role] = z.array(z.unknown()).parse(await redis.role())
        redis.disconnect()
        if (role === 'master') return node
      }
      throw new Error('Redis has no primary')
    },
    close: async () => {
      for (const node of NODES) {
        await processes.kill(`patroni-${node}`)
        for (const pid of network.listProcesses(node)) killQuietly(pid)
      }
      await processes.close()
      await pause(300)
      for (const node of NODES) for (const pid of network.listProcesses(node)) killQuietly(pid)
      for (const node of NODES) run('umount', '--lazy', diskOf(node))
      network.close()
      if (process.env.CLUSTER_KEEP === undefined) rmSync(folder, { recursive: true, force: true })
    },
  }
  try {
    await nodes.untilWhole()
    const maintenance = `${urlAt(await nodes.primary())}/postgres`
    await query(maintenance, "create role bursar login password 'secret-bursar'")
    await query(maintenance, 'create database bursar owner bursar')
    return nodes
  } catch (error) {
    const logs = NODES.map((node) => processes.readLog(`patroni-${node}`).slice(-1_500)).join('\n')
    await nodes.close()
    throw new Error(`the cluster did not start:\n${logs}`, { cause: error })
  }
}

/** Waits until a condition holds. @throws Error naming it after `withinMs`. */
export async function until(what: string, withinMs: number, holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + withinMs
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`not within ${withinMs / 1000} s: ${what}`)
    await pause(200)
  }
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: ANSWER_MS,
    query_timeout: ANSWER_MS,
  })
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}
