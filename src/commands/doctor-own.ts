/** Doctor checks of this machine: Node, disk, files, sanctions list, secrets, origin and port. */
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { createServer } from 'node:net'
import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import { silentLog } from '../core/base/log.ts'
import { findSharedPaths } from '../core/base/private-directory.ts'
import { isKeyReference } from '../core/config/key-reference.ts'
import type { Config } from '../core/config/read-config.ts'
import { rootCause } from '../core/failures/root-cause.ts'
import { createConfiguredSanctions } from '../runtime.ts'
import { type Finding, fail, ok, probeWeb, warn } from './doctor-probes.ts'

const MIN_NODE_VERSION = [20, 12] as const
const GIGABYTE = 1024 ** 3
/** A list may be wrong in each of its lines. */
const MAX_REASON = 300

/** @param version such as `20.12.0`. */
export function checkNode(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [oldestMajor, oldestMinor] = MIN_NODE_VERSION
  const isOld = major < oldestMajor || (major === oldestMajor && minor < oldestMinor)
  if (isOld) return fail('node', `Node ${version}`, `Install Node ${MIN_NODE_VERSION.join('.')} or newer.`)
  return ok('node', `Node ${version}`)
}

/** Checks that the embedded database has a writable place with free space. */
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
      `${place} is not writable`,
      'Set DATA_DIR to a directory that the current user can write to.',
    )
  }
  const { bavail, bsize } = await statfs(place)
  const free = bavail * bsize
  const detail = `${(free / GIGABYTE).toFixed(1)} GB free for DATA_DIR (${resolve(dataDirectory)})`
  if (free < GIGABYTE / 10)
    return fail('disk', detail, 'Free disk space: the database cannot write without it.')
  return free < GIGABYTE ? warn('disk', detail, 'Free disk space before it runs out.') : ok('disk', detail)
}

/** Checks that other users cannot read the embedded database, which holds the sandbox's secrets. */
export function checkFiles({ databaseUrl, dataDirectory }: Config): Finding {
  if (databaseUrl !== null || dataDirectory === 'memory' || !existsSync(dataDirectory))
    return ok('files', 'none')
  if (!isReadableDirectory(dataDirectory))
    return fail(
      'files',
      `DATA_DIR (${resolve(dataDirectory)}) is no directory, or the current user cannot read it`,
      'Run this as the user who runs the gateway, or set DATA_DIR to another directory.',
    )
  const open = findSharedPaths(dataDirectory)
  if (open.length === 0) return ok('files', `DATA_DIR (${resolve(dataDirectory)}) is private to its user`)
  return fail(
    'files',
    `${open.length} files of DATA_DIR are accessible to other users, such as ${resolve(open[0] ?? dataDirectory)}`,
    `Start the gateway once, which restricts them, or run: chmod -R go= ${resolve(dataDirectory)}`,
  )
}

function isReadableDirectory(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.X_OK)
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

/** Reads the configured sanctions list, which a gateway reads with its first transfer. */
export async function checkSanctions({ sanctionsList }: Config): Promise<Finding[]> {
  if (sanctionsList === null) return []
  try {
    const { source, date, addresses } = await createConfiguredSanctions({ sanctionsList }, silentLog).latest()
    return [ok('sanctions', `${addresses.size} addresses of ${source}, ${date}`)]
  } catch (error) {
    const cause = error instanceof Error ? error.cause : undefined
    const why =
      cause instanceof z.ZodError
        ? cause.issues.map(({ path, message }) => `${path.join('.')} ${message}`).join('; ')
        : rootCause(error)
    const detail = `SANCTIONS_LIST (${sanctionsList}) cannot be read: ${why.slice(0, MAX_REASON)}`
    return [
      fail('sanctions', detail, 'Correct the file: every transfer is refused as screening_unavailable.'),
    ]
  }
}

/** Checks for weak and reused secrets. Never prints their values. */
export function checkSecrets(config: Config): Finding {
  const { sessionSecret, dataKey, metricsToken } = config
  const [chain] = config.chains
  const named = Object.entries({
    SESSION_SECRET: sessionSecret,
    DATA_KEY: dataKey,
    CHAIN_SPONSOR_KEY: chain.sponsorKey,
    CHAIN_OWNER_KEY: chain.ownerKey,
    CHAIN_OWNER_KEY_PREVIOUS: chain.ownerKeyPrevious,
    METRICS_TOKEN: metricsToken,
  }).filter((entry): entry is [string, string] => entry[1] !== null && !isKeyReference(entry[1]))
  const guessable = named.filter(([, secret]) => new Set(secret).size < 8).map(([name]) => name)
  const hint = 'Generate a random value: openssl rand -base64 48 (for chain keys: openssl rand -hex 32).'
  if (guessable.length > 0) return fail('secrets', `easily guessed: ${guessable.join(', ')}`, hint)
  const same = named.filter(([, secret], at) =>
    named.some(([, other], before) => before < at && other === secret),
  )
  if (same.length > 0)
    return warn(
      'secrets',
      `used twice: ${same.map(([name]) => name).join(', ')}`,
      'Use a separate value for each, so that a leak exposes only one.',
    )
  if (named.length === 0)
    return ok('secrets', 'none is set; the sandbox generates its own and stores them in its database')
  return ok('secrets', `${named.map(([name]) => name).join(', ')}`)
}

const isLoopback = (host: string) => ['localhost', '127.0.0.1', '::1', '[::1]'].includes(host)

/** Checks that the public origin fits the listening address. */
export function checkOrigin({ publicOrigin, host, port, trustedProxies, mode }: Config): Finding {
  const at = `${host}:${port}`
  if (publicOrigin === null)
    return isLoopback(host)
      ? ok('origin', `http://${at}, for this machine only`)
      : warn(
          'origin',
          `listens at ${at} without a public origin`,
          'Set PUBLIC_ORIGIN to the URL that clients use: signatures, passkeys and /mcp require it.',
        )
  const { protocol, hostname } = new URL(publicOrigin)
  if (protocol === 'http:' && !isLoopback(hostname))
    return (mode === 'production' ? fail : warn)(
      'origin',
      `${publicOrigin} is not https`,
      'Put TLS in front, and set PUBLIC_ORIGIN to its https URL.',
    )
  if (!isLoopback(hostname) && trustedProxies.length === 0)
    return warn(
      'origin',
      `${publicOrigin}, listening at ${at}, without TRUSTED_PROXIES`,
      'Add your proxy to TRUSTED_PROXIES; otherwise all its clients share one rate limit.',
    )
  return ok('origin', `${publicOrigin}, listening at ${at}`)
}

/** Checks that the port is free or used by a gateway. */
export async function checkPort({ host, port }: Config, signal: AbortSignal): Promise<Finding> {
  if (port === 0) return ok('port', 'any free port')
  if (await isFree(host, port)) return ok('port', `${host}:${port} is free`)
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host
  const ready = await probeWeb(`http://${name}:${port}/readyz`, signal).catch(() => null)
  if (ready === null || !ready.text.includes('"checks"'))
    return fail('port', `${host}:${port} is used by another program`, 'Set PORT to another one.')
  if (ready.status === 200) return ok('port', `a gateway is running at ${host}:${port} and is ready`)
  return fail(
    'port',
    `a gateway is running at ${host}:${port} but is not ready: ${ready.text.slice(0, 200)}`,
    'Its log says which dependency is unavailable, and why.',
  )
}

function isFree(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, host, () => server.close(() => resolve(true)))
  })
}
