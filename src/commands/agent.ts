/** `bursar agent new | register | delegate | sign | call`: creates agent keys, and signs and sends requests (RFC 9421). */
import { systemClock } from '../core/base/clock.ts'
import { rootCause } from '../core/failures/root-cause.ts'
import { signRequest } from '../people/identity/keys/sign-request.ts'
import { newKey, readKeyFile, writeKeyFile } from './key-file.ts'
import { parseUrl } from './parse-url.ts'
import { registerAgent } from './register-agent.ts'

export interface AgentOptions {
  readonly url?: string | undefined
  readonly key?: string | undefined
  readonly name?: string | undefined
  readonly out?: string | undefined
  readonly data?: string | undefined
  readonly 'idempotency-key'?: string | undefined
}

const usage =
  'Usage: bursar agent new --name NAME --out FILE | agent register --name NAME --out FILE [--url URL] | agent delegate --key FILE --name NAME --out FILE --data JSON [--url URL] | agent sign|call --key FILE METHOD PATH [--url URL] [--data JSON] [--idempotency-key KEY]'

/** @returns the exit code: 0, or 1 when the gateway rejected the call. @throws Error with the usage. */
export async function agent([action, ...rest]: readonly string[], options: AgentOptions): Promise<number> {
  if (action === 'new' && options.name !== undefined && options.out !== undefined) {
    const key = newKey()
    writeKeyFile(options.out, options.name, key)
    const { keyId, publicKey } = key
    process.stdout.write(`${JSON.stringify({ name: options.name, keyId, publicKey }, null, 2)}\n`)
    process.stderr.write(
      `The private key is in ${options.out}. Register the public key with POST /api/agents/keys.\n`,
    )
    return 0
  }
  const gateway = options.url ?? (process.env.BURSAR_URL || undefined)
  if (action === 'register' && options.name !== undefined && options.out !== undefined)
    return registerAgent({ origin: parseUrl(gateway ?? '/').origin, name: options.name, out: options.out })
  const { key, name, out, data } = options
  if (
    action === 'delegate' &&
    key !== undefined &&
    name !== undefined &&
    out !== undefined &&
    data !== undefined
  ) {
    const { delegateAgent } = await import('./delegate-agent.ts')
    return delegateAgent({ origin: parseUrl(gateway ?? '/').origin, key, name, out, data })
  }
  const [method, url] = rest
  if (
    (action !== 'sign' && action !== 'call') ||
    options.key === undefined ||
    method === undefined ||
    url === undefined
  )
    throw new Error(usage)
  const request = await signedRequest(options.key, {
    method: method.toUpperCase(),
    url: parseUrl(url, gateway),
    options,
  })
  if (action === 'sign') {
    process.stdout.write(
      Object.entries(request.headers)
        .map(([name, value]) => `${name}: ${value}\n`)
        .join(''),
    )
    return 0
  }
  const response = await fetch(request.url, {
    method: request.method,
    headers: request.headers,
    body: request.body,
  }).catch((error: unknown) => {
    throw new Error(`The gateway at ${request.url.origin} is unreachable: ${rootCause(error)}.`)
  })
  process.stdout.write(`${await response.text()}\n`)
  return response.ok ? 0 : 1
}

async function signedRequest(
  keyPath: string,
  { method, url, options }: { method: string; url: URL; options: AgentOptions },
) {
  const body = options.data === undefined ? null : Buffer.from(options.data)
  const signed = await signRequest(readKeyFile(keyPath), {
    origin: url.origin,
    method,
    target: `${url.pathname}${url.search}`,
    body,
    idempotencyKey: options['idempotency-key'],
    at: systemClock(),
  })
  return {
    method,
    url,
    body,
    headers: { ...signed, ...(body === null ? {} : { 'content-type': 'application/json' }) },
  }
}
