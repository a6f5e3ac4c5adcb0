/** What the doctor looks at on this machine: Node, the disk, the secrets, the names that clients call us by. */
import { accessSync, constants, existsSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { createServer } from 'node:net'
import { dirname, resolve } from 'node:path'
import { findSharedPaths } from '../base/private-directory.ts'
import type { Config } from '../config/read-config.ts'
import { askWeb, type Finding, fail, ok, warn } from './doctor-probes.ts'

const OLDEST_NODE = [20, 12] as const
const GIGABYTE = 1024 ** 3

/** @param version such as `20.12.0`. */
export function checkNode(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [oldestMajor, oldestMinor] = OLDEST_NODE
  const isOld = major < oldestMajor || (major === oldestMajor && minor < oldestMinor)
  if (isOld) return fail('node', `Node ${version}`, `Install Node ${OLDEST_NODE.join('.')} or newer.`)
  return ok('node', `Node ${version}`)
}

/** Whether the embedded database has a place that can be written to, with room left. */
export async function checkDisk({ databaseUrl, dataDirectory }: Config): Promise<Finding> {
  if (databaseUrl !== null) return ok('disk', 'the database is on a server; DATA_DIR is not used')
  if (dataDirectory === 'memory') return ok('disk', 'DATA_DIR=memory keeps nothing')
  let place = resolve(dataDirectory)
  while (!existsSync(place)) place = dirname(place)
  try {
    accessSync(place, constants.W_OK)
  } catch {
    return fail(
      'disk',
      `${place} cannot be written to`,
      'Set DATA_DIR to a directory of the user who runs this.',
    )
  }
  const { bavail, bsize } = await statfs(place)
  const free = bavail * bsize
  const told = `${(free / GIGABYTE).toFixed(1)} GB free for DATA_DIR (${resolve(dataDirectory)})`
  if (free < GIGABYTE / 10) return fail('disk', told, 'Make room: the database cannot write without it.')
  return free < GIGABYTE ? warn('disk', told, 'Make room before it is used up.') : ok('disk', told)
}

/** Whether anybody else on this machine can read the embedded database, which holds the sandbox's secrets. */
export function checkFiles({ databaseUrl, dataDirectory }: Config): Finding {
  if (databaseUrl !== null || dataDirectory === 'memory' || !existsSync(dataDirectory))
    return ok('files', 'there are none')
  const open = findSharedPaths(dataDirectory)
  if (open.length === 0) return ok('files', `DATA_DIR (${resolve(dataDirectory)}) is its user’s alone`)
  return fail(
    'files',
    `${open.length} files of DATA_DIR are open to other users, such as ${resolve(open[0] ?? dataDirectory)}`,
    `Start the gateway once, which takes them from others, or: chmod -R go= ${resolve(dataDirectory)}`,
  )
}

/** Whether secrets can be guessed. Their values are never told. */
export function checkSecrets(config: Config): Finding {
  const { sessionSecret, dataKey, chain, metricsToken } = config
  const named = Object.entries({
    SESSION_SECRET: sessionSecret,
    DATA_KEY: dataKey,
    CHAIN_SPONSOR_KEY: chain.sponsorKey,
    CHAIN_OWNER_KEY: chain.ownerKey,
    METRICS_TOKEN: metricsToken,
  }).filter((entry): entry is [string, string] => entry[1] !== null)
  const guessable = named.filter(([, secret]) => new Set(secret).size < 8).map(([name]) => name)
  const hint = 'Make a random one: openssl rand -base64 48 (for keys of the chain: openssl rand -hex 32).'
  if (guessable.length > 0) return fail('secrets', `easily guessed: ${guessable.join(', ')}`, hint)
  const same = named.filter(([, secret], at) =>
    named.some(([, other], before) => before < at && other === secret),
  )
  if (same.length > 0)
    return warn(
      'secrets',
      `used twice: ${same.map(([name]) => name).join(', ')}`,
      'Give each its own: who learns one then has one.',
    )
  if (named.length === 0)
    return ok('secrets', 'none is set; the sandbox makes its own and keeps them in its database')
  return ok('secrets', `${named.map(([name]) => name).join(', ')}`)
}

const isLoopback = (host: string) => ['localhost', '127.0.0.1', '::1', '[::1]'].includes(host)

/** Whether the name that clients use fits where the gateway listens. */
export function checkOrigin({ publicOrigin, host, port, trustedProxies, mode }: Config): Finding {
  const at = `${host}:${port}`
  if (publicOrigin === null)
    return isLoopback(host)
      ? ok('origin', `http://${at}, for this machine alone`)
      : warn(
          'origin',
          `listens at ${at} without a name`,
          'Set PUBLIC_ORIGIN to what clients call it: signatures, passkeys and /mcp insist on it.',
        )
  const { protocol, hostname } = new URL(publicOrigin)
  if (protocol === 'http:' && !isLoopback(hostname))
    return (mode === 'production' ? fail : warn)(
      'origin',
      `${publicOrigin} is not https`,
      'Put TLS in front, and name it by https in PUBLIC_ORIGIN.',
    )
  if (!isLoopback(hostname) && trustedProxies.length === 0)
    return warn(
      'origin',
      `${publicOrigin}, listening at ${at}, without TRUSTED_PROXIES`,
      'Name your proxy in TRUSTED_PROXIES: else all its clients share one rate limit.',
    )
  return ok('origin', `${publicOrigin}, listening at ${at}`)
}

/** Whether the port is free, or has a gateway already. */
export async function checkPort({ host, port }: Config, signal: AbortSignal): Promise<Finding> {
  if (port === 0) return ok('port', 'any free one')
  if (await isFree(host, port)) return ok('port', `${host}:${port} is free`)
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host
  const ready = await askWeb(`http://${name}:${port}/readyz`, signal).catch(() => null)
  if (ready === null || !ready.text.includes('"checks"'))
    return fail('port', `${host}:${port} is taken by something else`, 'Set PORT to another one.')
  if (ready.status === 200) return ok('port', `a gateway is running at ${host}:${port}, and is ready`)
  return fail(
    'port',
    `a gateway is running at ${host}:${port}, and is not ready: ${ready.text.slice(0, 200)}`,
    'Its log says which part is missing, and why.',
  )
}

function isFree(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, host, () => server.close(() => resolve(true)))
  })
}
