/** A new virtual card, with everything on and nothing limited until its owner says otherwise. */
import { cardChannels } from '../../policies/cards/controls.ts'
import { Failure } from '../failure.ts'
import type { CardProcessor } from '../providers/card-processor.ts'
import type { Database } from '../storage/database.ts'
import { type CardOrder, endCardOrder, forgetCardOrder } from './order-card.ts'
import { type Card, findAnyCard, fundingAssets, insertCard } from './store.ts'

/** What a new card is like before its owner has said anything. */
export const newCard = {
  nickname: null,
  dailyMax: null,
  purchaseMax: null,
  channels: cardChannels,
  mccAllow: null,
  mccDeny: [],
  // Cash first would leave it to the bank what a wallet is for: stablecoins come first.
  priority: fundingAssets,
} satisfies Partial<Card>

/**
 * Issues what was ordered, outside of any transaction. Safe to repeat, and to be done by two at once: the card is the same.
 * @throws Failure `provider_unavailable`; where it is not final, the order stands and is carried on.
 */
export async function issueCard(
  { database, cardProcessor }: { database: Database; cardProcessor: Pick<CardProcessor, 'issue'> },
  { id, wanted, createdAt }: CardOrder,
): Promise<Card> {
  const there = await findAnyCard(database, id)
  if (there !== undefined) return there
  const issued = await cardProcessor
    .issue({ cardId: id, nickname: wanted.nickname, at: createdAt })
    .catch(async (error: unknown) => {
      if (error instanceof Failure && error.members.isFinal === true) await forgetCardOrder(database, id)
      throw error
    })
  return database.transaction(async (connection) => {
    await endCardOrder(connection, { id, status: 'issued' })
    return insertCard(connection, { ...wanted, id, type: 'virtual', createdAt, issued })
  })
}
