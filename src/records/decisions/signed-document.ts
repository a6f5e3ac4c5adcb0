/** Documents signed with the key of the receipts: a compact JWS over their canonical JSON. */
import { compactVerify, createLocalJWKSet } from 'jose'
import { canonicalJson } from '../../core/base/json.ts'
import { signJws } from '../../core/base/jws.ts'
import type { KeySet, SigningKey } from './signing-key.ts'

/** @param type `typ` of the JWS. */
export function signDocument(
  key: SigningKey,
  { type, document }: { type: string; document: unknown },
): Promise<string> {
  return signJws(key, { type, payload: canonicalJson(document) })
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
