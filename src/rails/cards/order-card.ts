/**
 * Orders of cards, recorded before the processor is called, so that neither a crash nor a lost answer duplicates or
 * loses a card.
 */
import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { cardChannels } from '../../../policies/cards/controls.ts'
import type { NewId } from '../../core/base/ids.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { Connection, Statement } from '../../storage/database.ts'
import { cardMerchant } from './card-merchant.ts'
import type { SingleUseWish } from './single-use.ts'
import { type Card, fundingAssets } from './store.ts'

/** Controls and owner of the card to issue. */
export type NewCard = Pick<
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
> & {
  /** Null: a card for any number of purchases. */
  readonly singleUse: SingleUseWish | null
}

/** Requester of a card: a person or a key. */
export interface CardRequester {
  readonly kind: 'person' | 'key'
  readonly id: string
}

/**
 * An order.
 * @property id id of the future card, and idempotency key at the processor.
 * @property orderedBy null: ordered by the gateway itself.
 */
export interface CardOrder {
  readonly id: string
  readonly orderedBy: CardRequester | null
  readonly wanted: NewCard
  readonly createdAt: Date
}

/** The call that orders, with its idempotency key if it has one. */
interface OrderingCall {
  readonly caller: CardRequester
  readonly key: string | null
}

const units = z.codec(z.string().regex(/^\d+$/), z.bigint(), {
  decode: (text) => BigInt(text),
  encode: (value) => value.toString(),
})
const instant = z.codec(z.iso.datetime(), z.date(), {
  decode: (text) => new Date(text),
  encode: (at) => at.toISOString(),
})
const wantedCard = z.object({
  accountId: z.string(),
  keyId: z.string().nullable(),
  cardholderName: z.string(),
  nickname: z.string().nullable(),
  dailyMax: units.nullable(),
  purchaseMax: units.nullable(),
  channels: z.array(z.enum(cardChannels)),
  mccAllow: z.array(z.string()).nullable(),
  mccDeny: z.array(z.string()),
  priority: z.array(z.enum(fundingAssets)),
  // Orders of earlier versions have none.
  singleUse: z
    .object({
      units,
      merchant: cardMerchant,
      task: z.string().nullable(),
      expiresAt: instant.nullable(),
    })
    .nullable()
    .prefault(null),
})

/** Retention of an idempotency key: 24 hours. */
const KEY_MS = 24 * 60 * 60_000

/**
 * Orders a card, within the caller's transaction. Returns the earlier order of the same idempotency key, if any.
 * @throws Failure `idempotency_key_reused` when that order was for a different card.
 */
export async function orderCard(
  { database, newId }: { database: Connection; newId: NewId },
  { wanted, call, at }: { wanted: NewCard; call: OrderingCall | null; at: Date },
): Promise<CardOrder> {
  const stored = encodeWanted(wanted)
  const before = call === null ? undefined : await findOrder(database, call, at)
  if (before !== undefined) {
    if (isDeepStrictEqual(encodeWanted(before.wanted), stored)) return before
    throw new Failure('idempotency_key_reused', 'This idempotency key was used for a different card.', {
      hint: 'Use a new idempotency key for a new card.',
    })
  }
  const id = newId('card', at)
  await database.kysely
    .insertInto('card_order')
    .values({
      id,
      account_id: wanted.accountId,
      wanted: JSON.stringify(stored),
      caller_kind: call?.caller.kind ?? null,
      caller: call?.caller.id ?? null,
      caller_key: call?.key ?? null,
      status: 'open',
      created_at: at,
      tried_at: at,
    })
    .execute()
  return { id, orderedBy: call?.caller ?? null, wanted, createdAt: at }
}

const claim: Statement = {
  name: 'cards_claim_orders',
  text: `update card_order set tried_at = $2 where id in (
      select id from card_order where status = 'open' and tried_at < $1
      order by tried_at limit $3 for update skip locked)
    returning id, caller_kind, caller, wanted, created_at`,
}

/** Claims open orders that no process is working on. @param before latest time of the previous attempt. */
export async function claimCardOrders(
  database: Connection,
  { before, at, limit }: { before: Date; at: Date; limit: number },
): Promise<CardOrder[]> {
  return (await database.call<Row>(claim, [before, at, limit])).map(parseOrder)
}

export async function endCardOrder(
  database: Connection,
  { id, status }: { id: string; status: 'issued' | 'given_up' },
): Promise<void> {
  await database.kysely.updateTable('card_order').set({ status }).where('id', '=', id).execute()
}

/** Deletes the order of a card that was not and will not be issued. */
export async function forgetCardOrder(database: Connection, id: string): Promise<void> {
  await database.kysely.deleteFrom('card_order').where('id', '=', id).where('status', '=', 'open').execute()
}

/** Deletes issued orders whose idempotency key has expired. */
export async function sweepCardOrders(database: Connection, at: Date): Promise<void> {
  await database.kysely
    .deleteFrom('card_order')
    .where('status', '=', 'issued')
    .where('created_at', '<', new Date(at.getTime() - KEY_MS))
    .execute()
}

interface Row {
  readonly id: string
  readonly caller_kind: CardRequester['kind'] | null
  readonly caller: string | null
  readonly wanted: unknown
  readonly created_at: Date
}

async function findOrder(
  database: Connection,
  { caller, key }: OrderingCall,
  at: Date,
): Promise<CardOrder | undefined> {
  if (key === null) return undefined
  const row = await database.kysely
    .selectFrom('card_order')
    .select(['id', 'caller_kind', 'caller', 'wanted', 'created_at'])
    .where('caller', '=', caller.id)
    .where('caller_key', '=', key)
    .where('status', '!=', 'given_up')
    .where('created_at', '>', new Date(at.getTime() - KEY_MS))
    .executeTakeFirst()
  return row === undefined ? undefined : parseOrder(row)
}

function parseOrder({ id, caller_kind: kind, caller, wanted, created_at: createdAt }: Row): CardOrder {
  const orderedBy = kind === null || caller === null ? null : { kind, id: caller }
  return { id, orderedBy, wanted: wantedCard.parse(wanted), createdAt }
}

function encodeWanted({ channels, mccAllow, mccDeny, priority, ...wanted }: NewCard): object {
  return wantedCard.encode({
    ...wanted,
    channels: cardChannels.filter((channel) => channels.includes(channel)),
    mccAllow: mccAllow === null ? null : [...mccAllow],
    mccDeny: [...mccDeny],
    priority: [...priority],
  })
}
