/**
 * One-time codes: six digits that show who reads a destination. Only the newest counts, for ten minutes, five tries and one
 * use. What is stored is an HMAC bound to the challenge, so that no table of a million codes fits two of them.
 * @see https://pages.nist.gov/800-63-4/sp800-63b.html#ooba
 */
import { timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { Failure } from '../failure.ts'
import { type NewId, randomDigits } from '../ids.ts'
import { type Channel, channels } from '../providers/messages.ts'
import { keyedHash } from '../seal.ts'
import type { Connection, Statement } from '../storage/database.ts'
import { closeChallenges, openChallenge, takeChallenge, tryChallenge } from './challenges.ts'
import type { Destination } from './destinations.ts'
import { recordFailedFactor } from './locks.ts'
import { findOwnerId } from './login-destinations.ts'

/** What a code is good for: to sign in, or to recover an account. */
export type CodeKind = 'otp' | 'recovery'

/** The settings behind codes. */
export interface CodeSettings {
  readonly dataKey: Uint8Array
}

/** What showing the right code proves. */
export interface ProvenDestination {
  readonly hash: string
  readonly channel: Channel
  /** Masked, to be shown. */
  readonly masked: string
}

/** The life of a code, in seconds. */
export const CODE_SECONDS = 10 * 60
const CODE_DIGITS = 6
const MOST_TRIES = 5

/** Matches no account: an unknown destination is counted against nobody, by the same queries. */
const NOBODY = ''

const facts = z.object({ codeHash: z.string(), channel: z.enum(channels), masked: z.string() })

// Two starts at once would each close what was there and open one more.
const lockSubject: Statement = {
  name: 'identity_lock_code_subject',
  text: 'select pg_advisory_xact_lock(hashtextextended($1, 0))',
}

/** Opens a code for a destination and closes its older ones. Runs in a transaction; sends nothing. */
export async function openCode(
  { database, newId, settings }: { database: Connection; newId: NewId; settings: CodeSettings },
  { kind, destination, at }: { kind: CodeKind; destination: Destination; at: Date },
): Promise<{ challengeId: string; code: string; expiresAt: Date }> {
  const { hash: subject, channel, masked } = destination
  await database.call(lockSubject, [`${kind}:${subject}`])
  await closeChallenges(database, { kind, subject })
  const [id, code] = [newId('chal', at), randomDigits(CODE_DIGITS)]
  const codeHash = codeHashOf(settings, id, code)
  const { expiresAt } = await openChallenge(
    { database, newId },
    { id, kind, subject, accountId: null, facts: { codeHash, channel, masked }, at, seconds: CODE_SECONDS },
  )
  return { challengeId: id, code, expiresAt }
}

/**
 * Tries a code. A wrong one counts against the code, and against the account that the destination signs in, if there is one.
 * The right one stays open until {@link spendCode}.
 * @throws Failure `unauthenticated`, committed.
 */
export async function tryCode(
  { database, settings }: { database: Connection; settings: CodeSettings },
  { kind, challengeId, code, now }: { kind: CodeKind; challengeId: string; code: string; now: Date },
): Promise<ProvenDestination> {
  const challenge = await tryChallenge(database, { kind, id: challengeId, now, most: MOST_TRIES })
  if (challenge === undefined) throw codeRefused()
  const { codeHash, channel, masked } = facts.parse(challenge.facts)
  const given = codeHashOf(settings, challengeId, code)
  if (!timingSafeEqual(Buffer.from(given), Buffer.from(codeHash))) {
    const accountId = (await findOwnerId(database, challenge.subject)) ?? NOBODY
    await recordFailedFactor(database, { accountId, at: now })
    throw codeRefused()
  }
  return { hash: challenge.subject, channel, masked }
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
