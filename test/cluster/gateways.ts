/** Gateways on a cluster's nodes and one chain, behind HAProxy as `docs/operating/haproxy.cfg` sets it up. */
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type AnvilProcess, findAnvil, spawnAnvil } from '../../src/chain/node/anvil-process.ts'
import { freePort } from '../free-port.ts'
import { generousLimits } from '../generous-limits.ts'
import { type Gateway, startGateway } from '../journeys/gateway.ts'
import { until } from './nodes.ts'
import { openProcesses } from './processes.ts'

/** Preloaded by `faketime`. */
const FAKE_CLOCK = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1'
export const canShiftClock = existsSync(FAKE_CLOCK)

export interface Gateways {
  /** The one address. */
  readonly origin: string
  readonly node: AnvilProcess
  kill(index: number): Promise<void>
  /** Starts a gateway again. @param offSeconds how far its clock is off. */
  restart(index: number, offSeconds?: number): Promise<void>
  /** Defects that gateways have logged. */
  listDefects(): readonly string[]
  close(): Promise<void>
}

export async function startGateways(
  count: number,
  urls: { readonly databaseUrl: string; readonly redisUrl: string },
): Promise<Gateways> {
  const folder = mkdtempSync(join(tmpdir(), 'bursar-balancer-'))
  const node = await spawnAnvil(findAnvil(process.env.ANVIL_BIN), 0, 10_000)
  const ports = await Promise.all(Array.from({ length: count }, freePort))
  const front = await freePort()
  const origin = `http://127.0.0.1:${front}`
  const processes = openProcesses(folder)
  const outputs: (() => string)[] = []
  const start = async (index: number, offSeconds = 0) => {
    const gateway = await startGateway({
      ...generousLimits,
      DATABASE_URL: urls.databaseUrl,
      REDIS_URL: urls.redisUrl,
      CHAIN_RPC_URL: node.url,
      PUBLIC_ORIGIN: origin,
      TRUSTED_PROXIES: '127.0.0.1',
      RATE_SPONSORED: '1000000/60',
      AML_VELOCITY: '50000/86400',
      PORT: String(ports[index]),
      ...(offSeconds === 0 ? {} : shiftClock(offSeconds)),
    })
    outputs.push(gateway.output)
    return gateway
  }
  // The first one migrates the database and prepares the chain.
  const gateways: Gateway[] = [await start(0)]
  gateways.push(...(await Promise.all(ports.slice(1).map((_, at) => start(at + 1)))))
  const file = join(folder, 'haproxy.cfg')
  writeFileSync(file, adaptBalancer(front, ports))
  processes.start('haproxy', { command: ['haproxy', '-db', '-f', file] })
  await until('HAProxy finds a gateway', 20_000, async () =>
    fetch(`${origin}/readyz`).then(
      ({ status }) => status === 200,
      () => false,
    ),
  )
  return {
    origin,
    node,
    kill: async (index) => {
      const child = gateways[index]?.process
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
    },
    restart: async (index, offSeconds) => {
      gateways[index] = await start(index, offSeconds)
    },
    listDefects: () => outputs.flatMap((output) => output().match(/.*unexpected error.*/g) ?? []),
    close: async () => {
      await Promise.all(
        gateways
          .filter(({ process: child }) => child.exitCode === null && child.signalCode === null)
          .map(({ stop }) => stop()),
      )
      await processes.close()
      await node.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** The example's addresses become ports of this machine; gateways that are not there are left out. */
function adaptBalancer(front: number, ports: readonly number[]): string {
  return readFileSync('docs/operating/haproxy.cfg', 'utf8')
    .replace('127.0.0.1:8080', `127.0.0.1:${front}`)
    .replaceAll(/^ +server .*10\.0\.1\.(\d+):8787\n/gm, (line, number) => {
      const port = ports[Number(number) - 1]
      return port === undefined ? '' : line.replace(/10\.0\.1\.\d+:8787/, `127.0.0.1:${port}`)
    })
}

/** The wall clock alone: timers measure durations. */
function shiftClock(offSeconds: number): Record<string, string> {
  return {
    LD_PRELOAD: FAKE_CLOCK,
    FAKETIME: `${offSeconds < 0 ? '' : '+'}${offSeconds}s`,
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  }
}
