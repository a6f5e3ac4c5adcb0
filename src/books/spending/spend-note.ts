/** Words that a caller gives with a payment: a reason for its owner, and a memo. They are no part of a decision, and can be erased. */
import { z } from 'zod'
import { visibleText } from '../../core/base/untrusted-text.ts'
import type { Connection } from '../../storage/database.ts'

const MAX_REASON = 500
const MAX_MEMO = 140

function words(maximum: number) {
  return z
    .string()
    .trim()
    .min(1)
    .max(maximum)
    .refine((text) => visibleText(text) !== '', 'must have visible text')
    .optional()
}

/** Member of every spending call. It is no part of what is compared: the same payment may be explained later. */
export const reasonMember = { reason: words(MAX_REASON).describe('Why, for the owner.') }

/** Members of a payment to somebody. */
export const noteMembers = {
  ...reasonMember,
  memo: words(MAX_MEMO).describe('Purpose, at most 140 characters.'),
}

interface SpendNote {
  readonly reason: string | null
  readonly memo: string | null
}

const spoken = z.object({ reason: z.string().optional(), memo: z.string().optional() }).catch({})

/** Reads the words of a decoded call. */
export function parseNote(input: unknown): SpendNote {
  const { reason, memo } = spoken.parse(input)
  const toShown = (text: string | undefined) => (text === undefined ? null : visibleText(text))
  return { reason: toShown(reason), memo: toShown(memo) }
}

/** Keeps the words of a spend, once. */
export async function insertNote(
  { kysely }: Connection,
  { decisionId, accountId, reason, memo }: SpendNote & { decisionId: string; accountId: string },
): Promise<void> {
  if (reason === null && memo === null) return
  await kysely
    .insertInto('spend_note')
    .values({ decision_id: decisionId, account_id: accountId, reason, memo })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Reads the memos of spends, by decision. */
export async function findMemos(
  { kysely }: Connection,
  decisionIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (decisionIds.length === 0) return new Map()
  const rows = await kysely
    .selectFrom('spend_note')
    .select(['decision_id', 'memo'])
    .where('decision_id', 'in', decisionIds)
    .where('memo', 'is not', null)
    .execute()
  return new Map(rows.map(({ decision_id, memo }) => [decision_id, memo ?? '']))
}

/** Erases the words of an account's payments. */
export async function eraseNotes({ kysely }: Connection, accountId: string): Promise<void> {
  await kysely.deleteFrom('spend_note').where('account_id', '=', accountId).execute()
}
