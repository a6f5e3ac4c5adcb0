/** A person decides on Travel Rule data that names somebody on the sanctions list: it is somebody else, or its destination stays held. */
import { z } from 'zod'
import type { Log } from '../base/log.ts'
import type { Page } from '../base/page.ts'
import { unseal } from '../base/seal.ts'
import { Failure } from '../failures/failure.ts'
import type { Connection } from '../storage/database.ts'
import { TRAVEL_RULE_PURPOSE } from './store.ts'

interface Keeping {
  readonly database: Connection
  readonly dataKey: Uint8Array
}

/** Data that holds its destination. @property names of everybody in it; null: erased. */
export interface ListedData {
  readonly id: string
  readonly accountId: string
  readonly destination: string
  readonly names: readonly string[] | null
}

/** Data that nobody has decided on, newest first: one more than the page's limit. */
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

/** Names that a person has cleared for a destination of an account: said again, they need no second look. */
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

/** Writes a decision down, for good. @throws Failure `not_found`, `conflict` where it was decided on, or by who sent it. */
export async function decideOnListed(
  { database, log }: { database: Connection; log: Log },
  decision: { id: string; decidedBy: string; verdict: 'approve' | 'reject'; reason: string; at: Date },
): Promise<void> {
  const { id, decidedBy, verdict, reason, at } = decision
  const found = await listedData(database).where('travel_rule.id', '=', id).executeTakeFirst()
  if (found === undefined) throw new Failure('not_found', 'There is no such data that waits for a decision.')
  if (found.accountId === decidedBy)
    throw new Failure('conflict', 'Nobody decides on their own data.', {
      hint: 'Another administrator decides.',
    })
  const row = await database.kysely
    .insertInto('travel_rule_decision')
    .values({ travel_rule_id: id, decided_by: decidedBy, verdict, reason, decided_at: at })
    .onConflict((conflict) => conflict.doNothing())
    .returning('travel_rule_id')
    .executeTakeFirst()
  if (row === undefined)
    throw new Failure('conflict', 'The data was decided on.', {
      hint: 'GET /api/admin/travel-rules lists what waits.',
    })
  log.info({ travelRuleId: id, decidedBy, verdict }, 'a listed name in Travel Rule data was decided on')
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

/** Whom a payload names. @see https://www.intervasp.org */
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
