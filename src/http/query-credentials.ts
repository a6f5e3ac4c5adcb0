/** Credentials never travel in a query string: it ends up in logs, histories and referrers. Spec 5.5.4. */
import { Failure } from '../failures/failure.ts'

/** Names that stand for a credential, in lower case and without `-` and `_`. */
const names = new Set([
  'token',
  'accesstoken',
  'refreshtoken',
  'idtoken',
  'sessiontoken',
  'apikey',
  'key',
  'secret',
  'clientsecret',
  'password',
  'signature',
  'session',
  'bursarsession',
  'hostbursarsession',
  'authorization',
  'bearer',
  'xpayment',
  'payment',
  'xapikey',
  'auth',
  'authtoken',
  'jwt',
  'cookie',
  'credential',
  'credentials',
  'passkey',
  'privatekey',
  'recoverycode',
  'paymentsignature',
])

/** The shapes of our credentials, wherever they stand in a text: an API key, a JWT, an encoded x402 payment. */
const shapes = /bsk_(?:sandbox|live)_[\w-]*|eyJ[\w-]{4,}\.[\w-]+\.[\w-]*|eyJ4NDAyVmVyc2lvbi[\w+/=-]*/g

/** A text for logs and errors, with whatever has the shape of a credential taken out. */
export function withoutCredentials(text: string): string {
  return text.replaceAll(shapes, '[credential]')
}

/** A path for the log: also without the name of a consent that is under way, which its browser's cookie is made of. */
export function loggablePath(path: string): string {
  return withoutCredentials(path)
    .replace(/(?<=^\/oauth\/(?:consent|authorize)\/)[\w-]+/, '[interaction]')
    .slice(0, 200)
}

/** @param target the raw path and query. @throws Failure `credential_in_query`, which names the parameter and never its value. */
export function refuseQueryCredentials(target: string): void {
  const at = target.indexOf('?')
  if (at === -1) return
  for (const [name, value] of new URLSearchParams(target.slice(at + 1))) {
    const isCredential =
      names.has(name.toLowerCase().replaceAll(/[^a-z0-9]/g, '')) ||
      [name, value].some((text) => withoutCredentials(text) !== text)
    if (isCredential)
      throw new Failure(
        'credential_in_query',
        `The query parameter "${withoutCredentials(name).slice(0, 32)}" looks like a credential; it was not read.`,
        {
          hint: 'Send credentials in headers only, and replace this one: a query string is often logged on the way.',
        },
      )
  }
}
