/**
 * One-time codes: six digits that prove control of a destination, for ten minutes, five attempts and one use. Each client
 * that asks has one open code for a destination, which is sent again while it is open, so that no client ends another's
 * code. The code is compared by an HMAC bound to its challenge, and encrypted for sending it again. @see https://pages.nist.gov/800-63-4/sp800-63b.html#ooba
 */
import { timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { type NewId, randomDigits } from '../../../core/base/ids.ts'
import { keyedHash, seal, unseal } from '../../../core/base/seal.ts'
import { Failure } from '../../../core/failures/failure.ts'
import { type Channel, channels } from '../../../providers/messages/port.ts'
import type { Connection, Statement } from '../../../storage/database.ts'
import {
  closeChallenges,
  countChallengeAttempt,
  findOpenChallenge,
  openChallenge,
  takeChallenge,
} from '../challenges.ts'
import type { Asker } from './asker.ts'
import { type Destination, sealAddress } from './destinations.ts'

export type CodeKind = 'otp' | 'recovery'

export interface CodeSettings {
  readonly dataKey: Uint8Array
}

/** Proof from a correct code. */
export interface VerifiedDestination {
  readonly hash: string
  readonly channel: Channel
  /** Masked form for display. */
  readonly masked: string
  /** Account of the code; null for the destination's own account. */
  readonly accountId: string | null
  /** See {@link sealAddress}. */
  readonly sealedAddress: string
}

/** Lifetime of a code in seconds. */
const CODE_SECONDS = 10 * 60
const CODE_DIGITS = 6
const MAX_ATTEMPTS = 5

const facts = z.object({
  codeHash: z.string(),
  /** Base64url. Absent in challenges of the version before. */
  sealedCode: z.string().optional(),
  /** The destination's keyed hash. Absent in challenges of the version before, whose subject it is. */
  hash: z.string().optional(),
  channel: z.enum(channels),
  masked: z.string(),
  sealedAddress: z.string(),
})

// Serializes concurrent starts, which would otherwise leave two open codes.
const lockSubject: Statement = {
  name: 'identity_lock_code_subject',
  text: 'select pg_advisory_xact_lock(hashtextextended($1, 0))',
}

interface CodeRequest {
  readonly kind: CodeKind
  readonly destination: Destination
  readonly asker: Pick<Asker, 'id'>
  readonly at: Date
}

export interface OpenCode {
  readonly challengeId: string
  readonly code: string
  readonly expiresAt: Date
}

/** Finds the asker's open code with attempts left, to send it again. */
export async function findOpenCode(
  { database, settings }: { database: Connection; settings: CodeSettings },
  { kind, at, ...asked }: CodeRequest,
): Promise<OpenCode | null> {
  const subject = hashSubject(settings, asked)
  const found = await findOpenChallenge(database, { kind, subject, now: at, most: MAX_ATTEMPTS })
  if (found === undefined) return null
  const { sealedCode } = facts.parse(found.facts)
  if (sealedCode === undefined) return null
  const { id: challengeId, expiresAt } = found
  const code = unseal(settings.dataKey, buildSealContext(challengeId), Buffer.from(sealedCode, 'base64url'))
  return { challengeId, code, expiresAt }
}

/** Creates a code for a destination and closes the asker's older ones. Call it in a transaction; sends nothing. */
export async function openCode(
  { database, newId, settings }: { database: Connection; newId: NewId; settings: CodeSettings },
  { kind, destination, asker, accountId = null, at }: CodeRequest & { accountId?: string | null },
): Promise<OpenCode> {
  const { hash, channel, masked } = destination
  const subject = hashSubject(settings, { destination, asker })
  await database.call(lockSubject, [`${kind}:${subject}`])
  await closeChallenges(database, { kind, subject })
  const [id, code] = [newId('chal', at), randomDigits(CODE_DIGITS)]
  const codeHash = hashCode(settings, id, code)
  const sealedCode = Buffer.from(seal(settings.dataKey, buildSealContext(id), code)).toString('base64url')
  const sealedAddress = sealAddress(settings, destination)
  const facts = { codeHash, sealedCode, hash, channel, masked, sealedAddress }
  const { expiresAt } = await openChallenge(
    { database, newId },
    { id, kind, subject, accountId, facts, at, seconds: CODE_SECONDS },
  )
  return { challengeId: id, code, expiresAt }
}

/**
 * Verifies a code. Failures count against the code only, because callers can try codes for any address and must not
 * be able to lock its account. A correct code stays open until {@link consumeCode}. @throws Failure `unauthenticated`,
 * committed.
 */
export async function verifyCode(
  { database, settings }: { database: Connection; settings: CodeSettings },
  { kind, challengeId, code, now }: { kind: CodeKind; challengeId: string; code: string; now: Date },
): Promise<VerifiedDestination> {
  const challenge = await countChallengeAttempt(database, { kind, id: challengeId, now, most: MAX_ATTEMPTS })
  if (challenge === undefined) throw codeRefused()
  const { codeHash, hash = challenge.subject, ...destination } = facts.parse(challenge.facts)
  const given = hashCode(settings, challengeId, code)
  if (!timingSafeEqual(Buffer.from(given), Buffer.from(codeHash))) {
    throw codeRefused()
  }
  const { channel, masked, sealedAddress } = destination
  return { hash, accountId: challenge.accountId, channel, masked, sealedAddress }
}

/** Consumes a code. @throws Failure `unauthenticated`, committed, when it was consumed concurrently. */
export async function consumeCode(
  database: Connection,
  { kind, challengeId, now }: { kind: CodeKind; challengeId: string; now: Date },
): Promise<void> {
  const challenge = await takeChallenge(database, { kind, by: { id: challengeId }, now })
  if (challenge === undefined) throw codeRefused()
}

/** The single failure for wrong, expired, used and unknown codes, so that responses reveal nothing. */
export function codeRefused(): Failure {
  return new Failure('unauthenticated', 'The code is wrong, already used or expired.', {
    isCommitted: true,
    hint: 'Check the newest message, or request a new code. A code allows five attempts within ten minutes.',
  })
}

/** Keyed, because the asker may be a network address. */
function hashSubject(
  { dataKey }: CodeSettings,
  { destination, asker }: Pick<CodeRequest, 'destination' | 'asker'>,
): string {
  return keyedHash(dataKey, 'code asker', `${destination.hash} ${asker.id}`)
}

function buildSealContext(challengeId: string) {
  return { purpose: 'code', owner: challengeId }
}

function hashCode({ dataKey }: CodeSettings, challengeId: string, code: string): string {
  return keyedHash(dataKey, 'otp', `${challengeId}:${code}`)
}
