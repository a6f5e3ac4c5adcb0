/**
 * One-time codes: six digits that prove control of a destination. Only the newest code counts, for ten minutes, five
 * attempts and one use. The stored value is an HMAC bound to the challenge, so a precomputed table of all codes
 * cannot match it. @see https://pages.nist.gov/800-63-4/sp800-63b.html#ooba
 */
import { timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { type NewId, randomDigits } from '../../base/ids.ts'
import { keyedHash } from '../../base/seal.ts'
import { Failure } from '../../failures/failure.ts'
import { type Channel, channels } from '../../providers/messages.ts'
import type { Connection, Statement } from '../../storage/database.ts'
import { closeChallenges, countChallengeAttempt, openChallenge, takeChallenge } from '../challenges.ts'
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
export const CODE_SECONDS = 10 * 60
const CODE_DIGITS = 6
const MAX_ATTEMPTS = 5

const facts = z.object({
  codeHash: z.string(),
  channel: z.enum(channels),
  masked: z.string(),
  sealedAddress: z.string(),
})

// Serializes concurrent starts, which would otherwise leave two open codes.
const lockSubject: Statement = {
  name: 'identity_lock_code_subject',
  text: 'select pg_advisory_xact_lock(hashtextextended($1, 0))',
}

/** Creates a code for a destination and closes its older ones. Call it in a transaction; sends nothing. */
export async function openCode(
  { database, newId, settings }: { database: Connection; newId: NewId; settings: CodeSettings },
  {
    kind,
    destination,
    accountId = null,
    at,
  }: { kind: CodeKind; destination: Destination; accountId?: string | null; at: Date },
): Promise<{ challengeId: string; code: string; expiresAt: Date }> {
  const { hash: subject, channel, masked } = destination
  await database.call(lockSubject, [`${kind}:${subject}`])
  await closeChallenges(database, { kind, subject })
  const [id, code] = [newId('chal', at), randomDigits(CODE_DIGITS)]
  const codeHash = codeHashOf(settings, id, code)
  const sealedAddress = sealAddress(settings, destination)
  const facts = { codeHash, channel, masked, sealedAddress }
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
  const { codeHash, ...destination } = facts.parse(challenge.facts)
  const given = codeHashOf(settings, challengeId, code)
  if (!timingSafeEqual(Buffer.from(given), Buffer.from(codeHash))) {
    throw codeRefused()
  }
  return { hash: challenge.subject, accountId: challenge.accountId, ...destination }
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

function codeHashOf({ dataKey }: CodeSettings, challengeId: string, code: string): string {
  return keyedHash(dataKey, 'otp', `${challengeId}:${code}`)
}
