/**
 * Receipts: a decision's content as a compact JWS. Ed25519 gives the same bytes the same signature, so a receipt can be
 * written at any time and is always the same one. @see https://www.rfc-editor.org/rfc/rfc7515
 */
import { CompactSign } from 'jose'
import { canonicalJson, type Json } from '../base/json.ts'
import type { DecisionContent } from '../spending/decision-content.ts'
import { contentHash } from './chain.ts'
import type { SigningKey } from './signing-key.ts'

/** The `typ` of a receipt. */
export const RECEIPT_TYPE = 'bursar-decision+jwt'

/** What a receipt says but for its issuer. `found`, an operation's working notes, is covered by the hash and not shown. */
export function receiptClaims(content: DecisionContent): Record<string, unknown> {
  return { ...content, facts: withoutNotes(content.facts), contentHash: contentHash(content) }
}

/** Signs a decision's receipt. @param issuer the gateway's origin. */
export async function signReceipt(
  { privateKey, keyId }: SigningKey,
  { issuer, content }: { issuer: string; content: DecisionContent },
): Promise<string> {
  const payload = canonicalJson({ iss: issuer, ...receiptClaims(content) })
  return new CompactSign(Buffer.from(payload))
    .setProtectedHeader({ alg: 'EdDSA', kid: keyId, typ: RECEIPT_TYPE })
    .sign(privateKey)
}

function withoutNotes(facts: DecisionContent['facts']): Json {
  if (typeof facts !== 'object' || facts === null || Array.isArray(facts)) return facts
  return Object.fromEntries(Object.entries(facts).filter(([name]) => name !== 'found'))
}
