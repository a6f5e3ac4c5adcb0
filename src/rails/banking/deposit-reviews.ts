/** Deposits that AML holds or blocks. They are credited only when an administrator releases them, once. */
import type { Screening } from '../../../policies/aml/screening.ts'
import { available, external } from '../../books/ledger/accounts.ts'
import { post } from '../../books/ledger/post.ts'
import { BANK } from '../../books/spending/sources.ts'
import type { NewId } from '../../core/base/ids.ts'
import type { Log } from '../../core/base/log.ts'
import type { Page } from '../../core/base/page.ts'
import { seal, unseal } from '../../core/base/seal.ts'
import { Failure } from '../../core/failures/failure.ts'
import { type Asset, assetDecimals, type Money } from '../../core/money/money.ts'
import type { RateTable } from '../../core/money/rate-table.ts'
import type { Mint } from '../../providers/chain/port.ts'
import type { Connection } from '../../storage/database.ts'
import { convertDeposit } from './convert-deposit.ts'
import { findVirtualAccount, type VirtualAccount } from './store.ts'

const PURPOSE = 'deposit sender'

/** Rank of a deposit that is not credited yet, and of one that is. */
const HELD_RANK = 4
const CREDITED_RANK = 5

interface Keeping {
  readonly database: Connection
  readonly settings: { readonly dataKey: Uint8Array }
}

/** A deposit that AML stopped. @property money as the bank reported it. */
export interface DepositReview {
  readonly id: string
  readonly accountId: string
  readonly depositId: string
  readonly money: Money
  readonly sender: string
  readonly lists: readonly string[]
  readonly status: 'open' | 'released' | 'blocked'
  readonly createdAt: Date
  readonly decidedBy: string | null
  readonly decidedAt: Date | null
  readonly reason: string | null
}

/** Keeps a deposit that AML does not clear, once. The caller has locked its row. */
export async function holdDeposit(
  { database, settings, newId, log }: Keeping & { readonly newId: NewId; readonly log: Log },
  {
    depositId,
    accountId,
    money,
    sender,
    screening: { result, lists },
    at,
  }: {
    depositId: string
    accountId: string
    money: Money
    sender: string
    screening: Screening
    at: Date
  },
): Promise<void> {
  const id = newId('rev', at)
  const isBlocked = result === 'blocked'
  const held = await database.kysely
    .insertInto('deposit_review')
    .values({
      id,
      deposit_id: depositId,
      account_id: accountId,
      asset: money.asset,
      units: money.units,
      sealed: seal(settings.dataKey, { purpose: PURPOSE, owner: id }, sender),
      lists: [...lists],
      status: isBlocked ? 'blocked' : 'open',
      created_at: at,
      decided_at: isBlocked ? at : null,
    })
    .onConflict((conflict) => conflict.column('deposit_id').doNothing())
    .returning('id')
    .executeTakeFirst()
  if (held === undefined) return
  await database.kysely
    .updateTable('deposit')
    .set({ state: 'in_review', rank: HELD_RANK, said_units: money.units, updated_at: at })
    .where('id', '=', depositId)
    .execute()
  log.warn({ reviewId: id, depositId, lists }, 'a deposit was not credited: AML stopped it')
}

/** Reads what became of a deposit that AML stopped; undefined: it never did. */
export async function findDepositReview(
  database: Connection,
  depositId: string,
): Promise<DepositReview['status'] | undefined> {
  const row = await database.kysely
    .selectFrom('deposit_review')
    .select('status')
    .where('deposit_id', '=', depositId)
    .executeTakeFirst()
  return row?.status
}

/** Lists stopped deposits, newest first: one more than the page's limit. */
export async function listDepositReviews(
  { database, settings }: Keeping,
  { status, page }: { status: DepositReview['status']; page: Page },
): Promise<readonly DepositReview[]> {
  const query = database.kysely.selectFrom('deposit_review').selectAll().where('status', '=', status)
  const rows = await (page.after === null ? query : query.where('id', '<', page.after))
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute()
  return rows.map((row) => ({
    id: row.id,
    accountId: row.account_id,
    depositId: row.deposit_id,
    money: { asset: parseAsset(row.asset), units: row.units },
    sender: unseal(settings.dataKey, { purpose: PURPOSE, owner: row.id }, row.sealed),
    lists: row.lists,
    status: row.status,
    createdAt: row.created_at,
    decidedBy: row.decided_by,
    decidedAt: row.decided_at,
    reason: row.reason,
  }))
}

/**
 * Decides on a held deposit, permanently, and credits a released one, in the caller's transaction.
 * @returns false when there is no such deposit.
 * @throws Failure `conflict` when it was decided or refunded before, or belongs to the administrator;
 * `rates_unavailable`.
 */
export async function decideDepositReview(
  parts: {
    readonly database: Connection
    readonly log: Log
    readonly oweMint: (database: Connection, accountId: string, mint: Mint) => Promise<unknown>
  },
  {
    id,
    decidedBy,
    status,
    reason,
    table,
    at,
  }: {
    id: string
    decidedBy: string
    status: 'released' | 'blocked'
    reason: string
    table: RateTable
    at: Date
  },
): Promise<boolean> {
  const { database, log } = parts
  const named = await database.kysely
    .selectFrom('deposit_review')
    .innerJoin('deposit', 'deposit.id', 'deposit_review.deposit_id')
    .select(['deposit_review.deposit_id', 'deposit.virtual_account_id'])
    .where('deposit_review.id', '=', id)
    .executeTakeFirst()
  if (named === undefined) return false
  // The deposit first: an event of the bank locks it before it reads the review.
  const { rank } = await database.kysely
    .selectFrom('deposit')
    .select('rank')
    .where('id', '=', named.deposit_id)
    .forUpdate()
    .executeTakeFirstOrThrow()
  const review = await database.kysely
    .selectFrom('deposit_review')
    .selectAll()
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirstOrThrow()
  if (review.account_id === decidedBy)
    throw new Failure('conflict', 'Administrators cannot decide reviews of their own money.', {
      hint: 'Let another administrator decide.',
    })
  if (review.status !== 'open' || rank > HELD_RANK)
    throw new Failure('conflict', 'The review was already decided, or the bank took the deposit back.', {
      hint: 'GET /api/admin/reviews lists the open reviews.',
    })
  await database.kysely
    .updateTable('deposit_review')
    .set({ status, decided_by: decidedBy, reason, decided_at: at })
    .where('id', '=', id)
    .execute()
  log.info({ reviewId: id, decidedBy, status }, 'an AML review was decided')
  if (status === 'blocked') return true
  const account = await findVirtualAccount(database, { id: named.virtual_account_id })
  if (account === undefined) throw new Error('the virtual account of a deposit cannot be read')
  const said = { asset: parseAsset(review.asset), units: review.units }
  const mint = await creditDeposit(database, account, {
    id: named.deposit_id,
    money: convertDeposit(said, account, table),
    at,
  })
  if (mint !== null) await parts.oweMint(database, account.accountId, mint)
  return true
}

/** Books a deposit. The caller has locked its row. @returns tokens to mint where it becomes tokens; null otherwise. */
export async function creditDeposit(
  database: Connection,
  { accountId, destination }: VirtualAccount,
  { id, money, at }: { id: string; money: Money; at: Date },
): Promise<Mint | null> {
  const place = destination?.chain ?? BANK
  await post(database, {
    id: `deposit:${id}`,
    kind: 'deposit',
    reference: id,
    at,
    postings: [{ source: external(place), destination: available(accountId, place), money }],
  })
  const { asset, units } = money
  await database.kysely
    .updateTable('deposit')
    .set({ state: 'payment_processed', rank: CREDITED_RANK, updated_at: at, place, asset, units })
    .where('id', '=', id)
    .execute()
  return destination === null ? null : { token: destination.token, to: destination.address, units }
}

function parseAsset(text: string): Asset {
  const known = Object.keys(assetDecimals).find((asset): asset is Asset => asset === text)
  if (known === undefined) throw new Error(`a deposit is stored in the unknown asset ${text}`)
  return known
}
