/** Rail controls in the gateway's own database: table `rail_control`. */
import type { Database } from '../../storage/database.ts'
import type { RailControl, RailControls, RailId } from './port.ts'
import { controlsUnavailable } from './unavailable.ts'

/**
 * The rail controls port over the database.
 * @param defaultEnabled state of a rail without a row: enabled in the sandbox, disabled where money is real.
 */
export function createDatabaseRailControls({
  database,
  defaultEnabled,
}: {
  readonly database: Pick<Database, 'kysely' | 'transaction'>
  readonly defaultEnabled: boolean
}): RailControls {
  const withoutRow = (rail: RailId): RailControl => ({
    rail,
    enabled: defaultEnabled,
    reason: defaultEnabled ? null : 'The rail was never switched on.',
  })
  return {
    read: async (rail) => {
      try {
        const row = await database.kysely
          .selectFrom('rail_control')
          .select(['enabled', 'reason'])
          .where('rail', '=', rail)
          .executeTakeFirst()
        return row === undefined ? withoutRow(rail) : { rail, enabled: row.enabled, reason: row.reason }
      } catch (cause) {
        throw controlsUnavailable('the database did not answer', { cause })
      }
    },
    write: ({ rail, enabled, reason }, at, also) =>
      database.transaction(async (transaction) => {
        const values = { enabled, reason, updated_at: at }
        await transaction.kysely
          .insertInto('rail_control')
          .values({ rail, ...values })
          .onConflict((conflict) => conflict.column('rail').doUpdateSet(values))
          .execute()
        await also?.(transaction)
      }),
  }
}
