/** Replacements of the key that owns smart accounts, as the database knows them: one row for each Safe on each chain. */
import type { Address, Hex, OwnerBook, SignedSwap, Wallet } from '../../../providers/chain/port.ts'
import type { Connection, Database, Statement } from '../../../storage/database.ts'
import { buildEscrow, parseWallet, toAddress } from '../store.ts'

export type SwapState = 'new' | 'ready' | 'sent' | 'swapped' | 'given' | 'foreign'

/** A Safe on its way to a new owner. @property wallet null: the gateway's own Safe. @property swap the signed change, if any. */
export interface OwnerSwap {
  readonly chain: string
  readonly address: string
  readonly to: Address
  readonly accountId: string | null
  readonly isEscrow: boolean
  readonly wallet: Wallet | null
  readonly state: SwapState
  readonly swap: SignedSwap | null
  readonly attempt: number
  /** The books have money there, or it spends allowances, so that it is deployed now. */
  readonly hasMoney: boolean
  readonly createdAt: Date
}

/** A replacement that was begun. Addresses are in lower case. */
export interface OwnerRotation {
  readonly from: Address
  readonly to: Address
  readonly isFinished: boolean
}

/** Reads what the database knows of the gateway's keys; null for one that no key owns wallets of. */
export async function readOwnerBook(database: Database): Promise<OwnerBook | null> {
  const [rows, rotations] = await Promise.all([
    database.kysely
      .selectFrom('deployment')
      .select(['name', 'value'])
      .where('name', 'in', ['chain_owner', 'chain_first_owner'])
      .execute(),
    readRotations(database),
  ])
  const find = (name: string) => rows.find((row) => row.name === name)?.value
  const owner = find('chain_owner')
  if (owner === undefined) return null
  const open = rotations.find(({ isFinished }) => !isFinished)
  return {
    first: toAddress(find('chain_first_owner') ?? owner),
    target: open?.to ?? toAddress(owner),
    known: [...new Set([toAddress(owner), ...rotations.flatMap(({ from, to }) => [from, to])])],
    readKnown: async () => (await readOwnerBook(database))?.known ?? [],
    findSwaps: (chain, safe) => findSwaps(database, { chain, safe }),
  }
}

export async function readRotations({ kysely }: Connection): Promise<readonly OwnerRotation[]> {
  const rows = await kysely.selectFrom('owner_rotation').selectAll().orderBy('begun_at').execute()
  return rows.map((row) => ({
    from: toAddress(row.from_owner),
    to: toAddress(row.to_owner),
    isFinished: row.finished_at !== null,
  }))
}

/** Finds the changes of a Safe's owner that were signed, whether they were sent or not. */
export async function findSwaps(
  { kysely }: Connection,
  { chain, safe }: { chain: string; safe: Address },
): Promise<readonly SignedSwap[]> {
  const rows = await kysely
    .selectFrom('owner_swap')
    .select(['operation_id', 'from_owner', 'to_owner', 'signature'])
    .where('chain', '=', chain)
    .where('address', '=', safe.toLowerCase())
    .where('signature', 'is not', null)
    .orderBy('created_at')
    .execute()
  return rows.flatMap((row) => toSwap(row) ?? [])
}

/**
 * Condition that a Safe has money in the books, on the chain of its row `s`, or may spend that of others: the gateway's own, by which
 * whoever deploys it with a former key spends the allowances of agents.
 */
const hasMoney = `(s.account_id is null or exists (
  select from balance b
  where b.units > 0 and b.account in (
    s.account_id || case when s.is_escrow then ':escrow.' else ':' end || s.chain || ':available',
    s.account_id || case when s.is_escrow then ':escrow.' else ':' end || s.chain || ':held',
    s.account_id || case when s.is_escrow then ':escrow.' else ':' end || s.chain || ':frozen')))`

/** Safes without a row that begin, or may have begun, with another key than $2, on the chain $1. */
const unlisted = `
  select w.address, w.account_id, false as is_escrow from wallet w
  where w.origin->>'kind' = 'gateway' and coalesce(w.origin->>'first', '') <> $2
    and not exists (select from owner_swap s where s.chain = $1 and s.address = w.address and s.to_owner = $2)
  union all
  select w.escrow, w.account_id, true from wallet w
  where w.escrow is not null and coalesce(w.escrow_first, '') <> $2
    and not exists (select from owner_swap s where s.chain = $1 and s.address = w.escrow and s.to_owner = $2)`

const enlist: Statement = {
  name: 'owner_swaps_enlist',
  text: `insert into owner_swap (chain, address, to_owner, account_id, is_escrow, state, created_at, due_at, updated_at)
    select $1, n.address, $2, n.account_id, n.is_escrow, 'new', $4::timestamptz, case when n.account_id is null then 'epoch'::timestamptz else $4::timestamptz end, $4
    from (
      (select $3::text as address, null::text as account_id, false as is_escrow
        where not exists (select from owner_swap s where s.chain = $1 and s.address = $3 and s.to_owner = $2))
      union all
      (select u.address, u.account_id, u.is_escrow from (${unlisted}) u limit $5)
    ) n
    on conflict do nothing returning address`,
}

/** Gives rows to Safes that have none: the gateway's own first. @returns how many. */
export async function enlistSafes(
  database: Connection,
  {
    chain,
    to,
    delegate,
    limit,
    at,
  }: { chain: string; to: Address; delegate: Address; limit: number; at: Date },
): Promise<number> {
  const rows = await database.call(enlist, [chain, to, delegate.toLowerCase(), at, limit])
  return rows.length
}

const wake: Statement = {
  name: 'owner_swaps_wake',
  text: `with page as (
      select s.chain, s.address, s.to_owner from owner_swap s
      where s.chain = $1 and s.state = 'ready' and s.to_owner = $2 and s.address > $3 order by s.address limit $4
    ), woken as (
      update owner_swap s set state = 'new', due_at = $5, updated_at = $5
      from page p
      where (s.chain, s.address, s.to_owner) = (p.chain, p.address, p.to_owner) and s.state = 'ready' and (${hasMoney}
        or exists (
          select from transfer t
          where t.account_id = s.account_id and t.chain = s.chain and t.created_at > s.updated_at
            and (t.payer = 'escrow') = s.is_escrow))
    )
    select coalesce(max(address), '') as last from page`,
}

/**
 * Has Safes looked at that were not deployed, and have money or were used since. @param after address of the page before.
 * @returns the last address of this page; empty at the end.
 */
export async function wakeSafes(
  database: Connection,
  { chain, to, after, limit, at }: { chain: string; to: Address; after: string; limit: number; at: Date },
): Promise<string> {
  const [row] = await database.call<{ last: string }>(wake, [chain, to, after, limit, at])
  return row?.last ?? ''
}

interface SwapRow {
  readonly chain: string
  readonly address: string
  readonly to_owner: string
  readonly account_id: string | null
  readonly is_escrow: boolean
  readonly state: SwapState
  readonly from_owner: string | null
  readonly operation_id: string | null
  readonly signature: string | null
  readonly attempt: number
  readonly created_at: Date
  readonly has_money: boolean
  readonly origin: unknown
  readonly owner: unknown
  readonly card_cover: bigint
  readonly escrow_first: string | null
}

const take: Statement = {
  name: 'owner_swaps_take',
  text: `with taken as (
      update owner_swap o set due_at = $3
      where (o.chain, o.address, o.to_owner) in (
        select s.chain, s.address, s.to_owner from owner_swap s
        where s.chain = $1 and s.to_owner = $2 and s.state in ('new', 'sent') and s.due_at <= $4
        order by s.due_at limit $5 for update skip locked)
      returning o.*
    )
    select s.chain, s.address, s.to_owner, s.account_id, s.is_escrow, s.state, s.from_owner, s.operation_id, s.signature, s.attempt,
      s.created_at, ${hasMoney} as has_money, w.origin, w.owner, coalesce(w.card_cover, 0) as card_cover, w.escrow_first
    from taken s left join wallet w on w.account_id = s.account_id`,
}

/** Takes Safes that are due, so that no other gateway works on them until then. */
export async function takeSwaps(
  database: Connection,
  { chain, to, until, at, limit }: { chain: string; to: Address; until: Date; at: Date; limit: number },
): Promise<readonly OwnerSwap[]> {
  const rows = await database.call<SwapRow>(take, [chain, to, until, at, limit])
  return rows.map((row) => ({
    chain: row.chain,
    address: row.address,
    to: toAddress(row.to_owner),
    accountId: row.account_id,
    isEscrow: row.is_escrow,
    wallet: toWallet(row),
    state: row.state,
    swap: toSwap(row) ?? null,
    attempt: row.attempt,
    hasMoney: row.has_money,
    createdAt: row.created_at,
  }))
}

const behind: Statement = {
  name: 'owner_swap_behind',
  text: `select exists (
      select from transfer t
      where t.chain = $1 and t.state in ('reserved', 'submitted', 'settlement_pending')
        and case when $2::text is null then t.authorized->>'kind' = 'allowance'
          else t.account_id = $2 and (t.payer = 'escrow') = $3 end) as is_behind`,
}

/** Checks whether transfers that the Safe is to execute are open: a signature of theirs may be on its way to the chain. */
export async function isBehindTransfers(
  database: Connection,
  { chain, accountId, isEscrow }: Pick<OwnerSwap, 'chain' | 'accountId' | 'isEscrow'>,
): Promise<boolean> {
  const [row] = await database.call<{ is_behind: boolean }>(behind, [chain, accountId, isEscrow])
  return row?.is_behind ?? false
}

type Named = Pick<OwnerSwap, 'chain' | 'address' | 'to'>

/** Keeps a signed change before it is sent. @returns false when another gateway has kept another one since. */
export async function keepSwap(
  { kysely }: Connection,
  { chain, address, to, attempt: before }: Named & Pick<OwnerSwap, 'attempt'>,
  { swap, hash, attempt, at }: { swap: SignedSwap; hash: Hex; attempt: number; at: Date },
): Promise<boolean> {
  const { numUpdatedRows } = await kysely
    .updateTable('owner_swap')
    .set({
      from_owner: swap.from,
      operation_id: swap.id,
      operation_hash: hash,
      signature: swap.signature,
      attempt,
      updated_at: at,
    })
    .where('chain', '=', chain)
    .where('address', '=', address)
    .where('to_owner', '=', to)
    .where('attempt', '=', before)
    // A key that is being replaced gets no Safe any more.
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom('owner_rotation').select('to_owner').where('from_owner', '=', to))),
    )
    .where(({ eb, or }) =>
      or([eb('signature', 'is', null), eb('attempt', '<', attempt), eb('from_owner', '!=', swap.from)]),
    )
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

/** Drops a signed change that the chain will never execute: its Safe needs its former key again. */
export async function dropSwap(
  { kysely }: Connection,
  { chain, address, to, attempt }: Named & Pick<OwnerSwap, 'attempt'>,
  { id, at }: { id: string; at: Date },
): Promise<void> {
  const none = { from_owner: null, operation_id: null, operation_hash: null, signature: null }
  await kysely
    .updateTable('owner_swap')
    .set({ ...none, state: 'new', attempt: attempt + 1, updated_at: at })
    .where('chain', '=', chain)
    .where('address', '=', address)
    .where('to_owner', '=', to)
    .where('operation_id', '=', id)
    .execute()
}

/** Records what the chain shows, and when to look again. */
export async function recordSwap(
  { kysely }: Connection,
  { chain, address, to }: Named,
  {
    state,
    owner,
    transactionHash,
    dueAt,
    at,
  }: { state?: SwapState; owner?: Address | null; transactionHash?: Hex; dueAt: Date; at: Date },
): Promise<void> {
  await kysely
    .updateTable('owner_swap')
    .set({
      due_at: dueAt,
      updated_at: at,
      ...(state === undefined ? {} : { state }),
      ...(owner === undefined ? {} : { owner }),
      ...(transactionHash === undefined ? {} : { transaction_hash: transactionHash }),
    })
    .where('chain', '=', chain)
    .where('address', '=', address)
    .where('to_owner', '=', to)
    .execute()
}

const left: Statement = {
  name: 'owner_swaps_left',
  text: `select
      (select count(*) from (${unlisted}) u)
        + (select count(*) where not exists (
          select from owner_swap s where s.chain = $1 and s.to_owner = $2 and s.account_id is null)) as unlisted,
      (select count(*) from owner_swap s where s.chain = $1 and s.to_owner = $2 and s.state in ('new', 'sent')) as count,
      (select count(*) from owner_swap s
        where s.chain = $1 and s.to_owner = $2 and s.state in ('new', 'sent') and s.signature is null) as unsigned,
      (select count(*) from owner_swap s where s.chain = $1 and s.to_owner = $2 and s.state = 'ready') as ready,
      (select count(*) from owner_swap s where s.chain = $1 and s.to_owner = $2 and s.state = 'foreign') as lost`,
}

/**
 * Safes on a chain. @property left the chain does not show their new owner yet. @property unsigned of those, without a signed change,
 * for which their former key is needed. @property ready not deployed, and change with their deployment. @property lost belong to
 * somebody unknown.
 */
export interface OwnersLeft {
  readonly chain: string
  readonly left: number
  readonly unsigned: number
  readonly ready: number
  readonly lost: number
}

export async function countOwnersLeft(
  database: Pick<Connection, 'call'>,
  { chains, to }: { chains: readonly string[]; to: string },
): Promise<readonly OwnersLeft[]> {
  return Promise.all(
    chains.map(async (chain) => {
      const [row] = await database.call<{
        unlisted: bigint
        count: bigint
        unsigned: bigint
        ready: bigint
        lost: bigint
      }>(left, [chain, to])
      const unlistedCount = Number(row?.unlisted ?? 0n)
      return {
        chain,
        left: unlistedCount + Number(row?.count ?? 0n),
        unsigned: unlistedCount + Number(row?.unsigned ?? 0n),
        ready: Number(row?.ready ?? 0n),
        lost: Number(row?.lost ?? 0n),
      }
    }),
  )
}

/** Names the chains that any gateway of this database has watched. */
export async function readWatchedChains({ kysely }: Connection): Promise<readonly string[]> {
  const rows = await kysely.selectFrom('chain_cursor').select('chain').orderBy('chain').execute()
  return rows.map(({ chain }) => chain)
}

/**
 * Ends a replacement if no Safe on these chains is left with a former owner: the new key is the owner of the database from now on.
 * @returns whether this call has ended it.
 */
export function finishRotation(
  database: Database,
  { to, chains, at }: { to: Address; chains: readonly string[]; at: Date },
): Promise<boolean> {
  return database.transaction(async (connection) => {
    const open = await connection.kysely
      .selectFrom('owner_rotation')
      .select('to_owner')
      .where('to_owner', '=', to)
      .where('finished_at', 'is', null)
      .forUpdate()
      .executeTakeFirst()
    if (open === undefined) return false
    const counts = await countOwnersLeft(connection, { chains, to })
    if (counts.some((count) => count.left > 0)) return false
    await connection.kysely
      .updateTable('deployment')
      .set({ value: to, written_at: at })
      .where('name', '=', 'chain_owner')
      .execute()
    await connection.kysely
      .updateTable('owner_rotation')
      .set({ finished_at: at })
      .where('to_owner', '=', to)
      .execute()
    return true
  })
}

function toWallet(row: SwapRow): Wallet | null {
  if (row.account_id === null) return null
  return row.is_escrow ? buildEscrow(row.account_id, row.escrow_first) : parseWallet(row.account_id, row)
}

function toSwap({
  operation_id: id,
  from_owner: from,
  to_owner: to,
  signature,
}: Pick<SwapRow, 'operation_id' | 'from_owner' | 'to_owner' | 'signature'>): SignedSwap | undefined {
  if (id === null || from === null || signature === null) return undefined
  return { id, from: toAddress(from), to: toAddress(to), signature: toAddress(signature) }
}
