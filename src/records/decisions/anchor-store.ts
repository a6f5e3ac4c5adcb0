/** Reads and writes the heads of the decision chain that are anchored on a blockchain, one a UTC day. */
import type { Address, Hex } from '../../providers/chain/port.ts'
import type { Connection, Statement } from '../../storage/database.ts'

/**
 * @property day UTC, YYYY-MM-DD. @property hash of the decision at `sequence`, 64 hex digits. @property transactionHashes every transaction
 * that may have been broadcast. @property sentAt when the newest of them was.
 */
export interface Anchor {
  readonly day: string
  readonly sequence: bigint
  readonly hash: string
  readonly chain: string
  readonly state: 'prepared' | 'sent' | 'confirmed' | 'missed'
  readonly transactionHashes: readonly Hex[]
  readonly sentAt: Date | null
}

const columns = `day::text as day, sequence, hash, chain, state, transaction_hashes as "transactionHashes", sent_at as "sentAt"`

const due: Statement = {
  name: 'anchor_due',
  text: `select ${columns} from decision_anchor
    where chain = $1 and state in ('prepared', 'sent') or day = $2::date order by day`,
}

/** Reads the anchors of a chain that are not done, and that of a day, whatever its chain and state. */
export function readDueAnchors(database: Connection, chain: string, day: string): Promise<Anchor[]> {
  return database.call(due, [chain, day])
}

// The walk begins at the head, of which the day's end is hours away at most.
const prepare: Statement = {
  name: 'anchor_prepare',
  text: `insert into decision_anchor (day, sequence, hash, chain, state, prepared_at)
    select $1::date, head.sequence, head.hash, $2, 'prepared', $4 from (
      select s.sequence, s.hash from decision_seal s
      cross join lateral decision_read(s.decision_id) d
      where d.at < $3 order by s.sequence desc limit 1
    ) head
    on conflict (day) do nothing`,
}

/** Fixes the head of a day, unless it is fixed or no decision was made before its end. */
export async function prepareAnchor(
  database: Connection,
  { day, chain, end, at }: { day: string; chain: string; end: Date; at: Date },
): Promise<void> {
  await database.call(prepare, [day, chain, end, at])
}

const claim: Statement = {
  name: 'anchor_claim',
  text: `update decision_anchor set attempt = $2, attempt_until = $3, sender = $4
    where day = $1::date and state in ('prepared', 'sent') and transaction_hashes = $5::text[]
      and (attempt_until is null or attempt_until <= $6)
    returning day::text as day`,
}

/** Claims a day for one attempt, unless another has it, or has sent since the anchor was read. @returns whether it is claimed. */
export async function claimAnchor(
  database: Connection,
  { day, transactionHashes }: Pick<Anchor, 'day' | 'transactionHashes'>,
  { attempt, until, sender, at }: { attempt: string; until: Date; sender: Address; at: Date },
): Promise<boolean> {
  return (await database.call(claim, [day, attempt, until, sender, transactionHashes, at])).length > 0
}

const recordSent: Statement = {
  name: 'anchor_sent',
  text: `update decision_anchor set state = 'sent', sent_at = $4, transaction_hashes = array_append(transaction_hashes, $3)
    where day = $1::date and state in ('prepared', 'sent') and attempt = coalesce($2, attempt)
    returning day::text as day`,
}

/**
 * Records a transaction that is about to be broadcast. @param attempt must still have the day; null for a transaction that replaces one
 * with the same nonce. @returns false when it must not be broadcast.
 */
export async function recordAnchorSent(
  database: Connection,
  day: string,
  { attempt, hash, at }: { attempt: string | null; hash: Hex; at: Date },
): Promise<boolean> {
  return (await database.call(recordSent, [day, attempt, hash, at])).length > 0
}

const release: Statement = {
  name: 'anchor_release',
  text: 'update decision_anchor set attempt_until = null where day = $1::date and attempt = $2',
}

export async function releaseAnchor(database: Connection, day: string, attempt: string): Promise<void> {
  await database.call(release, [day, attempt])
}

const confirm: Statement = {
  name: 'anchor_confirm',
  text: `update decision_anchor set state = 'confirmed', transaction_hash = $2, confirmed_at = $3, sender = coalesce($4, sender)
    where day = $1::date and state in ('prepared', 'sent')`,
}

/** @param sender of the transaction; null: that of the last attempt. */
export async function confirmAnchor(
  database: Connection,
  day: string,
  { hash, sender, at }: { hash: Hex; sender: Address | null; at: Date },
): Promise<void> {
  await database.call(confirm, [day, hash, at, sender])
}

const miss: Statement = {
  name: 'anchor_miss',
  text: `update decision_anchor set state = 'missed'
    where day = $1::date and state in ('prepared', 'sent') and transaction_hashes = $2::text[]`,
}

/** Gives up a day, unless a transaction was recorded since it was read. */
export async function missAnchor(
  database: Connection,
  { day, transactionHashes }: Pick<Anchor, 'day' | 'transactionHashes'>,
): Promise<void> {
  await database.call(miss, [day, transactionHashes])
}

/** An anchor that is on its chain. @property sender the sponsor's address. */
export interface ConfirmedAnchor extends Pick<Anchor, 'day' | 'sequence' | 'hash' | 'chain'> {
  readonly transaction: Hex
  readonly sender: Address
}

const confirmed: Statement = {
  name: 'anchor_confirmed',
  text: `select day::text as day, sequence, hash, chain, transaction_hash as transaction, sender from decision_anchor
    where state = 'confirmed' and day >= $1::date and day <= $2::date and sequence >= $3 and sequence <= $4 order by day`,
}

/** Reads the confirmed anchors of days whose heads lie between two sequences, inclusive. @param to the last day. */
export function readConfirmedAnchors(
  database: Connection,
  { from, to, first, last }: { from: string; to: string; first: bigint; last: bigint },
): Promise<ConfirmedAnchor[]> {
  return database.call(confirmed, [from, to, first, last])
}

const heads: Statement = {
  name: 'anchor_heads',
  text: 'select day::text as day, sequence, hash from decision_anchor order by sequence, day',
}

/** Reads the heads of all days, which were fixed before they were sent. */
export function readAnchoredHeads(
  database: Connection,
): Promise<Pick<Anchor, 'day' | 'sequence' | 'hash'>[]> {
  return database.call(heads, [])
}
