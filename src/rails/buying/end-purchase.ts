/** The end of a purchase in the books and in its row, in one transaction, once. */

import { external } from '../../books/ledger/accounts.ts'
import { releaseSpend } from '../../books/spending/release.ts'
import type { SettleVerdict } from '../../books/spending/settle.ts'
import type { Clock } from '../../core/base/clock.ts'
import type { Log } from '../../core/base/log.ts'
import type { Chain, Hex } from '../../providers/chain/port.ts'
import { type Connection, callForRow, type Database, type Statement } from '../../storage/database.ts'
import type { Purchase } from './store.ts'

export interface EndingParts {
  readonly database: Database
  readonly chain: Pick<Chain, 'name'>
  readonly clock: Clock
  readonly log: Log
}

const settlement: Statement = {
  name: 'purchase_settle',
  text: 'select verdict from purchase_settle($1, $2, $3, $4, $5)',
}

/** Books a payment that the chain shows; what it left of the reserved money is available again. @returns true if this call booked it. */
export async function settlePurchase(
  { database, chain, clock, log }: EndingParts,
  { id, decision_id: decisionId }: Pick<Purchase, 'id' | 'decision_id'>,
  { transactionHash, units }: { transactionHash: Hex; units: bigint },
): Promise<boolean> {
  const { verdict } = await callForRow<{ verdict: SettleVerdict | 'too_much' }>(database, settlement, [
    id,
    transactionHash,
    units,
    external(chain.name),
    clock(),
  ])
  if (verdict !== 'settled' && verdict !== 'already_settled')
    log.error({ purchaseId: id, decisionId, verdict }, 'the chain and the ledger disagree on a purchase')
  return verdict === 'settled'
}

/**
 * Gives the money of a purchase back that is certainly not paid. @param from the state that shows it.
 * @param unless prevents it; the purchase is locked meanwhile.
 */
export async function failPurchase(
  { database, clock, log }: EndingParts,
  { id, decision_id: decisionId }: Pick<Purchase, 'id' | 'decision_id'>,
  {
    from,
    code,
    failure,
    unless,
  }: {
    from: 'reserved' | 'signed'
    code: string
    failure: string
    unless?: (connection: Connection) => Promise<boolean>
  },
): Promise<boolean> {
  const at = clock()
  const verdict = await database.transaction(async (connection) => {
    if (unless !== undefined) {
      await connection.kysely.selectFrom('purchase').select('id').where('id', '=', id).forUpdate().execute()
      if (await unless(connection)) return undefined
    }
    const row = await connection.kysely
      .updateTable('purchase')
      .set((eb) => ({
        state: 'failed',
        failure_code: eb.fn.coalesce('failure_code', eb.val(code)),
        failure: eb.fn.coalesce('failure', eb.val(failure)),
        credential: null,
        updated_at: at,
      }))
      .where('id', '=', id)
      .where('state', '=', from)
      .returning('id')
      .executeTakeFirst()
    return row === undefined ? undefined : releaseSpend(connection, { decisionId, at })
  })
  if (verdict === 'already_settled')
    log.error({ purchaseId: id, decisionId, verdict }, 'the chain and the ledger disagree on a purchase')
  return verdict !== undefined
}
