/**
 * Disputes of card purchases, as the processor reports them. Only a dispute that is won moves money, never more than was cleared and
 * not refunded; one that is lost after that is taken back, as the reversal of a refund is.
 */
import { raiseAlarm } from '../../books/alarms/alarms.ts'
import { minimum } from '../../core/money/shares.ts'
import type { CardDispute } from '../../providers/card-processor/port.ts'
import type { Connection } from '../../storage/database.ts'
import { applyEvent, type CardTransactionDependencies, findReversalSources } from './apply-transaction.ts'

/**
 * Keeps what the processor says of a dispute, and books what follows from it. Safe to repeat, in any order: a dispute that was taken
 * back stays lost.
 * @returns `unknown` for a transaction that is not ours; `waiting` while the chain has to decide something first: apply it again.
 */
export async function applyDispute(
  parts: CardTransactionDependencies,
  dispute: CardDispute,
): Promise<'applied' | 'waiting' | 'unknown'> {
  const { database, clock } = parts
  const at = clock()
  const isKnown = await database.transaction(async (connection) => {
    const purchase = await lockPurchase(connection, { token: dispute.transactionToken })
    if (purchase === undefined) return false
    await keepDispute(connection, { dispute, authorizationId: purchase.id, at })
    return true
  })
  return isKnown ? settleDispute(parts, dispute.token) : 'unknown'
}

interface LockedPurchase {
  readonly id: string
  readonly token: string
  /** Cents that were cleared and not refunded. */
  readonly left: bigint
}

async function lockPurchase(
  { kysely }: Connection,
  by: { readonly token: string } | { readonly id: string },
): Promise<LockedPurchase | undefined> {
  const query = kysely
    .selectFrom('card_authorization')
    .select(['id', 'processor_token as token', 'cleared', 'refunded'])
  const row = await ('token' in by
    ? query.where('processor_token', '=', by.token)
    : query.where('id', '=', by.id)
  )
    .forUpdate()
    .executeTakeFirst()
  if (row === undefined) return undefined
  const { cleared, refunded, ...names } = row
  return { ...names, left: cleared > refunded ? cleared - refunded : 0n }
}

/** A dispute only goes on from open, and from won to lost. */
async function keepDispute(
  { kysely }: Connection,
  { dispute, authorizationId, at }: { dispute: CardDispute; authorizationId: string; at: Date },
): Promise<void> {
  const { token, status, units } = dispute
  await kysely
    .insertInto('card_dispute')
    .values({ token, authorization_id: authorizationId, status, units, created_at: at, updated_at: at })
    .onConflict((conflict) =>
      conflict
        .column('token')
        .doUpdateSet({ status, units, updated_at: at })
        .where('card_dispute.authorization_id', '=', authorizationId)
        .where(({ eb, or, and }) =>
          or([
            and([eb('card_dispute.status', '=', 'open'), eb.val(status !== 'open')]),
            and([eb('card_dispute.status', '=', 'won'), eb.val(status === 'lost')]),
          ]),
        ),
    )
    .execute()
}

/** Books what a dispute gives or takes and has not yet. Safe to repeat. */
export async function settleDispute(
  parts: CardTransactionDependencies,
  token: string,
): Promise<'applied' | 'waiting' | 'unknown'> {
  const { database, clock, log } = parts
  const at = clock()
  const disputed = await database.kysely
    .selectFrom('card_dispute')
    .innerJoin('card_authorization', 'card_authorization.id', 'card_dispute.authorization_id')
    .innerJoin('card', 'card.id', 'card_authorization.card_id')
    .select(['card_dispute.authorization_id as id', 'card.processor_token as cardToken'])
    .where('card_dispute.token', '=', token)
    .executeTakeFirst()
  if (disputed === undefined) return 'unknown'
  const fundings = await findReversalSources(parts, disputed.cardToken)
  const settled = await database.transaction(async (connection) => {
    const purchase = await lockPurchase(connection, { id: disputed.id })
    const dispute = await connection.kysely
      .selectFrom('card_dispute')
      .selectAll()
      .where('token', '=', token)
      .executeTakeFirstOrThrow()
    if (purchase === undefined) return null
    const isWon = dispute.status === 'won' && dispute.credited === 0n
    const isTakenBack = dispute.status === 'lost' && dispute.credited > 0n
    const units = isWon ? minimum(dispute.units, purchase.left) : isTakenBack ? dispute.credited : 0n
    if (units === 0n) return { verdict: 'applied' as const, isTakenBack: false, purchase, units }
    const { verdict } = await applyEvent(parts, connection, {
      event: `${token}:${isWon ? 'won' : 'lost'}`,
      token: purchase.token,
      kind: isWon ? 'refund' : 'return_reversal',
      units,
      fundings: isWon ? [] : fundings,
      at,
    })
    if (verdict !== 'waiting')
      await connection.kysely
        .updateTable('card_dispute')
        .set({ credited: isWon ? units : 0n, updated_at: at })
        .where('token', '=', token)
        .execute()
    return { verdict, isTakenBack, purchase, units }
  })
  if (settled === null) return 'unknown'
  const { verdict, isTakenBack, purchase, units } = settled
  if (verdict === 'waiting') return 'waiting'
  if (isTakenBack)
    await raiseAlarm(
      { database, log },
      {
        domain: 'cards',
        objectId: purchase.id,
        reason: 'dispute_taken_back',
        reported: { dispute: token, cents: units.toString() },
        at,
      },
    )
  return 'applied'
}
