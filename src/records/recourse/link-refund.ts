import type { Clock } from '../../core/base/clock.ts'
import { callForRow, type Database, type Statement } from '../../storage/database.ts'
import type { Recourse } from './store.ts'

const linking: Statement = {
  name: 'refund_book',
  text: 'select verdict from refund_book($1, $2, $3, $4, $5, $6)',
}

/**
 * Links money in the books to the payment that it returns: at most what was paid and has not come back.
 * @param movement names the arrival, once. @param entryId its entry in the activity. @param units smallest units.
 */
export async function linkRefund(
  { database, clock }: { readonly database: Database; readonly clock: Clock },
  { id }: Recourse,
  {
    movement,
    entryId,
    units,
    evidence,
  }: {
    readonly movement: string
    readonly entryId: string
    readonly units: bigint
    readonly evidence: Readonly<Record<string, string>>
  },
): Promise<void> {
  await callForRow<{ verdict: 'linked' | 'ended' | 'nothing_left' | 'taken' }>(database, linking, [
    id,
    movement,
    entryId,
    units,
    JSON.stringify(evidence),
    clock(),
  ])
}
