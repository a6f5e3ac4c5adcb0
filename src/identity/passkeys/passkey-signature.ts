/** A passkey's assertion as a signature: its challenge is the hash of what is signed, not one of ours. */
import { Failure } from '../../failures/failure.ts'
import type { Connection } from '../../storage/database.ts'
import { isPaymentChallenge } from './passkey-challenge.ts'
import { type P256Point, pointOf } from './passkey-point.ts'
import { readAssertion } from './passkey-response.ts'
import { findPasskey, recordUse } from './passkey-store.ts'
import { countPasskeys, type RelyingParty, verifyAssertion } from './passkeys.ts'

/** Who signed. @property point null where its algorithm is none that the chain checks. @property counter as the device says. */
export interface PasskeySigner {
  readonly id: string
  readonly point: P256Point | null
  readonly counter: number
}

/** The passkeys of accounts, as signers. Reads only, but {@link recordSignature}. */
export function passkeySigners({ database, settings }: { database: Connection; settings: RelyingParty }) {
  return {
    /** Whether an account has any. */
    async has(accountId: string): Promise<boolean> {
      return (await countPasskeys(database, accountId)) > 0
    },
    /**
     * Checks an assertion by one of an account's passkeys: origin, relying party, user verification, counter.
     * @param text base64url of its JSON. @param challenge base64url of the hash that is signed.
     * @throws Failure `signature_rejected`, the same whatever is wrong.
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
      return { id: passkey.id, point: await pointOf(passkey.publicKey), counter }
    },
  }
}

/** Counts a signature. @throws Failure `signature_rejected` where its counter has been seen: of two devices, one is a copy. */
export async function recordSignature(
  database: Connection,
  { id, counter, at }: { id: string; counter: number; at: Date },
): Promise<void> {
  if (!(await recordUse(database, { id, counter, at }))) throw notAccepted()
}

/** The point of one of an account's passkeys; null where there is no such passkey, or it is of another algorithm. */
export async function ownPoint(
  database: Connection,
  { accountId, id }: { accountId: string; id: string },
): Promise<P256Point | null> {
  const row = await database.kysely
    .selectFrom('passkey')
    .select('public_key')
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  return row === undefined ? null : pointOf(row.public_key)
}

function notAccepted(cause?: unknown): Failure {
  return new Failure(
    'signature_rejected',
    'The signature is not an assertion by a passkey of this account over this intent.',
    {
      hint: 'Use "challenge" of the intent in navigator.credentials.get() with user verification, and send the base64url of the credential’s JSON.',
    },
    { cause },
  )
}
