/** Passkeys as far as recovery needs them. @see https://www.w3.org/TR/webauthn-3/ */
import { Failure } from '../failure.ts'
import type { NewId } from '../ids.ts'
import type { Connection } from '../storage/database.ts'
import type { AuthenticationResponse } from './passkey-response.ts'

/** Where passkeys hold. @property rpId the registrable domain. @property webOrigins the origins that they may be used on. */
export interface RelyingParty {
  readonly rpId: string
  readonly webOrigins: readonly string[]
}

/** How many passkeys an account has. */
export async function countPasskeys(database: Connection, accountId: string): Promise<number> {
  const { passkeys } = await database.kysely
    .selectFrom('passkey')
    .select(({ fn }) => fn.countAll<bigint>().as('passkeys'))
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow()
  return Number(passkeys)
}

/** Options of a passkey sign-in: none yet. */
export async function loginOptions(
  _parts: { database: Connection; newId: NewId; settings: RelyingParty },
  _at: Date,
): Promise<{ challengeId: string; publicKey: Record<string, unknown> }> {
  return { challengeId: '', publicKey: {} }
}

/** The account of a passkey assertion: none is taken yet. @throws Failure `unauthenticated`, committed. */
export async function assertPasskey(
  _parts: { database: Connection; settings: RelyingParty },
  _shown: { credential: AuthenticationResponse; now: Date },
): Promise<{ accountId: string }> {
  throw new Failure('unauthenticated', 'The passkey assertion does not verify.', { isCommitted: true })
}
