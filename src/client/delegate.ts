/** Signs delegations with an agent's key, without asking the gateway: compact JWS with Ed25519, on Web Crypto. */
import type { AgentKey } from './sign.ts'

/** What a new agent is given. It can never spend more than its parent, whatever these terms say. */
export interface DelegationTerms {
  /** Origin of the gateway, as its operator configured it. */
  readonly url: string
  readonly name: string
  /** Scopes that the parent has too; the parent needs `agents:delegate`. */
  readonly scopes: readonly string[]
  /** Spend policy; required with a scope that can spend. */
  readonly policy?: object | undefined
  /** End, at most 30 days away. */
  readonly expiresAt: Date
  /** Sets `policy.totalBudget.max` aside at the first use. */
  readonly earmark?: boolean | undefined
  /** Label of all its spends. */
  readonly task?: string | undefined
}

/** Key of a new agent. @property delegation the chain that it sends, root first. */
export interface DelegatedKey extends AgentKey {
  readonly name: string
  readonly publicKey: { readonly kty: string; readonly crv: string; readonly x: string }
  readonly delegation: string
}

const ED25519 = { name: 'Ed25519' }

/**
 * Makes a key below another one. The gateway learns of it with its first request, and refuses it if the delegation is wider than
 * the parent. @param parent a registered agent's key, or one that was made like this.
 */
export async function delegate(
  parent: AgentKey,
  { url, expiresAt, ...terms }: DelegationTerms,
): Promise<DelegatedKey> {
  const pair = await crypto.subtle.generateKey(ED25519, true, ['sign', 'verify'])
  if (!('privateKey' in pair)) throw new TypeError('This runtime makes no Ed25519 keys.')
  const { kty = '', crv = '', x = '', d = '' } = await crypto.subtle.exportKey('jwk', pair.privateKey)
  const publicKey = { kty, crv, x }
  const claims = {
    iss: parent.keyId,
    aud: new URL(url).origin,
    jti: crypto.randomUUID(),
    iat: Math.floor(Date.now() / 1000),
    exp: Math.floor(expiresAt.getTime() / 1000),
    cnf: { jwk: publicKey },
    ...terms,
  }
  const header = { typ: 'bursar-delegation+jwt', alg: 'EdDSA', kid: parent.keyId }
  const signed = `${base64url(JSON.stringify(header))}.${base64url(JSON.stringify(claims))}`
  const { kty: parentKty, crv: parentCrv, x: parentX, d: parentD } = parent.privateKey
  const jwk = { kty: parentKty, crv: parentCrv, x: parentX, d: parentD }
  const key = await crypto.subtle.importKey('jwk', jwk, ED25519, false, ['sign'])
  const signature = new Uint8Array(await crypto.subtle.sign(ED25519, key, new TextEncoder().encode(signed)))
  const own = `${signed}.${encode(signature)}`
  const thumbprint = await crypto.subtle.digest(
    'SHA-256',
    new TextEncoder().encode(JSON.stringify({ crv, kty, x })),
  )
  return {
    name: terms.name,
    keyId: encode(new Uint8Array(thumbprint)),
    privateKey: { ...publicKey, d },
    publicKey,
    delegation: parent.delegation === undefined ? own : `${parent.delegation}, ${own}`,
  }
}

function base64url(text: string): string {
  return encode(new TextEncoder().encode(text))
}

function encode(bytes: Uint8Array): string {
  let characters = ''
  for (const byte of bytes) characters += String.fromCharCode(byte)
  return btoa(characters).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}
