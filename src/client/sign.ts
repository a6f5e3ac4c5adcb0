/** Signs requests with an agent's key: RFC 9421 with Ed25519, on Web Crypto. `docs/signing.md` has the vector. */

/**
 * A key as `bursar agent new` writes it: JSON Web Keys (RFC 8037) beside their thumbprint.
 * @property delegation chain of signed delegations that made the key, root first: it is sent with every request.
 */
export interface AgentKey {
  readonly keyId: string
  readonly delegation?: string | undefined
  readonly privateKey: { readonly kty: string; readonly crv: string; readonly x: string; readonly d: string }
}

export interface SignedParts {
  readonly method: string
  readonly url: URL
  readonly body: Uint8Array<ArrayBuffer> | null
  readonly idempotencyKey: string | null
}

const LIFETIME_SECONDS = 300
const NONCE_BYTES = 18
const ED25519 = { name: 'Ed25519' }

/** Makes a signer. It gives the headers of a request, with a new nonce for each. */
export function createSigner({
  keyId,
  privateKey,
  delegation,
}: AgentKey): (parts: SignedParts) => Promise<Record<string, string>> {
  const { kty, crv, x, d } = privateKey
  const imported = crypto.subtle.importKey('jwk', { kty, crv, x, d }, ED25519, false, ['sign'])
  // A bad key fails the calls, each with its reason, and not the process.
  imported.catch(() => undefined)
  return async ({ method, url, body, idempotencyKey }) => {
    const digest = body === null ? null : new Uint8Array(await crypto.subtle.digest('SHA-256', body))
    const headers: Record<string, string> = {
      ...(digest === null ? {} : { 'content-digest': `sha-256=:${base64(digest)}:` }),
      ...(idempotencyKey === null ? {} : { 'idempotency-key': idempotencyKey }),
      ...(delegation === undefined ? {} : { 'bursar-delegation': delegation }),
    }
    const components = [
      ['@method', method],
      ['@authority', url.host],
      ['@path', url.pathname],
      ['@query', url.search === '' ? '?' : url.search],
      ...Object.entries(headers),
    ]
    const created = Math.floor(Date.now() / 1000)
    const nonce = base64(crypto.getRandomValues(new Uint8Array(NONCE_BYTES))).replace(/[+/]/g, '_')
    const names = components.map(([name]) => `"${name}"`).join(' ')
    const parameters = `(${names});created=${created};expires=${created + LIFETIME_SECONDS};nonce="${nonce}";keyid="${keyId}";tag="bursar"`
    const base = [
      ...components.map(([name, value]) => `"${name}": ${value}`),
      `"@signature-params": ${parameters}`,
    ].join('\n')
    const signature = await crypto.subtle.sign(ED25519, await imported, new TextEncoder().encode(base))
    return {
      ...headers,
      'signature-input': `sig1=${parameters}`,
      signature: `sig1=:${base64(new Uint8Array(signature))}:`,
    }
  }
}

function base64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
}
