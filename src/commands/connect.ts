/** Connects commands to a gateway, as a person or an agent, with the published client. */

import { type AgentKey, type BursarOptions, BursarProblem } from '../client/index.ts'
import { namesOfOrigin } from '../core/base/origins.ts'
import { visibleText } from '../core/base/untrusted-text.ts'
import { readKeyFile } from './key-file.ts'
import { parseUrl } from './parse-url.ts'
import { findStoredSession } from './sessions-file.ts'

export type Env = Readonly<Record<string, string | undefined>>

/** Origin of the gateway: `--url`, BURSAR_URL, or the local sandbox. @throws Error if it is not usable. */
export function chooseGateway(url: string | undefined, env: Env): string {
  return parseUrl(url ?? (env.BURSAR_URL || '/')).origin
}

/** @throws Error for a session that would be sent unencrypted to another machine. */
export function requirePrivate(origin: string): void {
  if (origin.startsWith('https:') || namesOfOrigin(origin).length > 1) return
  throw new Error(`${origin} is not encrypted, and a session grants all that its person can do. Use https.`)
}

/**
 * The credential for the gateway: an agent's key file, BURSAR_SESSION, or the session of `bursar login`.
 * @throws Error that says how to sign in.
 */
export function chooseCredential(
  { origin, key }: { origin: string; key?: string | undefined },
  env: Env,
): Pick<BursarOptions, 'url' | 'session' | 'agentKey'> {
  if (key !== undefined) return { url: origin, agentKey: readAgentKey(key) }
  const session = env.BURSAR_SESSION || findStoredSession(env, origin)?.token
  if (session === undefined)
    throw new Error(`There is no session for ${origin}. Run "bursar login --url ${origin}".`)
  requirePrivate(origin)
  return { url: origin, session }
}

function readAgentKey(path: string): AgentKey {
  const { keyId, privateKey } = readKeyFile(path)
  const { kty = '', crv = '', x = '', d = '' } = privateKey.export({ format: 'jwk' })
  return { keyId, privateKey: { kty, crv, x, d } }
}

/** One line about an error of the client, safe to print on a terminal. */
export function describeError(error: unknown): string {
  if (error instanceof BursarProblem) {
    const hint = error.code === 'unauthenticated' ? 'Run "bursar login".' : (error.hint ?? '')
    return visibleText(`${error.message} ${hint} (${error.code})`)
  }
  return visibleText(error instanceof Error ? error.message : String(error))
}
