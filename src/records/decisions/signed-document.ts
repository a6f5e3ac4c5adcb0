/** Documents signed with the key of the receipts: a compact JWS over their canonical JSON. */
import { CompactSign, compactVerify, createLocalJWKSet } from 'jose'
import { canonicalJson } from '../../core/base/json.ts'
import type { KeySet, SigningKey } from './signing-key.ts'

/** @param type `typ` of the JWS. */
export function signDocument(
  { privateKey, keyId }: SigningKey,
  { type, document }: { type: string; document: unknown },
): Promise<string> {
  return new CompactSign(Buffer.from(canonicalJson(document)))
    .setProtectedHeader({ alg: 'EdDSA', kid: keyId, typ: type })
    .sign(privateKey)
}

/** Checks that a JWS is one of the keys' over exactly this document. */
export async function isSignedDocument(
  jws: string,
  { type, document, keySet }: { type: string; document: unknown; keySet: KeySet },
): Promise<boolean> {
  const keys = createLocalJWKSet({ keys: [...keySet.keys] })
  try {
    const { payload, protectedHeader } = await compactVerify(jws, keys, { algorithms: ['EdDSA'] })
    return protectedHeader.typ === type && Buffer.from(payload).toString() === canonicalJson(document)
  } catch {
    return false
  }
}
