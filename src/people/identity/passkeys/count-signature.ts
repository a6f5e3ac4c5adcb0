/** Uses up the counter of a passkey that authorized a spend. */
import { releaseSpend } from '../../../books/spending/release.ts'
import type { Database } from '../../../storage/database.ts'
import { recordSignature } from './passkey-signature.ts'

/**
 * Stores the passkey's counter, which verification alone does not use up; nothing for other signers.
 * @throws Failure `signature_rejected` when the counter was already seen; the money is available again.
 */
export async function countSignature(
  { database, now: at }: { readonly database: Database; readonly now: Date },
  { signerId, counter }: { readonly signerId: string | null; readonly counter: number | null },
  decisionId: string,
): Promise<void> {
  if (signerId === null || counter === null) return
  await recordSignature(database, { id: signerId, counter, at }).catch(async (error: unknown) => {
    await releaseSpend(database, { decisionId, at })
    throw error
  })
}
