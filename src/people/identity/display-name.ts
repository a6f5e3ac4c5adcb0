/** Names by which people are shown, to themselves and to who is asked for a payment. */
import { z } from 'zod'
import type { Connection } from '../../storage/database.ts'

/** Display name of a guest who has chosen none. */
export const GUEST_NAME = 'Guest'

export const displayNameInput = z
  .string()
  .trim()
  .min(1)
  .max(80)
  .refine((text) => /^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$/u.test(text), 'must not hold control characters')

/** Gives an account another display name. Cards and payments that were made keep theirs. */
export async function changeDisplayName(
  { kysely }: Connection,
  { accountId, displayName }: { accountId: string; displayName: string },
): Promise<void> {
  await kysely.updateTable('account').set({ display_name: displayName }).where('id', '=', accountId).execute()
}
