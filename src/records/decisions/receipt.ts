/**
 * Receipts: a decision's content as a compact JWS. Ed25519 is deterministic, so a receipt can be created at any time
 * and is always identical. @see https://www.rfc-editor.org/rfc/rfc7515
 */
import { compactVerify, createLocalJWKSet } from 'jose'
import { z } from 'zod'
import type { DecisionContent } from '../../books/spending/decision-content.ts'
import { canonicalJson, type Json, toJson } from '../../core/base/json.ts'
import { signJws } from '../../core/base/jws.ts'
import { contentHash } from './chain.ts'
import type { KeySet, SigningKey } from './signing-key.ts'

export const RECEIPT_TYPE = 'bursar-decision+jwt'

/** Receipt claims except the issuer. `found`, an operation's internal notes, is covered by the hash but omitted. */
export function receiptClaims(content: DecisionContent): Record<string, unknown> {
  return { ...content, facts: withoutNotes(content.facts), contentHash: contentHash(content) }
}

/** @param issuer the gateway's origin. */
export async function signReceipt(
  key: SigningKey,
  { issuer, content }: { issuer: string; content: DecisionContent },
): Promise<string> {
  return signJws(key, { type: RECEIPT_TYPE, payload: receiptPayload(issuer, content) })
}

/** A receipt without its payload. @see https://www.rfc-editor.org/rfc/rfc7515#appendix-F */
export function detachPayload(receipt: string): string {
  const [header, , signature] = receipt.split('.')
  return `${header}..${signature}`
}

/** The receipt of a decision, with the payload that its content has now: after any change, its signature is no longer valid. */
export function attachPayload(
  detached: string,
  { issuer, content }: { issuer: string; content: DecisionContent },
): string {
  const payload = Buffer.from(receiptPayload(issuer, content)).toString('base64url')
  return detached.replace('..', `.${payload}.`)
}

function receiptPayload(issuer: string, content: DecisionContent): string {
  return canonicalJson({ iss: issuer, ...receiptClaims(content) })
}

/** Verifies that a receipt has a signature of this gateway and says what the decision says. */
export async function isReceiptValid(
  keySet: KeySet,
  content: DecisionContent,
  receipt: string,
): Promise<boolean> {
  const verified = await compactVerify(receipt, createLocalJWKSet(keySet), { algorithms: ['EdDSA'] }).catch(
    () => null,
  )
  if (verified === null) return false
  const { iss: _issuer, ...claims } = said.parse(JSON.parse(Buffer.from(verified.payload).toString()))
  return canonicalJson(toJson(claims)) === canonicalJson(toJson(receiptClaims(content)))
}

const said = z.looseObject({ iss: z.string() })

function withoutNotes(facts: DecisionContent['facts']): Json {
  if (typeof facts !== 'object' || facts === null || Array.isArray(facts)) return facts
  return Object.fromEntries(Object.entries(facts).filter(([name]) => name !== 'found'))
}
