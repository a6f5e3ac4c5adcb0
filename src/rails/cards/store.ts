/**
 * Cards: controls, authorization of purchases, and their processing. May import base, ports, ledger, spending and
 * policies. Invariants: a purchase is decided once, by its processor token; an approved amount is held in the same
 * transaction and never exceeds the balance, the card's limits and the bound key's policy; an event moves money once.
 */
import type { Selectable } from 'kysely'
import type { CardControls } from '../../../policies/cards/controls.ts'
import { type Quorum, quorums } from '../../../policies/quorum.ts'
import { parseAncestors } from '../../core/base/ancestors.ts'
import type { Page } from '../../core/base/page.ts'
import type { Ancestor } from '../../core/base/principal.ts'
import type { IssuedCard } from '../../providers/card-processor/port.ts'
import type { Connection, Statement } from '../../storage/database.ts'
import type { CardTable } from '../../storage/schema.ts'
import { type CardMerchant, cardMerchant } from './card-merchant.ts'

/** Assets that can pay for card purchases, in default order. */
export const fundingAssets = ['USDC', 'USDT', 'EURC', 'PYUSD', 'USD'] as const

export type FundingAsset = (typeof fundingAssets)[number]

/** A card as stored. Limits are in cents; null means no limit. */
export interface Card extends CardControls {
  readonly id: string
  readonly accountId: string
  /** Key whose policy also applies. */
  readonly keyId: string | null
  readonly token: string
  readonly type: 'virtual' | 'physical'
  readonly brand: string
  readonly last4: string
  readonly expMonth: number
  readonly expYear: number
  readonly cardholderName: string
  readonly nickname: string | null
  readonly dailyMax: bigint | null
  readonly priority: readonly FundingAsset[]
  readonly version: number
  readonly createdAt: Date
}

/** A card with the account and key facts that determine authorizations. */
export interface CardWithPolicies extends Card {
  readonly isAccountLocked: boolean
  readonly isGuest: boolean
  readonly kycLevel: string
  /** How many people must agree to payments of the account's keys, by amount. */
  readonly quorums: readonly Quorum[]
  /** True if the gateway owns the wallet and can move its stablecoins. */
  readonly isWalletOurs: boolean
  /** Of a card for one purchase: the only merchant, whose null members allow any. Null: another card. */
  readonly singleUse: CardMerchant | null
  readonly key: {
    readonly id: string
    readonly status: 'active' | 'paused' | 'revoked'
    readonly policy: unknown
    readonly policyVersion: number
    readonly policyHash: string | null
    readonly expiresAt: Date | null
    /** Keys above it, root first. */
    readonly ancestors: readonly Ancestor[]
    /** Label of its spends. */
    readonly task: string | null
  } | null
}

interface HolderRow {
  readonly account_status: string
  readonly guest: boolean
  readonly kyc_level: string
  readonly quorums: unknown
  readonly wallet_owner: string | null
  readonly key_status: 'active' | 'paused' | 'revoked' | null
  readonly key_policy: unknown
  readonly key_policy_version: number | null
  readonly key_policy_hash: string | null
  readonly key_expires_at: Date | null
  readonly key_ancestors: unknown
  readonly key_task: string | null
}

interface JudgedRow extends Selectable<CardTable>, HolderRow {
  readonly merchant: unknown
}

const holderColumns = `a.status as account_status, a.guest, a.kyc_level, a.quorums, w.owner->>'kind' as wallet_owner,
  k.status as key_status, k.policy as key_policy, k.policy_version as key_policy_version, k.policy_hash as key_policy_hash,
  k.expires_at as key_expires_at, key_ancestors(k.path) as key_ancestors, k.task as key_task`

const judged: Statement = {
  name: 'cards_judged',
  // The limit keeps the planner from joining whole tables: a batch is always shorter than it expects.
  text: `select j.* from rows from (jsonb_to_recordset($1::jsonb) as (token text)) with ordinality as q
    left join lateral (
      select c.*, s.merchant, ${holderColumns}
      from card c join account a on a.id = c.account_id left join wallet w on w.account_id = c.account_id
      left join access_key k on k.id = c.key_id left join card_single_use s on s.card_id = c.id
      where c.processor_token = q.token limit 1
    ) j on true
    order by q.ordinality`,
}

/** Finds the card of a processor token with the facts that determine authorizations. */
export async function findJudgedCard(
  database: Connection,
  token: string,
): Promise<CardWithPolicies | undefined> {
  const row = await database.gather<JudgedRow | { readonly id: null }>(judged, { token })
  if (row.id === null) return undefined
  const { merchant } = row
  return {
    ...withHolder(parseCard(row), row),
    singleUse: merchant === null ? null : cardMerchant.parse(merchant),
  }
}

const holder: Statement = {
  name: 'cards_judged_holder',
  text: `select ${holderColumns}
    from account a left join wallet w on w.account_id = a.id left join access_key k on k.id = $2 and k.account_id = a.id
    where a.id = $1`,
}

/** Adds the facts that determine the reserve of a card that is not issued yet. */
export async function readHolder(database: Connection, card: Card): Promise<CardWithPolicies | undefined> {
  const [row] = await database.call<HolderRow>(holder, [card.accountId, card.keyId])
  return row === undefined ? undefined : withHolder(card, row)
}

function withHolder(card: Card, row: HolderRow): CardWithPolicies {
  return {
    ...card,
    isAccountLocked: row.account_status !== 'active',
    isGuest: row.guest,
    kycLevel: row.kyc_level,
    quorums: quorums.parse(row.quorums ?? []),
    isWalletOurs: row.wallet_owner === 'gateway',
    singleUse: null,
    key:
      card.keyId === null
        ? null
        : {
            id: card.keyId,
            status: row.key_status ?? 'revoked',
            policy: row.key_policy,
            policyVersion: row.key_policy_version ?? 0,
            policyHash: row.key_policy_hash,
            expiresAt: row.key_expires_at,
            ancestors: parseAncestors(row.key_ancestors) ?? [],
            task: row.key_task,
          },
  }
}

/** Finds an owner's card. @param isLocked locks the card until the transaction ends. */
export async function findOwnCard(
  database: Connection,
  { accountId, id, isLocked = false }: { accountId: string; id: string; isLocked?: boolean },
): Promise<Card | undefined> {
  const query = database.kysely
    .selectFrom('card')
    .selectAll()
    .where('id', '=', id)
    .where('account_id', '=', accountId)
  const row = await (isLocked ? query.forNoKeyUpdate() : query).executeTakeFirst()
  return row === undefined ? undefined : parseCard(row)
}

/** Finds a card by id, regardless of its owner. */
export async function findAnyCard(database: Connection, id: string): Promise<Card | undefined> {
  const row = await database.kysely.selectFrom('card').selectAll().where('id', '=', id).executeTakeFirst()
  return row === undefined ? undefined : parseCard(row)
}

/** Lists an account's cards, newest first: one more than the page's limit. */
export async function listCards(
  database: Connection,
  { accountId, page }: { accountId: string; page: Page },
): Promise<Card[]> {
  const query = database.kysely.selectFrom('card').selectAll().where('account_id', '=', accountId)
  const rows = await (page.after === null ? query : query.where('id', '<', page.after))
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute()
  return rows.map(parseCard)
}

/** Checks that a key belongs to the account and is not revoked. */
export async function isOwnKey(
  database: Connection,
  { accountId, keyId }: { accountId: string; keyId: string },
): Promise<boolean> {
  const row = await database.kysely
    .selectFrom('access_key')
    .select('id')
    .where('id', '=', keyId)
    .where('account_id', '=', accountId)
    .where('status', '!=', 'revoked')
    .executeTakeFirst()
  return row !== undefined
}

/** Stores a new card, or returns the one already stored. */
export async function insertCard(
  database: Connection,
  { issued, ...card }: Omit<Card, keyof IssuedCard | 'status' | 'version'> & { issued: IssuedCard },
): Promise<Card> {
  const row = await database.kysely
    .insertInto('card')
    .values({
      id: card.id,
      account_id: card.accountId,
      processor_token: issued.token,
      type: card.type,
      brand: issued.brand,
      last4: issued.last4,
      exp_month: issued.expMonth,
      exp_year: issued.expYear,
      currency: 'USD',
      cardholder_name: card.cardholderName,
      created_at: card.createdAt,
      ...toColumns(card),
    })
    .onConflict((conflict) => conflict.doNothing())
    .returningAll()
    .executeTakeFirst()
  if (row !== undefined) return parseCard(row)
  const stored = await findAnyCard(database, card.id)
  if (stored === undefined) throw new Error('a stored card cannot be read')
  return stored
}

/** Stores a card's controls; they apply from the next authorization. */
export async function updateCard(database: Connection, card: Card): Promise<Card> {
  const row = await database.kysely
    .updateTable('card')
    .set({ ...toColumns(card), status: card.status, version: card.version + 1 })
    .where('id', '=', card.id)
    .returningAll()
    .executeTakeFirstOrThrow()
  return parseCard(row)
}

function toColumns(
  card: Pick<
    Card,
    'keyId' | 'nickname' | 'dailyMax' | 'purchaseMax' | 'channels' | 'mccAllow' | 'mccDeny' | 'priority'
  >,
) {
  return {
    key_id: card.keyId,
    nickname: card.nickname,
    daily_max: card.dailyMax,
    purchase_max: card.purchaseMax,
    channels: [...card.channels],
    mcc_allow: card.mccAllow === null ? null : [...card.mccAllow],
    mcc_deny: [...card.mccDeny],
    priority: [...card.priority],
  }
}

function parseCard(row: Selectable<CardTable>): Card {
  return {
    id: row.id,
    accountId: row.account_id,
    keyId: row.key_id,
    token: row.processor_token,
    type: row.type,
    status: row.status,
    brand: row.brand,
    last4: row.last4,
    expMonth: row.exp_month,
    expYear: row.exp_year,
    cardholderName: row.cardholder_name,
    nickname: row.nickname,
    dailyMax: row.daily_max,
    purchaseMax: row.purchase_max,
    channels: row.channels,
    mccAllow: row.mcc_allow,
    mccDeny: row.mcc_deny,
    priority: fundingAssets
      .filter((asset) => row.priority.includes(asset))
      .sort((left, right) => row.priority.indexOf(left) - row.priority.indexOf(right)),
    version: row.version,
    createdAt: row.created_at,
  }
}
