/** Issues virtual cards. A new card is limited, without cash withdrawals and without the magnetic stripe. */
import { type CardChannel, cardChannels } from '../../../policies/cards/controls.ts'
import type { Clock } from '../../core/base/clock.ts'
import type { Json } from '../../core/base/json.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { CardProcessor } from '../../providers/card-processor/port.ts'
import type { Connection, Database } from '../../storage/database.ts'
import { cardState } from './card-state.ts'
import {
  type CardOrder,
  type CardRequester,
  endCardOrder,
  forgetCardOrder,
  type NewCard,
} from './order-card.ts'
import { findReserve, releaseReserve } from './reserve-amount.ts'
import { insertSingleUse } from './single-use.ts'
import { type Card, findAnyCard, fundingAssets, insertCard } from './store.ts'

/** Default controls of a new card: 100 USD a purchase, 250 USD a day. */
export const newCard = {
  nickname: null,
  dailyMax: 250_00n,
  purchaseMax: 100_00n,
  channels: ['ecommerce', 'contactless'] as readonly CardChannel[],
  mccAllow: null,
  mccDeny: [],
  singleUse: null,
  // Stablecoins come before cash, so that purchases use the wallet first.
  priority: fundingAssets,
} satisfies Partial<NewCard>

/** Controls of the sandbox's own cards, which move nothing of value. */
export const demoCard = {
  ...newCard,
  dailyMax: null,
  purchaseMax: null,
  channels: cardChannels,
} satisfies Partial<NewCard>

export interface IssueParts {
  readonly database: Database
  readonly cardProcessor: Pick<CardProcessor, 'issue'>
  readonly clock: Clock
  /** Writes the journal entry, as the last step of the transaction. */
  readonly journal: (transaction: Connection, issued: IssuedChange) => Promise<void>
}

/** Journal entry of a newly issued card. */
interface IssuedChange {
  readonly accountId: string
  readonly actor: CardRequester
  readonly action: 'card.issued'
  readonly object: { readonly kind: 'card'; readonly id: string }
  readonly after: Json
  readonly at: Date
}

/**
 * Issues an ordered card, outside of any transaction. Repeated and concurrent calls issue the same card. The journal
 * names the caller that ordered it. The amount of a card for one purchase is reserved before.
 * @throws Failure `provider_unavailable`; unless it is final, the order stays open and is resumed.
 */
export async function issueCard(
  { database, cardProcessor, clock, journal }: IssueParts,
  { id, orderedBy, wanted, createdAt }: CardOrder,
): Promise<Card> {
  const existing = await findAnyCard(database, id)
  if (existing !== undefined) return existing
  const { nickname, singleUse } = wanted
  const forOne = singleUse && {
    units: singleUse.units,
    isMerchantLocked: Object.values(singleUse.merchant).some((member) => member !== null),
  }
  const issued = await cardProcessor
    .issue({ cardId: id, nickname, at: createdAt, singleUse: forOne })
    .catch(async (error: unknown) => {
      if (error instanceof Failure && error.members.isFinal === true) {
        if (singleUse !== null) await releaseReserve(database, { cardId: id, at: clock() })
        await forgetCardOrder(database, id)
      }
      throw error
    })
  return database.transaction(async (connection) => {
    // The order's row stays locked: a concurrent call waits here and then finds the card.
    await endCardOrder(connection, { id, status: 'issued' })
    const other = await findAnyCard(connection, id)
    if (other !== undefined) return other
    const card = await insertCard(connection, { ...wanted, id, type: 'virtual', createdAt, issued })
    if (singleUse !== null) {
      const reserve = await findReserve(connection, id)
      if (reserve?.reason !== 'approved') throw new Error('the amount of an issued card is not reserved')
      const { accountId } = wanted
      await insertSingleUse(connection, {
        cardId: id,
        accountId,
        reserveId: reserve.id,
        createdAt,
        wish: singleUse,
      })
    }
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
