/** Cards for one purchase: their rows, their view, and their end. */
import { z } from 'zod'
import { untrustedTextOrNull } from '../../core/base/untrusted-text.ts'
import { toDecimal } from '../../core/money/money.ts'
import { type Connection, callForRow, type Statement } from '../../storage/database.ts'
import { type CardMerchant, cardMerchant } from './card-merchant.ts'
import { cardView, viewCard } from './card-view.ts'
import type { Card } from './store.ts'

/** One hour. */
const DEFAULT_LIFE_MS = 60 * 60_000
/** Ended cards per round. */
const BATCH = 100

/** What a card for one purchase is ordered for. @property expiresAt null: an hour after the order. @property units cents. */
export interface SingleUseWish {
  readonly units: bigint
  readonly merchant: CardMerchant
  readonly task: string | null
  readonly expiresAt: Date | null
}

const singleUseView = z
  .strictObject({
    amount: z.string().describe('USD reserved at issue, as a decimal string.'),
    remaining: z.string().describe('USD that its purchase can still take.'),
    merchant: z
      .strictObject({
        mcc: z.string().nullable().describe('Merchant category code.'),
        name: untrustedTextOrNull('First words of its name.'),
        country: z.string().nullable().describe('ISO 3166-1 alpha-2.'),
      })
      .describe('Only merchant; null members allow any.'),
    task: untrustedTextOrNull('Label of the task that it was issued for.'),
    expiresAt: z.string().describe('When it ends unless used, ISO 8601 UTC.'),
    status: z
      .enum(['open', 'authorized', 'used', 'expired', 'canceled'])
      .describe('`authorized`: its purchase is open.'),
  })
  .meta({ id: 'SingleUse' })

/** A card as its owner and its key see it. */
export const cardDetails = cardView.extend({
  singleUse: singleUseView.optional().describe('Of a card for one purchase.'),
})
cardDetails.register(z.globalRegistry, { id: 'ListedCard' })

export async function insertSingleUse(
  { kysely }: Connection,
  {
    cardId,
    accountId,
    reserveId,
    createdAt,
    wish,
  }: { cardId: string; accountId: string; reserveId: string; createdAt: Date; wish: SingleUseWish },
): Promise<void> {
  await kysely
    .insertInto('card_single_use')
    .values({
      card_id: cardId,
      account_id: accountId,
      reserve_id: reserveId,
      units: wish.units,
      merchant: JSON.stringify(wish.merchant),
      task: wish.task,
      expires_at: wish.expiresAt ?? new Date(createdAt.getTime() + DEFAULT_LIFE_MS),
    })
    .execute()
}

/** Views cards with what they are for. */
export async function viewCards(
  database: Connection,
  cards: readonly Card[],
): Promise<z.output<typeof cardDetails>[]> {
  const found = await readSingleUses(
    database,
    cards.map(({ id }) => id),
  )
  return cards.map((card) => {
    const singleUse = found.get(card.id)
    return singleUse === undefined ? viewCard(card) : { ...viewCard(card), singleUse }
  })
}

export async function viewOneCard(database: Connection, card: Card): Promise<z.output<typeof cardDetails>> {
  const [view] = await viewCards(database, [card])
  return view ?? viewCard(card)
}

const read: Statement = {
  name: 'cards_single_uses',
  text: `select s.card_id as "cardId", s.units, s.merchant, s.task, s.expires_at as "expiresAt", s.status,
      case when s.ended_at is null then coalesce(
        (select sum(h.micros) / 10000 from card_hold h where h.authorization_id = s.reserve_id), 0)::bigint else 0 end as remaining
    from card_single_use s where s.card_id = any($1)`,
}

interface SingleUseRow {
  readonly cardId: string
  readonly units: bigint
  readonly merchant: unknown
  readonly task: string | null
  readonly expiresAt: Date
  readonly status: z.output<typeof singleUseView>['status']
  readonly remaining: bigint
}

async function readSingleUses(
  database: Connection,
  cardIds: readonly string[],
): Promise<ReadonlyMap<string, z.output<typeof singleUseView>>> {
  if (cardIds.length === 0) return new Map()
  const rows = await database.call<SingleUseRow>(read, [cardIds])
  return new Map(
    rows.map(({ cardId, units, merchant, task, expiresAt, status, remaining }) => [
      cardId,
      {
        amount: toDecimal({ asset: 'USD', units }),
        remaining: toDecimal({ asset: 'USD', units: remaining }),
        merchant: cardMerchant.parse(merchant),
        task,
        expiresAt: expiresAt.toISOString(),
        status,
      },
    ]),
  )
}

export async function isForOnePurchase({ kysely }: Connection, cardId: string): Promise<boolean> {
  const row = await kysely
    .selectFrom('card_single_use')
    .select('card_id')
    .where('card_id', '=', cardId)
    .executeTakeFirst()
  return row !== undefined
}

const end: Statement = {
  name: 'card_single_use_end',
  text: 'select card_single_use_end($1, $2, $3) as ended',
}

/**
 * Ends a card for one purchase: what no purchase has taken of its amount is free. In a transaction that has locked its row, call
 * {@link lockCards} before. @returns whether it was one, and open.
 */
export async function endSingleUse(
  database: Connection,
  { cardId, status, at }: { cardId: string; status: 'expired' | 'canceled'; at: Date },
): Promise<boolean> {
  return (await callForRow<{ ended: boolean }>(database, end, [cardId, status, at])).ended
}

const lock: Statement = {
  name: 'cards_lock',
  text: 'select pg_advisory_xact_lock(hashtextextended($1, 0))::text as locked',
}

/** Keeps purchases with an account's cards waiting until the transaction ends. */
export async function lockCards(database: Connection, accountId: string): Promise<void> {
  await database.call(lock, [accountId])
}

const over: Statement = {
  name: 'cards_single_use_over',
  text: `select s.card_id as "cardId", case when s.expires_at <= $1 then 'expired' else 'canceled' end as status
    from card_single_use s join card c on c.id = s.card_id
    where s.ended_at is null and ($2::text is null or s.account_id = $2) and (s.expires_at <= $1 or c.status = 'canceled'
      or exists (select from access_key k where k.id = any (key_path(c.key_id)) and (k.status = 'revoked' or k.expires_at <= $1)))
    limit $3`,
}

/**
 * Ends the cards that have expired, were canceled, or whose key or a key above it was revoked or has expired.
 * @param accountId null: of all accounts. @returns how many.
 */
export async function endSingleUses(
  database: Connection,
  { accountId, at }: { accountId: string | null; at: Date },
): Promise<number> {
  const due = await database.call<{ cardId: string; status: 'expired' | 'canceled' }>(over, [
    at,
    accountId,
    BATCH,
  ])
  for (const { cardId, status } of due) await endSingleUse(database, { cardId, status, at })
  return due.length
}

/** Ends an account's cards at once, after the commit of what has stopped them. A later round ends the others. */
export async function endStoppedCards(
  database: Connection,
  { accountId, at }: { accountId: string; at: Date },
): Promise<void> {
  await endSingleUses(database, { accountId, at })
}
