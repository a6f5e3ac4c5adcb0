/** A new virtual card, with everything on and nothing limited until its owner says otherwise. */
import { cardChannels } from '../../policies/cards/controls.ts'
import type { Clock } from '../base/clock.ts'
import type { Json } from '../base/json.ts'
import { Failure } from '../failures/failure.ts'
import type { CardProcessor } from '../providers/card-processor.ts'
import type { Connection, Database } from '../storage/database.ts'
import { cardState } from './card-state.ts'
import { type CardOrder, type CardRequester, endCardOrder, forgetCardOrder } from './order-card.ts'
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

/** What issuing needs. */
export interface IssueParts {
  readonly database: Database
  readonly cardProcessor: Pick<CardProcessor, 'issue'>
  readonly clock: Clock
  /** Writes the journal, last in the transaction. */
  readonly journal: (transaction: Connection, issued: IssuedChange) => Promise<void>
}

/** A card that somebody has had issued, as the journal holds it. */
interface IssuedChange {
  readonly accountId: string
  readonly actor: CardRequester
  readonly action: 'card.issued'
  readonly object: { readonly kind: 'card'; readonly id: string }
  readonly after: Json
  readonly at: Date
}

/**
 * Issues what was ordered, outside of any transaction. Safe to repeat, and to be done by two at once: the card is the same.
 * The journal says who ordered it, whoever carries the order out.
 * @throws Failure `provider_unavailable`; where it is not final, the order stands and is carried on.
 */
export async function issueCard(
  { database, cardProcessor, clock, journal }: IssueParts,
  { id, orderedBy, wanted, createdAt }: CardOrder,
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
    // The order stays locked: whoever issues it at the same moment waits here, and finds the card.
    await endCardOrder(connection, { id, status: 'issued' })
    const other = await findAnyCard(connection, id)
    if (other !== undefined) return other
    const card = await insertCard(connection, { ...wanted, id, type: 'virtual', createdAt, issued })
    if (orderedBy !== null)
      await journal(connection, {
        accountId: wanted.accountId,
        actor: orderedBy,
        action: 'card.issued',
        object: { kind: 'card', id },
        after: cardState(card),
        at: clock(),
      })
    return card
  })
}
