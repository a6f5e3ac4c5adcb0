/** Passkey assertions as payment signatures: the challenge is the hash of the signed data. */
import { Failure } from '../../../core/failures/failure.ts'
import type { Connection } from '../../../storage/database.ts'
import { isPaymentChallenge } from './passkey-challenge.ts'
import { decodePoint, type P256Point } from './passkey-point.ts'
import { readAssertion } from './passkey-response.ts'
import { findPasskey, recordUse } from './passkey-store.ts'
import { countPasskeys, type RelyingParty, verifyAssertion } from './passkeys.ts'

/** @property point null for algorithms that the chain cannot verify. @property counter as reported by the device. */
export interface PasskeySigner {
  readonly id: string
  readonly point: P256Point | null
  readonly counter: number
}

/** Read-only; {@link recordSignature} writes. */
export function passkeySigners({ database, settings }: { database: Connection; settings: RelyingParty }) {
  return {
    async has(accountId: string): Promise<boolean> {
      return (await countPasskeys(database, accountId)) > 0
    },
    /**
     * Verifies an assertion of an account's passkey: origin, relying party, user verification, counter. @param text
     * base64url of its JSON. @param challenge base64url of the signed hash. @throws Failure `signature_rejected`, the
     * same for every cause.
     */
    async read(
      accountId: string,
      { text, challenge }: { text: string; challenge: string },
    ): Promise<PasskeySigner> {
      const credential = readAssertion(text)
      if (credential === undefined || !isPaymentChallenge(challenge)) throw notAccepted()
      const passkey = await findPasskey(database, credential.id)
      if (passkey === undefined || passkey.accountId !== accountId) throw notAccepted()
      const { counter } = await verifyAssertion(settings, { credential, passkey, subject: challenge }).catch(
        (cause: unknown) => {
          throw notAccepted(cause)
        },
      )
      return { id: passkey.id, point: await decodePoint(passkey.publicKey), counter }
    },
  }
}

/**
 * Records a signature. @throws Failure `signature_rejected` when its counter was already seen, which indicates a
 * cloned device.
 */
export async function recordSignature(
  database: Connection,
  { id, counter, at }: { id: string; counter: number; at: Date },
): Promise<void> {
  if (!(await recordUse(database, { id, counter, at }))) throw notAccepted()
}

/** Returns the point of an account's passkey; null if it does not exist or has another algorithm. */
export async function findPasskeyPoint(
  database: Connection,
  { accountId, id }: { accountId: string; id: string },
): Promise<P256Point | null> {
  const row = await database.kysely
    .selectFrom('passkey')
    .select('public_key')
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  return row === undefined ? null : decodePoint(row.public_key)
}

function notAccepted(cause?: unknown): Failure {
  return new Failure(
    'signature_rejected',
    'The signature is not an assertion by a passkey of this account over this intent.',
    {
      hint: 'Pass "challenge" of the intent to navigator.credentials.get() with user verification, and send the credential’s JSON as base64url.',
    },
    { cause },
  )
}
