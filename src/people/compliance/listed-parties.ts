/**
 * Manual decisions on Travel Rule data with a name on the sanctions list: an approval unblocks the destination, a
 * rejection keeps it blocked.
 */
import { z } from 'zod'
import type { Log } from '../../core/base/log.ts'
import type { Page } from '../../core/base/page.ts'
import { unseal } from '../../core/base/seal.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { Connection } from '../../storage/database.ts'
import { TRAVEL_RULE_PURPOSE } from './store.ts'

interface Keeping {
  readonly database: Connection
  readonly dataKey: Uint8Array
}

/** Data that blocks its destination. @property names all names in it; null if erased. */
export interface ListedData {
  readonly id: string
  readonly accountId: string
  readonly destination: string
  readonly names: readonly string[] | null
}

/** Finds undecided data, newest first: one more than the page's limit. */
export async function undecidedData({ database, dataKey }: Keeping, page: Page): Promise<ListedData[]> {
  const query = listedData(database)
    .leftJoin('travel_rule_decision', 'travel_rule_decision.travel_rule_id', 'travel_rule.id')
    .where('travel_rule_decision.travel_rule_id', 'is', null)
  const rows = await (page.after === null ? query : query.where('travel_rule.id', '<', page.after))
    .orderBy('travel_rule.id', 'desc')
    .limit(page.limit + 1)
    .execute()
  return rows.map(({ sealed, ...row }) => ({ ...row, names: sealed && namesIn(dataKey, row.id, sealed) }))
}

/** Finds names already cleared for a destination of an account, which need no second review. */
export async function findClearedNames(
  { database, dataKey }: Keeping,
  { accountId, destination }: { accountId: string; destination: string },
): Promise<ReadonlySet<string>> {
  const rows = await listedData(database)
    .innerJoin('travel_rule_decision', 'travel_rule_decision.travel_rule_id', 'travel_rule.id')
    .where('travel_rule_decision.verdict', '=', 'approve')
    .where('travel_rule.account_id', '=', accountId)
    .where('travel_rule.destination', '=', destination)
    .execute()
  return new Set(rows.flatMap(({ id, sealed }) => (sealed === null ? [] : namesIn(dataKey, id, sealed))))
}

/**
 * Stores a decision, permanently.
 * @throws Failure `not_found`; `conflict` when it was already decided, or when the administrator submitted the data.
 */
export async function decideListedData(
  { database, log }: { database: Connection; log: Log },
  decision: { id: string; decidedBy: string; verdict: 'approve' | 'reject'; reason: string; at: Date },
): Promise<void> {
  const { id, decidedBy, verdict, reason, at } = decision
  const found = await listedData(database).where('travel_rule.id', '=', id).executeTakeFirst()
  if (found === undefined) throw new Failure('not_found', 'There is no such data waiting for a decision.')
  if (found.accountId === decidedBy)
    throw new Failure('conflict', 'Administrators cannot decide their own data.', {
      hint: 'Let another administrator decide.',
    })
  const row = await database.kysely
    .insertInto('travel_rule_decision')
    .values({ travel_rule_id: id, decided_by: decidedBy, verdict, reason, decided_at: at })
    .onConflict((conflict) => conflict.doNothing())
    .returning('travel_rule_id')
    .executeTakeFirst()
  if (row === undefined)
    throw new Failure('conflict', 'The data was already decided.', {
      hint: 'GET /api/admin/travel-rules lists the open records.',
    })
  log.info({ travelRuleId: id, decidedBy, verdict }, 'a listed name in Travel Rule data was decided')
}

function listedData({ kysely }: Connection) {
  return kysely
    .selectFrom('travel_rule')
    .select([
      'travel_rule.id',
      'travel_rule.account_id as accountId',
      'travel_rule.destination',
      'travel_rule.sealed',
    ])
    .where('travel_rule.status', '=', 'declined')
    .where('travel_rule.vasp_name', 'is', null)
}

/** Reads the names in a payload. @see https://www.intervasp.org */
function namesIn(dataKey: Uint8Array, id: string, sealed: Uint8Array): readonly string[] {
  const names: string[] = []
  JSON.parse(
    unseal(dataKey, { purpose: TRAVEL_RULE_PURPOSE, owner: id }, sealed),
    (member, value: unknown) => {
      if (member === 'primaryIdentifier' || member === 'legalPersonName') names.push(z.string().parse(value))
      return value
    },
  )
  return names
}
