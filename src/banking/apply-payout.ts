/** Applies the outcome of a payout: its money has left, or is returned. */
import { available, external } from '../ledger/accounts.ts'
import { post } from '../ledger/post.ts'
import { type Asset, assetDecimals, type Money } from '../money/money.ts'
import type { BankingEvent } from '../providers/banking.ts'
import { releaseSpend } from '../spending/release.ts'
import { settleSpend } from '../spending/settle.ts'
import type { Connection } from '../storage/database.ts'
import { parseEventAmount, requireSame, requireUnstopped } from './judge-event.ts'

/** Ranks of payout states; a higher rank never gives way to a lower one. */
const ranks: ReadonlyMap<string, number> = new Map([
  ['awaiting_funds', 1],
  ['in_review', 2],
  ['funds_received', 3],
  ['payment_submitted', 4],
  ['payment_processed', 5],
  ['refund_failed', 6],
  ['refund_in_flight', 6],
  ['undeliverable', 6],
  ['error', 7],
  ['canceled', 7],
  ['returned', 7],
  ['refunded', 7],
])
const PROCESSED = 5
const ENDED = 7
const BANK = 'bank'

/** Applies an event of a payout. Unknown payouts are ignored. */
export async function applyPayout(connection: Connection, event: BankingEvent, at: Date): Promise<void> {
  const rank = ranks.get(event.state) ?? 0
  const before = await connection.kysely
    .selectFrom('payout')
    .selectAll()
    .where('id', '=', event.objectId)
    .forUpdate()
    .executeTakeFirst()
  if (before === undefined || rank <= before.rank) return
  const { decision_id: decisionId, id } = before
  await requireUnstopped(connection, id)
  if (event.amount !== null) {
    const { asset, units } = await findHeld(connection, decisionId)
    requireSame(parseEventAmount(event, asset), units)
  }
  await connection.kysely
    .updateTable('payout')
    .set({ state: event.state, rank, updated_at: at })
    .where('id', '=', id)
    .execute()
  if (rank === PROCESSED) await settleSpend(connection, { decisionId, destination: external(BANK), at })
  if (rank !== ENDED) return
  const verdict = await releaseSpend(connection, { decisionId, at })
  if (verdict === 'already_settled')
    await bookReturn(connection, { id, decisionId, accountId: before.account_id, at })
}

/** Books the return of a payout that had left and came back from the bank. */
async function bookReturn(
  connection: Connection,
  { id, decisionId, accountId, at }: { id: string; decisionId: string; accountId: string; at: Date },
): Promise<void> {
  const money = await findHeld(connection, decisionId)
  await post(connection, {
    id: `payout:${id}:returned`,
    kind: 'payout_return',
    reference: id,
    at,
    postings: [{ source: external(BANK), destination: available(accountId, BANK), money }],
  })
}

async function findHeld(connection: Connection, decisionId: string): Promise<Money> {
  const { asset, units } = await connection.kysely
    .selectFrom('reservation')
    .select(['asset', 'units'])
    .where('decision_id', '=', decisionId)
    .executeTakeFirstOrThrow()
  if (!isAsset(asset)) throw new Error(`a payout is stored in the unknown asset ${asset}`)
  return { asset, units }
}

function isAsset(text: string): text is Asset {
  return Object.hasOwn(assetDecimals, text)
}
