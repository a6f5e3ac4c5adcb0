/** The proxy's certificate authority: it vouches for hosts to the programs that were told to trust it, and to nobody else. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import { createSecureContext, type SecureContext } from 'node:tls'
import { systemClock } from '../../core/base/clock.ts'
import { newCertificateKey, writeCertificate } from './certificate.ts'
import { createFile, readFile, replaceFile } from './private-files.ts'

const DAY_MS = 86_400_000
const AUTHORITY_DAYS = 365
const LEAF_DAYS = 30
/** A younger end is replaced by a new certificate. */
const MARGIN_DAYS = 7
/** Hosts whose certificates are kept: each holds some 50 kB. */
const MAX_HOSTS = 256
const NAME = 'Bursar proxy of this machine'

/** @property pem its certificate. */
export interface Authority {
  readonly pem: string
  readonly key: KeyObject
  readonly endsAt: Date
}

/**
 * Loads the authority of a folder, made by the first process that needs it and again before it ends. Key and certificate are
 * one file, so that they always belong together.
 */
export function loadAuthority(folder: string): Authority {
  const path = join(folder, 'authority.pem')
  const found = readAuthority(readFile(path))
  const isUsable = found !== null && found.endsAt.getTime() > addDays(MARGIN_DAYS).getTime()
  if (isUsable) return found
  const made = writeAuthority()
  if (found === null) createFile(path, made)
  else replaceFile(path, made)
  const authority = readAuthority(readFile(path))
  if (authority === null) throw new Error(`${path} is damaged. Delete it; a new one is made.`)
  return authority
}

function readAuthority(text: string | null): Authority | null {
  if (text === null) return null
  const at = text.indexOf('-----BEGIN CERTIFICATE-----')
  try {
    const pem = text.slice(at)
    return {
      pem,
      key: createPrivateKey(text.slice(0, at)),
      endsAt: new Date(new X509Certificate(pem).validTo),
    }
  } catch {
    return null
  }
}

function writeAuthority(): string {
  const key = newCertificateKey()
  const pem = writeCertificate({
    key,
    name: NAME,
    host: null,
    authority: { key, name: NAME },
    notBefore: addDays(-1),
    notAfter: addDays(AUTHORITY_DAYS),
  })
  return `${String(key.export({ type: 'pkcs8', format: 'pem' }))}${pem}`
}

function addDays(days: number): Date {
  return new Date(systemClock().getTime() + days * DAY_MS)
}

/** Creates a function that gives a host its certificate. All hosts share a key, which lives as long as the process. */
export function createLeaves({ key: authorityKey, endsAt }: Authority): (host: string) => SecureContext {
  const key = newCertificateKey()
  const made = new Map<string, { readonly context: SecureContext; readonly until: Date }>()
  return (host) => {
    const found = made.get(host)
    if (found !== undefined && found.until.getTime() > systemClock().getTime()) return found.context
    const notAfter = new Date(Math.min(addDays(LEAF_DAYS).getTime(), endsAt.getTime()))
    const cert = writeCertificate({
      key,
      name: 'Bursar proxy',
      host,
      authority: { key: authorityKey, name: NAME },
      notBefore: addDays(-1),
      notAfter,
    })
    const context = createSecureContext({ key: key.export({ type: 'pkcs8', format: 'pem' }), cert })
    const [oldest] = made.keys()
    if (made.size >= MAX_HOSTS && oldest !== undefined) made.delete(oldest)
    made.set(host, { context, until: new Date(notAfter.getTime() - MARGIN_DAYS * DAY_MS) })
    return context
  }
}
