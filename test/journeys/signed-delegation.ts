/** Delegations that a parent signs by itself: with `jose`, and with nothing but Node's own cryptography. */
import { randomUUID, sign as signBytes } from 'node:crypto'
import { type CompactJWSHeaderParameters, CompactSign } from 'jose'
import type { Agent } from './agent.ts'

export type Claims = Readonly<Record<string, unknown>>

export const childPolicy = {
  perTransaction: { max: '1' },
  dailyBudget: { max: '3' },
  categories: { allow: ['transfer'] },
}

export const nowSeconds = () => Math.floor(Date.now() / 1000)

/** One end for all: a child that is signed a second later than its parent must not end a second later. */
const end = nowSeconds() + 3600

/** Claims of a delegation of about an hour. @param changes replaces claims; undefined leaves one out. */
export function buildClaims(
  { parent, child, origin }: { parent: Agent; child: Agent; origin: string },
  changes: Claims = {},
): Claims {
  return {
    iss: parent.keyId,
    aud: origin,
    jti: randomUUID(),
    iat: nowSeconds(),
    exp: end,
    cnf: { jwk: child.jwk },
    name: 'Helper',
    scopes: ['wallets:read', 'wallets:transfer', 'agents:delegate'],
    policy: childPolicy,
    ...changes,
  }
}

/** Signs with `jose`. @param header replaces parameters. */
export function signWithJose(
  parent: Agent,
  claims: Claims,
  header: Partial<CompactJWSHeaderParameters> = {},
): Promise<string> {
  return new CompactSign(new TextEncoder().encode(JSON.stringify(claims)))
    .setProtectedHeader({ typ: 'bursar-delegation+jwt', alg: 'EdDSA', kid: parent.keyId, ...header })
    .sign(parent.privateKey)
}

/** Signs with Node's own cryptography. @param header replaces parameters. */
export function signByHand(parent: Agent, claims: Claims, header: Claims = {}): string {
  const encode = (value: Claims) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const head = { kid: parent.keyId, alg: 'EdDSA', typ: 'bursar-delegation+jwt', ...header }
  const signed = `${encode(head)}.${encode(claims)}`
  return `${signed}.${signBytes(null, Buffer.from(signed), parent.privateKey).toString('base64url')}`
}
