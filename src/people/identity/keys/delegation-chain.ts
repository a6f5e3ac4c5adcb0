/**
 * Reads chains of delegations that their parents signed by themselves: compact JWS, root first. Everything here needs neither
 * the database nor a key, so that it comes before any signature is verified.
 * @see https://www.rfc-editor.org/rfc/rfc7515#section-7.1
 */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { type Policy, spendPolicy } from '../../../../policies/policy.ts'
import { isScope, type Scope } from '../../../../policies/scopes.ts'
import { canonicalJson, parseJson } from '../../../core/base/json.ts'
import { listOriginNames } from '../../../core/base/origins.ts'
import { taskLabel } from '../../../core/base/task-label.ts'
import { Failure } from '../../../core/failures/failure.ts'
import { isEd25519PublicKey } from './agent-keys.ts'
import { MAX_DEPTH } from './delegations.ts'
import { grantMembers, publicJwk, refineGrant } from './key-grant.ts'
import { computeThumbprint } from './thumbprint.ts'

/** `typ` of a delegation. */
const TYPE = 'bursar-delegation+jwt'
/** The headers of a request have 16 KiB in all. */
const MAX_LENGTH = 16_384
/** Days that a delegation lasts at most. */
const MAX_DAYS = 30
/** Tolerance for the clock of the parent. */
const SKEW_MS = 30_000
/** Digits of an Ed25519 signature in base64url. */
const SIGNATURE_LENGTH = 86

type DelegationReason =
  | 'signature'
  | 'expired'
  | 'audience'
  | 'depth'
  | 'wider'
  | 'revoked'
  | 'unknown_parent'
  | 'replayed'

const hints: Readonly<Record<DelegationReason, string>> = {
  signature:
    'Sign a compact JWS (typ "bursar-delegation+jwt", alg EdDSA, kid and iss the thumbprint of the parent’s key), and the request with the key in the last "cnf".',
  expired: 'Ask the parent for a new delegation; it lasts at most 30 days.',
  audience: 'A delegation is good at the gateway that its "aud" names.',
  depth: 'Delegate from a key nearer to the root.',
  wider: 'A key can give others only what it has itself, and only with the scope agents:delegate.',
  revoked: 'Ask for a new delegation to a new key.',
  unknown_parent: 'The chain starts with the delegation of a key that its owner has registered here.',
  replayed: 'Give every delegation a "jti" of its own.',
}

/** Builds the refusal of a chain. @param place of the delegation in the chain, from 0; null: the whole chain. */
export function delegationInvalid(reason: DelegationReason, place: number | null, what: string): Failure {
  const subject = place === null ? 'The chain of delegations' : `Delegation ${place + 1} of the chain`
  return new Failure('delegation_invalid', `${subject} ${what}.`, { reason, hint: hints[reason] })
}

/** A delegation whose signature is not verified yet. */
export interface SignedDelegation {
  /** Thumbprints of the parent's key and of the key that it names. */
  readonly issuer: string
  readonly subject: string
  readonly publicKey: string
  readonly jti: string
  /** SHA-256 of the claims' canonical JSON, in hex. */
  readonly claimsHash: string
  readonly name: string
  readonly scopes: readonly Scope[]
  readonly policy: Policy | null
  readonly expiresAt: Date
  readonly isEarmarked: boolean
  readonly task: string | null
  readonly signedBytes: Uint8Array
  readonly signature: Uint8Array
}

const thumbprint = z.string().regex(/^[\w-]{43}$/, 'must be a thumbprint')

const header = z.strictObject({ typ: z.literal(TYPE), alg: z.literal('EdDSA'), kid: thumbprint })

const claims = z
  .strictObject({
    iss: thumbprint,
    // Judged apart, because their refusals have reasons of their own.
    aud: z.unknown().optional(),
    exp: z.unknown().optional(),
    jti: z.string().min(1).max(128),
    iat: z.int().min(0),
    cnf: z.strictObject({
      jwk: publicJwk.refine(({ x }) => isEd25519PublicKey(x), 'must be an Ed25519 public key'),
    }),
    name: grantMembers.name,
    scopes: z.array(z.string().max(64)).max(32),
    policy: spendPolicy.nullish(),
    earmark: z.boolean().default(false),
    task: taskLabel.optional(),
  })
  .superRefine(({ scopes, policy, earmark }, context) => {
    refineGrant({ scopes: scopes.filter(isScope), policy }, context)
    if (earmark && policy?.totalBudget === undefined)
      context.addIssue({ code: 'custom', path: ['policy', 'totalBudget'], message: 'is required by earmark' })
  })

/**
 * Reads the value of `Bursar-Delegation`, and judges all that stands in it by itself: form, type, times, audience, and that each
 * delegation is of the key that the one before it names.
 * @throws Failure `delegation_invalid`.
 */
export function readChain(
  field: string,
  { origin, now }: { origin: string; now: Date },
): readonly [SignedDelegation, ...SignedDelegation[]] {
  if (field.length > MAX_LENGTH) throw delegationInvalid('signature', null, `is over ${MAX_LENGTH} bytes`)
  const texts = field.split(',')
  if (texts.length > MAX_DEPTH)
    throw delegationInvalid('depth', null, `has ${texts.length} generations; ${MAX_DEPTH} is the most`)
  const [root, ...others] = texts.map((text, place) => readDelegation(text.trim(), place, { origin, now }))
  if (root === undefined) throw delegationInvalid('signature', null, 'is empty')
  let above = root
  for (const [index, link] of others.entries()) {
    if (link.issuer !== above.subject)
      throw delegationInvalid('signature', index + 1, 'is not of the key that the one before it names')
    above = link
  }
  return [root, ...others]
}

function readDelegation(
  text: string,
  place: number,
  { origin, now }: { origin: string; now: Date },
): SignedDelegation {
  const [head = '', body = '', mac = '', ...more] = text.split('.')
  const signature = decode(mac)
  if (more.length > 0 || mac.length !== SIGNATURE_LENGTH || signature === undefined)
    throw delegationInvalid('signature', place, 'is not a compact JWS')
  const { kid } = parsePart(header, readPart(head, place), place)
  const written = readPart(body, place)
  const { iss, jti, aud, exp, iat, cnf, ...granted } = parsePart(claims, written, place)
  if (kid !== iss) throw delegationInvalid('signature', place, 'has a "kid" that is not its "iss"')
  if (!listOriginNames(origin).some((name) => name === aud))
    throw delegationInvalid('audience', place, 'is for another gateway')
  const { policy = null, scopes, name, earmark, task = null } = granted
  const expiresAt = requireCurrent({ iat, exp }, place, now)
  const unknown = scopes.find((scope) => !isScope(scope))
  if (unknown !== undefined) throw delegationInvalid('wider', place, 'has a scope that no key has')
  return {
    issuer: iss,
    subject: computeThumbprint(cnf.jwk.x),
    publicKey: cnf.jwk.x,
    jti,
    claimsHash: createHash('sha256').update(canonicalJson(written)).digest('hex'),
    name,
    scopes: [...new Set(scopes.filter(isScope))],
    policy,
    expiresAt,
    isEarmarked: earmark,
    task,
    signedBytes: Buffer.from(`${head}.${body}`),
    signature,
  }
}

function readPart(part: string, place: number): unknown {
  const bytes = decode(part)
  try {
    return parseJson(bytes === undefined ? '' : new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    throw delegationInvalid('signature', place, 'is not a compact JWS of JSON')
  }
}

/** Decodes base64url; undefined for all but the one way to write some bytes. */
function decode(text: string): Uint8Array | undefined {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? bytes : undefined
}

function parsePart<Part>(schema: z.ZodType<Part>, value: unknown, place: number): Part {
  const { data, error } = schema.safeParse(value)
  if (data !== undefined) return data
  const [issue] = error?.issues ?? []
  const at = issue?.path.join('.') ?? ''
  throw delegationInvalid('signature', place, `is malformed${at === '' ? '' : ` (${at.slice(0, 60)})`}`)
}

/** @returns the end of a delegation. @throws Failure `delegation_invalid` if it is missing, past, too far, or its start to come. */
function requireCurrent({ iat, exp }: { iat: number; exp: unknown }, place: number, now: Date): Date {
  const end = z.int().max(8_640_000_000_000).safeParse(exp)
  if (!end.success) throw delegationInvalid('expired', place, 'has no "exp" in whole seconds')
  if (iat * 1000 > now.getTime() + SKEW_MS) throw delegationInvalid('expired', place, 'begins in the future')
  if (end.data > iat + MAX_DAYS * 86_400)
    throw delegationInvalid('expired', place, `lasts more than ${MAX_DAYS} days`)
  const expiresAt = new Date(end.data * 1000)
  if (expiresAt <= now) throw delegationInvalid('expired', place, 'has ended')
  return expiresAt
}
