/**
 * Several gateways on one PostgreSQL, one Redis and one chain, behind a TCP balancer: each connection goes to the next
 * gateway. Their short keep-alive makes clients open a connection for almost every request, so that two requests of a
 * journey rarely reach the same process.
 */
import { once } from 'node:events'
import { createServer, connect as dial, type Socket } from 'node:net'
import { Redis } from 'ioredis'
import { z } from 'zod'
import { createTestDatabase } from '../engines.ts'
import { closedPort } from '../smtp.ts'
import type { Gateway } from './gateway.ts'

/** Settings that balanced gateways share. A journey that sets one of them itself tests a single process. */
const shared = ['DATABASE_URL', 'REDIS_URL', 'CHAIN_RPC_URL', 'DATA_DIR', 'PORT', 'PUBLIC_ORIGIN', 'MODE']

/** True when a journey's environment sets none of the shared settings. */
export function isBalanceable(env: Readonly<Record<string, string>>): boolean {
  return shared.every((name) => env[name] === undefined)
}

const credentials = z.object({ chain: z.object({ rpcUrl: z.string() }) })

/** Starts `count` gateways with one starter, and the balancer before them. @param serverUrl a PostgreSQL server. */
export async function startBalanced(
  { count, serverUrl, redisUrl }: { count: number; serverUrl: string; redisUrl: string | undefined },
  env: Readonly<Record<string, string>>,
  start: (env: Readonly<Record<string, string>>) => Promise<Gateway>,
): Promise<Gateway> {
  const database = await createTestDatabase(serverUrl)
  const redis = redisUrl === undefined ? {} : { REDIS_URL: await ownRedis(redisUrl) }
  const balancer = await openBalancer()
  const gateways: Gateway[] = []
  const all = {
    ...env,
    ...redis,
    DATABASE_URL: database.url,
    PUBLIC_ORIGIN: balancer.origin,
    HTTP_KEEP_ALIVE: '1',
  }
  // The first gateway creates the database and starts the chain; the others connect to both.
  const onPort = async () => ({ ...all, PORT: String(await closedPort()) })
  const first = await start({ ...(await onPort()), CHAIN: 'anvil' })
  gateways.push(first)
  const { rpcUrl } = credentials.parse(await (await fetch(`${first.local}/sandbox/credentials`)).json()).chain
  gateways.push(
    ...(await Promise.all(Array.from({ length: count - 1 }, () => start({ ...all, CHAIN_RPC_URL: rpcUrl })))),
  )
  balancer.targets.push(...gateways.map(({ local }) => Number(new URL(local).port)))
  return {
    origin: balancer.origin,
    local: first.local,
    process: first.process,
    output: () => gateways.map(({ output }) => output()).join(''),
    stop: async () => {
      await balancer.close()
      // The first gateway owns the chain, which the others need until they stop.
      const codes = []
      for (const gateway of gateways.reverse()) codes.push(await gateway.stop())
      await database.drop()
      return Math.max(...codes.map((code) => code ?? -1))
    },
  }
}

/** Returns a URL for an empty Redis database of this worker alone. */
async function ownRedis(serverUrl: string): Promise<string> {
  const url = new URL(serverUrl)
  url.pathname = `/${1 + (Number(process.env.VITEST_POOL_ID ?? 1) % 15)}`
  const redis = new Redis(url.href)
  await redis.flushdb()
  await redis.quit()
  return url.href
}

async function openBalancer() {
  const targets: number[] = []
  const sockets = new Set<Socket>()
  let turn = 0
  const server = createServer((socket) => {
    turn += 1
    const target = dial(targets[turn % targets.length] ?? 0, '127.0.0.1')
    for (const [one, other] of [
      [socket, target],
      [target, socket],
    ] as const) {
      sockets.add(one)
      one
        .on('error', () => other.destroy())
        .on('close', () => {
          sockets.delete(one)
          other.destroy()
        })
      one.pipe(other)
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = z.object({ port: z.number() }).parse(server.address())
  return {
    origin: `http://127.0.0.1:${port}`,
    targets,
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
