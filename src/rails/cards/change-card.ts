/** Changes of a card and their authorization: a key never loosens its own limits. */
import { loosenedControls } from '../../../policies/cards/loosening.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { Connection } from '../../storage/database.ts'
import { type Card, findOwnCard, isOwnKey, updateCard } from './store.ts'

/** The caller that changes a card. @property keyId null for the owner. */
export interface CardActor {
  readonly accountId: string
  readonly keyId: string | null
}

/**
 * Loads and locks a card for a change. A key can change only cards bound to itself, because any other card spends
 * under another policy.
 * @throws Failure `not_found`, `conflict` when it was canceled.
 */
export async function findCardToChange(
  database: Connection,
  { accountId, keyId }: CardActor,
  cardId: string,
): Promise<Card> {
  const card = await findOwnCard(database, { accountId, id: cardId, isLocked: true })
  if (card === undefined || (keyId !== null && card.keyId !== keyId))
    throw new Failure('not_found', `There is no card ${cardId} that you can change.`, {
      hint: 'GET /api/cards lists the cards; a key can change only those bound to it (agentId).',
    })
  if (card.status === 'canceled')
    throw new Failure('conflict', `Card ${cardId} is canceled and cannot be changed.`)
  return card
}

/**
 * Stores a card's new controls. Only the owner may loosen them, otherwise a key could raise its own limits.
 * @throws Failure `insufficient_scope` listing what a key would loosen.
 */
export async function changeCard(
  database: Connection,
  { keyId }: CardActor,
  { before, after }: { before: Card; after: Card },
): Promise<Card> {
  const loosened = keyId === null ? [] : loosenedControls(before, after)
  if (loosened.length > 0)
    throw new Failure('insufficient_scope', `Only the owner can loosen ${loosened.join(', ')} of a card.`, {
      hint: 'A key can freeze its card, lower its limits and shorten its lists. Ask the owner to loosen them.',
    })
  return updateCard(database, after)
}

/**
 * Resolves the key that a card will be bound to.
 * @param wanted undefined: unchanged.
 * @throws Failure `insufficient_scope` when a key chooses another key than itself, `not_found`.
 */
export async function resolveBinding(
  database: Connection,
  { accountId, keyId }: CardActor,
  { wanted, before }: { wanted: string | null | undefined; before: string | null },
): Promise<string | null> {
  const next = wanted === undefined ? before : wanted
  if (keyId !== null && next !== keyId)
    throw new Failure('insufficient_scope', 'Only the owner can choose the key a card is bound to.', {
      hint: 'Omit agentId: a card issued by a key is bound to that key.',
    })
  if (next !== null && next !== before && !(await isOwnKey(database, { accountId, keyId: next })))
    throw new Failure('not_found', `You have no key ${next}.`)
  return next
}
