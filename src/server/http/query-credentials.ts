/** Rejects credentials in query strings, which end up in logs, histories and referrers. Spec 5.5.4. */
import { Failure } from '../../core/failures/failure.ts'

/** Parameter names of credentials, in lower case without `-` and `_`. */
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
  'bursarrenewal',
  'hostbursarrenewal',
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
  'sessionid',
  'sid',
  'sig',
  'signatureinput',
  'code',
  'totp',
  'otp',
  'onetimecode',
  'mfacode',
  'pin',
  'assertion',
  'clientassertion',
  'devicecode',
  'usercode',
])

/** Where identity providers return people with a code that is worthless without the state of their browser. RFC 6749, section 4.1.2. */
const RETURNS = '/sign-in/'

/** Patterns of our credentials in any text: an API key, a JWT, an encoded x402 payment. */
const shapes = /bsk_(?:sandbox|live)_[\w-]*|eyJ[\w-]{4,}\.[\w-]+\.[\w-]*|eyJ4NDAyVmVyc2lvbi[\w+/=-]*/g

/** Redacts everything that looks like a credential, for logs and errors. */
export function withoutCredentials(text: string): string {
  return text.replaceAll(shapes, '[credential]')
}

/**
 * Redacts a path for the log, including the id of a consent interaction, from which its browser cookie is derived, and
 * the code of an agent's registration or a device's sign-in, with which any owner can decide it, and the token of a request's page.
 */
export function loggablePath(path: string): string {
  return withoutCredentials(path)
    .replace(/(?<=^\/oauth\/(?:consent|authorize)\/)[\w-]+/, '[interaction]')
    .replace(
      /(?<=^\/(?:agents\/connect|api\/agents\/registrations|devices|api\/auth\/devices)\/)[\w-]+/,
      '[code]',
    )
    .replace(/(?<=^\/pay\/)[\w-]+/, '[token]')
    .slice(0, 200)
}

/** @param target the raw path and query. @throws Failure `credential_in_query`, which names the parameter and never its value. */
export function refuseQueryCredentials(target: string): void {
  const at = target.indexOf('?')
  if (at === -1) return
  for (const [name, value] of new URLSearchParams(target.slice(at + 1))) {
    const plain = name.toLowerCase().replaceAll(/[^a-z0-9]/g, '')
    const isCredential =
      (names.has(plain) && !(plain === 'code' && target.startsWith(RETURNS))) ||
      [name, value].some((text) => withoutCredentials(text) !== text)
    if (isCredential)
      throw new Failure(
        'credential_in_query',
        `The query parameter "${withoutCredentials(name).slice(0, 32)}" looks like a credential; it was rejected.`,
        {
          hint: 'Send credentials in headers only, and replace this one: query strings are often logged.',
        },
      )
  }
}
