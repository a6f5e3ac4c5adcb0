/**
 * One-time codes: six digits that show who reads a destination. Only the newest counts, for ten minutes, five tries and one
 * use. What is stored is an HMAC bound to the challenge, so that no table of a million codes fits two of them.
 * @see https://pages.nist.gov/800-63-4/sp800-63b.html#ooba
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

/** What a code is good for: to sign in, or to recover an account. */
export type CodeKind = 'otp' | 'recovery'

/** The settings behind codes. */
export interface CodeSettings {
  readonly dataKey: Uint8Array
}

/** What showing the right code proves. */
export interface VerifiedDestination {
  readonly hash: string
  readonly channel: Channel
  /** Masked, to be shown. */
  readonly masked: string
  /** The account that the code was opened for; null: the one that the destination signs in. */
  readonly accountId: string | null
  /** See {@link sealAddress}. */
  readonly sealedAddress: string
}

/** The life of a code, in seconds. */
export const CODE_SECONDS = 10 * 60
const CODE_DIGITS = 6
const MOST_TRIES = 5

const facts = z.object({
  codeHash: z.string(),
  channel: z.enum(channels),
  masked: z.string(),
  sealedAddress: z.string(),
})

// Two starts at once would each close what was there and open one more.
const lockSubject: Statement = {
  name: 'identity_lock_code_subject',
  text: 'select pg_advisory_xact_lock(hashtextextended($1, 0))',
}

/** Opens a code for a destination and closes its older ones. Runs in a transaction; sends nothing. */
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
 * Tries a code. A wrong one counts against the code alone: anybody can try codes for any address, and must not be able to
 * lock its account. The right one stays open until {@link spendCode}.
 * @throws Failure `unauthenticated`, committed.
 */
export async function tryCode(
  { database, settings }: { database: Connection; settings: CodeSettings },
  { kind, challengeId, code, now }: { kind: CodeKind; challengeId: string; code: string; now: Date },
): Promise<VerifiedDestination> {
  const challenge = await countChallengeAttempt(database, { kind, id: challengeId, now, most: MOST_TRIES })
  if (challenge === undefined) throw codeRefused()
  const { codeHash, ...destination } = facts.parse(challenge.facts)
  const given = codeHashOf(settings, challengeId, code)
  if (!timingSafeEqual(Buffer.from(given), Buffer.from(codeHash))) {
    throw codeRefused()
  }
  return { hash: challenge.subject, accountId: challenge.accountId, ...destination }
}

/** Uses a code up. @throws Failure `unauthenticated`, committed, where somebody else did. */
export async function spendCode(
  database: Connection,
  { kind, challengeId, now }: { kind: CodeKind; challengeId: string; now: Date },
): Promise<void> {
  const challenge = await takeChallenge(database, { kind, by: { id: challengeId }, now })
  if (challenge === undefined) throw codeRefused()
}

/** The one refusal: wrong, expired, used, unknown and for nobody all sound like this. */
export function codeRefused(): Failure {
  return new Failure('unauthenticated', 'The code is wrong, was used, or is no longer valid.', {
    isCommitted: true,
    hint: 'Check the newest message, or ask for a new code. A code can be tried five times in ten minutes.',
  })
}

function codeHashOf({ dataKey }: CodeSettings, challengeId: string, code: string): string {
  return keyedHash(dataKey, 'otp', `${challengeId}:${code}`)
}
