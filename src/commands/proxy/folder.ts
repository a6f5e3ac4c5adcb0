/** The proxy's folder: what programs need to use the proxy, and what must survive its process. */
import { rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { rootCertificates } from 'node:tls'
import { randomToken } from '../../core/base/ids.ts'
import { makePrivate } from '../../core/base/private-directory.ts'
import { type Authority, loadAuthority } from './authority.ts'
import { createFile, readFile, replaceFile } from './private-files.ts'

const DEFAULT_PORT = 8402
const TOKEN_BYTES = 32

/** @property certificates PEM files: the authority's own, and all that a program may trust. */
export interface ProxyFolder {
  readonly path: string
  readonly token: string
  readonly authority: Authority
  readonly certificates: { readonly own: string; readonly all: string }
}

/** Where the last start listened, and for which gateway. */
export interface LastStart {
  readonly port: number
  readonly gateway: string | null
}

/** `~/.bursar/proxy`. */
export function findHome(): string {
  return join(homedir(), '.bursar', 'proxy')
}

/**
 * Opens a folder, and makes what is missing in it. @param authorityFolder folder of the authority, which programs may trust
 * for longer than they use one proxy. @param roots PEM of more authorities to trust.
 */
export function openFolder(path: string, { authorityFolder = path, roots = '' } = {}): ProxyFolder {
  for (const folder of new Set([path, authorityFolder])) makePrivate(folder)
  const authority = loadAuthority(authorityFolder)
  const tokenFile = join(path, 'token')
  createFile(tokenFile, randomToken(TOKEN_BYTES))
  const certificates = { own: join(path, 'ca.pem'), all: join(path, 'roots.pem') }
  replaceFile(certificates.own, authority.pem)
  replaceFile(certificates.all, `${[...rootCertificates, roots.trim(), authority.pem].join('\n')}`)
  const token = readFile(tokenFile) ?? ''
  if (token.length < TOKEN_BYTES) throw new Error(`${tokenFile} is damaged. Delete it; a new one is made.`)
  return { path, token, authority, certificates }
}

export function readLastStart(path: string): LastStart {
  try {
    const { port, gateway }: { port?: unknown; gateway?: unknown } = {
      ...JSON.parse(readFile(join(path, 'last-start.json')) ?? '{}'),
    }
    return {
      port: typeof port === 'number' ? port : DEFAULT_PORT,
      gateway: typeof gateway === 'string' ? gateway : null,
    }
  } catch {
    rmSync(join(path, 'last-start.json'), { force: true })
    return { port: DEFAULT_PORT, gateway: null }
  }
}

export function writeLastStart(path: string, start: LastStart): void {
  replaceFile(join(path, 'last-start.json'), JSON.stringify(start))
}
