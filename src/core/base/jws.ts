/** Signs a payload as a compact JWS by Ed25519, wherever the key is. @see https://www.rfc-editor.org/rfc/rfc7515#section-7.1 */

/** @property keyId `kid` of the header. */
export interface JwsSigner {
  readonly keyId: string
  sign(data: Uint8Array): Promise<Uint8Array>
}

/** @param type `typ` of the header. */
export async function signJws(
  { keyId, sign }: JwsSigner,
  { type, payload }: { readonly type: string; readonly payload: string },
): Promise<string> {
  const encode = (part: string | Uint8Array) => Buffer.from(part).toString('base64url')
  const signed = `${encode(JSON.stringify({ alg: 'EdDSA', kid: keyId, typ: type }))}.${encode(payload)}`
  return `${signed}.${encode(await sign(Buffer.from(signed)))}`
}
