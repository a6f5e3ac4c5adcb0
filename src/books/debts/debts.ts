/**
 * Debts: amounts the gateway paid on behalf of an owner who lacked the funds, and their collection. The gateway never
 * forgives a debt, and a debt never exceeds what the gateway paid.
 */
import { sql } from 'kysely'
import type { NewId } from '../../core/base/ids.ts'
import { Failure } from '../../core/failures/failure.ts'
import { type Asset, assetDecimals, type Money, stablecoins, toDecimal } from '../../core/money/money.ts'
import type { RateTable } from '../../core/money/rate-table.ts'
import { type Connection, callForRow } from '../../storage/database.ts'
import type { AuthenticateDecisions } from '../spending/authenticate.ts'
import type { MadeRow } from '../spending/decision-content.ts'
import { allAssets, listSources, withEscrow } from '../spending/sources.ts'

/** Upper bound of settlements per collection: one per stablecoin and place. */
const MAX_SETTLEMENTS = 64

/** Collection order: cash in the debt's currency, then the card's funding sources, then all other assets. */
function orderAssets({ asset, priority }: Pick<DueDebt, 'asset' | 'priority'>): readonly Asset[] {
  const cash = allAssets([asset]).filter((name) => !stablecoins.some((symbol) => symbol === name))
  return allAssets([...cash, ...priority])
}

/** A debt to collect. @property priority funding order of the card that caused the debt; empty otherwise. */
export interface DueDebt {
  readonly id: string
  readonly asset: Asset
  readonly priority: readonly Asset[]
}

export interface DebtCollectionDependencies {
  readonly database: Connection
  readonly chains: { readonly all: readonly { readonly name: string }[] }
  readonly newId: NewId
  readonly vouch: AuthenticateDecisions
  readonly settings: { readonly cardSpreadBps: number }
}

/**
 * Requires that an account owes nothing, before more of its money gets out of reach. A payment that its owner can still prevent
 * counts as owed. @throws Failure `wallet_busy`.
 */
export async function requireNoDebt(database: Connection, accountId: string): Promise<void> {
  const [owed] = await sumOpenDebts(database, accountId)
  if (owed === undefined) {
    const unpaid = await database.call<{ id: string }>(
      {
        name: 'debt_unpaid',
        text: `select s.id from card_settlement s join wallet w on w.account_id = s.account_id and w.owner->>'kind' <> 'gateway'
          where s.account_id = $1 and s.ended_at is null and left(s.place, 7) <> 'escrow.' limit 1`,
      },
      [accountId],
    )
    if (unpaid.length === 0) return
    throw new Failure('wallet_busy', 'The chain has not decided on a payment of this account yet.', {
      retryAfter: 5,
      hint: 'Send the request again in a few seconds.',
    })
  }
  throw new Failure('wallet_busy', `The account owes ${toDecimal(owed)} ${owed.asset}.`, {
    retryAfter: 30,
    hint: 'GET /api/cards shows the debt as `owed`. It is paid from the next money that arrives; shares can be sold for it.',
  })
}

/**
 * Locks an account's debts and spends. Call within a transaction, before locking any balance: see
 * src/storage/sql/README.md.
 */
export async function lockDebts(database: Connection, accountId: string): Promise<void> {
  await database.call({ name: 'debt_lock', text: 'select pg_advisory_xact_lock(hashtextextended($1, 0))' }, [
    accountId,
  ])
}

/**
 * Books what the gateway paid for an account to a system account. Call within a transaction, after {@link lockDebts}.
 */
export async function bookDebt(
  database: Connection,
  debt: {
    readonly id: string
    readonly accountId: string
    readonly kind: 'deposit'
    readonly reference: string
    readonly owed: Money
    readonly paidTo: string
    readonly at: Date
  },
): Promise<void> {
  await database.call(
    {
      name: 'debt_book',
      text: 'select debt_book($1, $2, $3, $4, null, $5, $6, $7, $8)',
    },
    [
      debt.id,
      debt.accountId,
      debt.kind,
      debt.reference,
      debt.owed.asset,
      debt.owed.units,
      debt.paidTo,
      debt.at,
    ],
  )
}

/** Finds debts whose owner has any available money, least recently tried first. */
export async function dueDebts(database: Connection, limit: number): Promise<readonly DueDebt[]> {
  const { rows } = await sql<{ id: string; asset: Asset; priority: Asset[] | null }>`
    select d.id, d.asset, c.priority from debt d left join card c on c.id = d.card_id
    where d.owed > 0 and exists (
      select from balance b
      where b.account > d.account_id || ':' and b.account < d.account_id || ';' and b.account like '%:available'
        and b.units > 0 and b.asset not like 'equity:%')
    order by d.tried_at, d.id limit ${limit}`.execute(database.kysely)
  return rows.map(({ priority, ...row }) => ({ ...row, priority: priority ?? [] }))
}

/**
 * Collects as much of a debt as its owner has in any place, at current rates. Call within a transaction: a settlement whose
 * decision is not authenticated is never sent. Stablecoins leave through a card settlement. Repeated and concurrent
 * calls are safe.
 * @returns the collected amount in the debt's smallest units.
 */
export async function collectDebt(
  { database, chains, newId, vouch, settings }: DebtCollectionDependencies,
  debt: DueDebt,
  { table, at }: { table: RateTable; at: Date },
): Promise<bigint> {
  const { cardSpreadBps: spreadBps } = settings
  const names = chains.all.map(({ name }) => name)
  const on = { table, currency: debt.asset, chains: names, spreadBps }
  const sources = withEscrow(listSources(orderAssets(debt), on))
  const { collected, made } = await callForRow<{ collected: bigint; made: readonly MadeRow[] }>(
    database,
    {
      name: 'debt_collect',
      text: 'select collected, decisions_made($5) as made from debt_collect($1, $2, $3, $4, $5, $6)',
    },
    [
      debt.id,
      sources.map(({ place }) => place),
      sources.map(({ asset }) => asset),
      sources.map(({ rate }) => rate.toString()),
      Array.from({ length: MAX_SETTLEMENTS }, () => newId('dec', at)),
      at,
    ],
  )
  await vouch(database, made)
  return collected
}

/** Sums an account's open debts by asset. */
export async function sumOpenDebts(database: Connection, accountId: string): Promise<readonly Money[]> {
  const { rows } = await sql<{ asset: Asset; units: bigint }>`
    select asset, sum(owed)::bigint as units from debt where account_id = ${accountId} and owed > 0
    group by asset order by asset`.execute(database.kysely)
  return rows
}

/**
 * A debt as operators see it.
 * @property tries attempts of the settlement that the chain refuses; null for other debts.
 */
export interface OpenDebt {
  readonly id: string
  readonly accountId: string
  readonly kind: 'card' | 'settlement' | 'deposit'
  readonly reference: string
  readonly asset: Asset
  readonly units: bigint
  readonly owed: bigint
  readonly createdAt: Date
  readonly tries: number | null
  readonly nextTryAt: Date | null
}

export async function openDebts(database: Connection, limit: number): Promise<readonly OpenDebt[]> {
  const rows = await database.kysely
    .selectFrom('debt')
    .leftJoin('card_settlement', (join) =>
      join.onRef('card_settlement.id', '=', 'debt.reference').on('debt.kind', '=', 'settlement'),
    )
    .selectAll('debt')
    .select(['card_settlement.tries', 'card_settlement.next_try_at'])
    .where('debt.owed', '>', 0n)
    .orderBy('debt.created_at')
    .orderBy('debt.id')
    .limit(limit)
    .execute()
  return rows.map((row) => ({
    id: row.id,
    accountId: row.account_id,
    kind: row.kind,
    reference: row.reference,
    asset: parseAsset(row.asset),
    units: row.units,
    owed: row.owed,
    createdAt: row.created_at,
    tries: row.tries,
    nextTryAt: row.next_try_at,
  }))
}

function parseAsset(text: string): Asset {
  if (!isAsset(text)) throw new Error(`a debt is stored in the unknown asset ${text}`)
  return text
}

function isAsset(text: string): text is Asset {
  return Object.hasOwn(assetDecimals, text)
}
