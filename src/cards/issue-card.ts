/** A new virtual card, with everything on and nothing limited until its owner says otherwise. */
import { cardChannels } from '../../policies/cards/controls.ts'
import type { NewId } from '../ids.ts'
import type { CardProcessor } from '../providers/card-processor.ts'
import type { Connection } from '../storage/database.ts'
import { type Card, fundingAssets, insertCard } from './store.ts'

/** What a new card is like before its owner has said anything. */
export const newCard = {
  nickname: null,
  dailyMax: null,
  purchaseMax: null,
  channels: cardChannels,
  mccAllow: null,
  mccDeny: [],
  priority: fundingAssets,
} satisfies Partial<Card>

/** Cash first would leave it to the bank what a wallet is for: stablecoins come first. */
type Wanted = Pick<
  Card,
  | 'accountId'
  | 'keyId'
  | 'cardholderName'
  | 'nickname'
  | 'dailyMax'
  | 'purchaseMax'
  | 'channels'
  | 'mccAllow'
  | 'mccDeny'
  | 'priority'
>

/** Issues a virtual card. @throws Failure `provider_unavailable`. */
export async function issueCard(
  {
    database,
    cardProcessor,
    newId,
  }: { database: Connection; cardProcessor: Pick<CardProcessor, 'issue'>; newId: NewId },
  wanted: Wanted,
  at: Date,
): Promise<Card> {
  const id = newId('card', at)
  const issued = await cardProcessor.issue({ cardId: id, nickname: wanted.nickname, at })
  return insertCard(database, { ...wanted, id, type: 'virtual', createdAt: at, issued })
}
