/**
 * Sessions of `bursar login` by origin of the gateway, in `$XDG_CONFIG_HOME/bursar/sessions.json`, readable by their user
 * only. @see https://specifications.freedesktop.org/basedir-spec/latest/
 */
import { lstatSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import { z } from 'zod'
import { randomToken } from '../core/base/ids.ts'
import { listOriginNames } from '../core/base/origins.ts'

const DIRECTORY_MODE = 0o700
const FILE_MODE = 0o600
const OTHERS = 0o077

const storedSession = z.object({
  token: z.string(),
  accountId: z.string(),
  /** ISO 8601 UTC. */
  expiresAt: z.string(),
})
const stored = z.object({ sessions: z.record(z.string(), storedSession) })

export type StoredSession = z.output<typeof storedSession>

type Env = Readonly<Record<string, string | undefined>>

export function sessionsPath({ XDG_CONFIG_HOME: config = '' }: Env): string {
  // The specification ignores relative paths.
  return join(isAbsolute(config) ? config : join(homedir(), '.config'), 'bursar', 'sessions.json')
}

/** The session of a gateway, under any name of a loopback origin. @throws Error when other users can read the file. */
export function findStoredSession(env: Env, origin: string): StoredSession | undefined {
  const sessions = readSessions(sessionsPath(env))
  const name = listOriginNames(origin).find((one) => Object.hasOwn(sessions, one))
  return name === undefined ? undefined : sessions[name]
}

/** Stores the session of a gateway in place of an earlier one; undefined forgets it. */
export function storeSession(env: Env, origin: string, session: StoredSession | undefined): void {
  const path = sessionsPath(env)
  const names = listOriginNames(origin)
  const others = Object.entries(readSessions(path)).filter(([name]) => !names.includes(name))
  const sessions = Object.fromEntries(session === undefined ? others : [...others, [origin, session]])
  mkdirSync(dirname(path), { recursive: true, mode: DIRECTORY_MODE })
  // A new file replaces the old one in one step, with its own permissions, and is written through no link.
  const written = `${path}.${randomToken(8)}`
  try {
    writeFileSync(written, `${JSON.stringify({ sessions }, null, 2)}\n`, { mode: FILE_MODE, flag: 'wx' })
    renameSync(written, path)
  } catch (cause) {
    rmSync(written, { force: true })
    throw cause
  }
}

function readSessions(path: string): Readonly<Record<string, StoredSession>> {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined) return {}
  // Windows has no such permissions: a user's profile is private there.
  const isShared = process.platform !== 'win32' && (found.mode & OTHERS) !== 0
  if (!found.isFile() || isShared)
    throw new Error(`${path} can be read by others, or is no file. Run "chmod 600 ${path}", or delete it.`)
  try {
    return stored.parse(JSON.parse(readFileSync(path, 'utf8'))).sessions
  } catch {
    throw new Error(`${path} is not a file of sessions. Delete it, and run "bursar login" again.`)
  }
}
