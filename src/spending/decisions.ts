/** The record of decisions, read. */
import { z } from 'zod'
import type { Connection } from '../storage/database.ts'

const recorded = z.looseObject({ found: z.unknown() })

/** What a spend had found out when it was decided, as it was stored. */
export async function findDecisionFacts(database: Connection, decisionId: string): Promise<unknown> {
  const { facts } = await database.kysely
    .selectFrom('decision')
    .select('facts')
    .where('id', '=', decisionId)
    .executeTakeFirstOrThrow()
  return recorded.parse(facts).found
}
