/** Names of recipients and references of payouts, which are stored sealed: for lists that show them, and for searches. */
import { unseal } from '../../core/base/seal.ts'
import type { Connection } from '../../storage/database.ts'
import { REFERENCE_PURPOSE } from './payout.ts'
import { recipientNames } from './recipients.ts'

interface Keeping {
  readonly database: Connection
  readonly settings: { readonly dataKey: Uint8Array }
}

/** References of more payouts than this are not searched. */
const MAX_SEARCHED = 1000

/**
 * Finds recipients by a part of their name and payouts by a part of their reference, in any letter case: the newest 1,000
 * payouts. @returns the ids of both.
 */
export async function searchPayoutTexts(
  keeping: Keeping,
  { accountId, search }: { accountId: string; search: string },
): Promise<readonly string[]> {
  const [names, references] = await Promise.all([
    recipientNames(keeping, { accountId, ids: null }),
    payoutReferences(keeping, { accountId, ids: null }),
  ])
  const part = search.toLowerCase()
  return [...names, ...references].flatMap(([id, text]) => (text.toLowerCase().includes(part) ? [id] : []))
}

/** @param ids null: the newest of the account. @returns references by the id of their payout. */
export async function payoutReferences(
  { database, settings }: Keeping,
  { accountId, ids }: { accountId: string; ids: readonly string[] | null },
): Promise<ReadonlyMap<string, string>> {
  if (ids?.length === 0) return new Map()
  const query = database.kysely
    .selectFrom('payout')
    .select(['id', 'sealed'])
    .where('account_id', '=', accountId)
    .where('sealed', 'is not', null)
    .orderBy('id', 'desc')
    .limit(MAX_SEARCHED)
  const rows = await (ids === null ? query : query.where('id', 'in', ids)).execute()
  const references = rows.flatMap(({ id, sealed }) =>
    sealed === null
      ? []
      : [[id, unseal(settings.dataKey, { purpose: REFERENCE_PURPOSE, owner: id }, sealed)] as const],
  )
  return new Map(references)
}
