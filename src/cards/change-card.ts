/** A card that is about to be changed, and by whom: a key never loosens what it is bound by. */
import { loosenedControls } from '../../policies/cards/loosening.ts'
import { Failure } from '../failures/failure.ts'
import type { Connection } from '../storage/database.ts'
import { type Card, findOwnCard, isOwnKey, updateCard } from './store.ts'

/** Who changes a card. @property keyId null: the owner. */
export interface CardActor {
  readonly accountId: string
  readonly keyId: string | null
}

/**
 * The card to change, locked until the transaction's end. A key changes only the cards that are bound to itself: any other
 * card spends under a policy that is not the key's.
 * @throws Failure `not_found`, `conflict` where it was canceled.
 */
export async function findCardToChange(
  database: Connection,
  { accountId, keyId }: CardActor,
  cardId: string,
): Promise<Card> {
  const card = await findOwnCard(database, { accountId, id: cardId, isLocked: true })
  if (card === undefined || (keyId !== null && card.keyId !== keyId))
    throw new Failure('not_found', `There is no card ${cardId} that you can change.`, {
      hint: 'GET /api/cards lists the cards; a key changes only those that are bound to it (agentId).',
    })
  if (card.status === 'canceled')
    throw new Failure('conflict', `Card ${cardId} was canceled; it never changes again.`)
  return card
}

/**
 * Stores a card's new controls. Only its owner loosens any: a key would raise its own limits.
 * @throws Failure `insufficient_scope` naming what a key would loosen.
 */
export async function changeCard(
  database: Connection,
  { keyId }: CardActor,
  { before, after }: { before: Card; after: Card },
): Promise<Card> {
  const loosened = keyId === null ? [] : loosenedControls(before, after)
  if (loosened.length > 0)
    throw new Failure('insufficient_scope', `Only the owner loosens ${loosened.join(', ')} of a card.`, {
      hint: 'A key can freeze its card, lower its limits and shorten its lists. Ask the owner for more.',
    })
  return updateCard(database, after)
}

/**
 * The key that a card is to be bound to. @param wanted undefined: as it is.
 * @throws Failure `insufficient_scope` where a key would choose another than itself, `not_found`.
 */
export async function bindingOf(
  database: Connection,
  { accountId, keyId }: CardActor,
  { wanted, before }: { wanted: string | null | undefined; before: string | null },
): Promise<string | null> {
  const next = wanted === undefined ? before : wanted
  if (keyId !== null && next !== keyId)
    throw new Failure('insufficient_scope', 'Only the owner decides which key a card is bound to.', {
      hint: 'Leave agentId away: a card that a key issues is bound to that key.',
    })
  if (next !== null && next !== before && !(await isOwnKey(database, { accountId, keyId: next })))
    throw new Failure('not_found', `There is no key ${next} of yours.`)
  return next
}
