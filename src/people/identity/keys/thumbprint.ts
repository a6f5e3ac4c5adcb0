import { createHash } from 'node:crypto'

/**
 * RFC 7638 thumbprint of an Ed25519 public key (RFC 8037): its `keyid`. @param x the 32 bytes as base64url.
 * @see https://www.rfc-editor.org/rfc/rfc7638
 */
export function computeThumbprint(x: string): string {
  return createHash('sha256')
    .update(JSON.stringify({ crv: 'Ed25519', kty: 'OKP', x }))
    .digest('base64url')
}
