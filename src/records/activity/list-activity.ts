/**
 * Activity: one statement of what came into an account and left it, from every room. It only reads, and it may import the
 * base and the ports. The rooms keep their own lists, which say more of each entry.
 */
import { getAddress, isAddress } from 'viem'
import { z } from 'zod'
import { formatUsd } from '../../../policies/usd.ts'
import { partOperations } from '../../books/spending/part-operations.ts'
import { untrustedTextOrNull } from '../../core/base/untrusted-text.ts'
import { type Asset, assetDecimals, type Money, toDecimal } from '../../core/money/money.ts'
import type { RateTable } from '../../core/money/rate-table.ts'
import { worthInMicros } from '../../core/money/usd-value.ts'
import type { Connection, Statement } from '../../storage/database.ts'

export const activityKinds = [
  'transfer',
  'deposit',
  'relay',
  'card',
  'order',
  'purchase',
  'payout',
  'swap',
  'dividend',
  'fee',
  'shortfall',
] as const
export const activityDirections = ['in', 'out'] as const

export const activityStatuses = [
  'pending',
  'on_its_way',
  'completed',
  'undelivered',
  'failed',
  'denied',
  'canceled',
  'reversed',
] as const

/** Statuses of entries that moved nothing, or whose money is back. */
const voidStatuses: ReadonlySet<string> = new Set(['failed', 'denied', 'canceled', 'reversed'])

/** Rooms that entries come from. A key sees a room with its scope. */
export const activityRooms = ['wallet', 'bank', 'cards', 'investing'] as const
export type ActivityRoom = (typeof activityRooms)[number]

export const activityEntry = z.strictObject({
  id: z.string().describe('Id of the entry.'),
  at: z.string().describe('Start, ISO 8601 UTC.'),
  kind: z.enum(activityKinds).describe('`shortfall`: booked money that the chain lacks.'),
  direction: z.enum(activityDirections).describe('`out`: also a payment relayed for another payer.'),
  status: z
    .enum(activityStatuses)
    .describe('`on_its_way`: a payout that has not arrived; `undelivered`: paid, nothing came.'),
  amount: z
    .string()
    .nullable()
    .describe('What moved or is about to; 0 if failed, denied, canceled or reversed; null while unknown.'),
  requested: z.string().nullable().describe('What was asked for, if something else moved.'),
  asset: z.string().describe('Asset by symbol.'),
  usd: z.string().nullable().describe('`amount` in USD when decided, else now; null without a rate.'),
  counterparty: untrustedTextOrNull('Name, origin, ticker or EVM address.'),
  contact: untrustedTextOrNull('Name of the contact that it is.'),
  agentId: z.string().nullable().describe('Key that spent; null for a person.'),
  decisionId: z.string().nullable().describe('`dec_…`; null for what the account did not spend.'),
  object: z
    .strictObject({
      kind: z.string().describe('Such as `transfer`.'),
      id: z.string().describe('Its id.'),
    })
    .describe('Object of the entry.'),
  refundOf: z
    .strictObject({ kind: z.string().describe('Its kind.'), id: z.string().describe('Its id.') })
    .nullable()
    .describe('Payment that this returns; null for other money.'),
  task: untrustedTextOrNull('Label of its task.'),
  memo: untrustedTextOrNull('Purpose, memo, reference or reason.'),
  transactionHash: z.string().nullable().describe('Hash on the chain, if there is one.'),
})
activityEntry.register(z.globalRegistry, { id: 'ActivityEntry' })

export type ActivityEntry = z.output<typeof activityEntry>

interface Row {
  readonly id: string
  readonly kind: string
  readonly direction: string
  readonly status: string
  readonly asset: string
  readonly units: bigint | null
  readonly asked_units: bigint | null
  readonly asked: string | null
  readonly micros: bigint | null
  readonly counterparty: string | null
  readonly transaction_hash: string | null
  readonly key_id: string | null
  readonly decision_id: string | null
  readonly object_kind: string
  readonly object_id: string
  readonly memo: string | null
  readonly at: Date
  readonly task: string | null
  readonly refund_kind: string | null
  readonly refund_id: string | null
}

/**
 * Money that is moved to a purse is part of the purchase for which it is moved. Further movements of card purchases, escrow,
 * debts and reversals are part of their entry. An FX quote that the wallet paid for is a purchase. A transfer between
 * two wallets of the gateway is an entry of both accounts; the receiver sees it once it is confirmed. A declined card purchase
 * has its own row; any other spend that was denied has its decision alone, which a key sees if it is its own.
 */
const statement: Statement = {
  name: 'activity_list',
  text: `
    select id, kind, direction, status, asset, units, asked_units, facts ->> 'amount' as asked,
      (facts ->> 'usdMicros')::bigint as micros, counterparty, transaction_hash, key_id, decision_id, object_kind, object_id,
      coalesce(memo, note) as memo, at, (decision_known(entry.decision_id)).facts ->> 'task' as task,
      (select f.object_kind from refund f where f.entry_id = entry.id) as refund_kind,
      (select f.object_id from refund f where f.entry_id = entry.id) as refund_id
    from (
      select t.id, case d.operation when 'x402.fx' then 'purchase' else 'transfer' end as kind, 'out' as direction,
        case t.state when 'confirmed' then 'completed' when 'failed' then 'failed' else 'pending' end as status,
        t.token as asset, t.units, null::bigint as asked_units, d.facts, t.destination as counterparty, t.transaction_hash, d.key_id,
        t.decision_id, 'transfer' as object_kind, t.id as object_id, null as memo, t.created_at as at, 'wallet' as room
      from transfer t cross join lateral decision_known(t.decision_id) d
      where t.account_id = $1 and d.operation <> all($14::text[]) and t.route is null
      union all
      select s.id, 'swap', 'out',
        case s.state when 'confirmed' then 'completed' when 'failed' then 'failed' when 'bridging' then 'on_its_way' else 'pending' end,
        s.sell, s.units - s.unsold, null, d.facts, s.buy, s.transaction_hash, s.key_id, s.decision_id, 'swap', s.id, null,
        s.created_at, 'wallet'
      from swap_order s cross join lateral decision_known(s.decision_id) d
      where s.account_id = $1 and s.funding_id is null
      union all
      select s.id || '.in', 'swap', 'in', 'completed', s.buy, s.received, null, null, s.sell, coalesce(s.mint_hash, s.transaction_hash), s.key_id,
        s.decision_id, 'swap', s.id, null, s.created_at, 'wallet'
      from swap_order s
      where s.account_id = $1 and s.state = 'confirmed' and s.funding_id is null
      union all
      select p.id, 'payout', 'out',
        case p.status when 'paid' then 'completed' when 'returned' then 'reversed' when 'failed' then 'failed' else 'on_its_way' end,
        p.asset, p.units, null, d.facts, p.recipient_id, t.transaction_hash, p.key_id, p.decision_id, 'payout', p.id, null,
        p.created_at, 'bank'
      from payout p cross join lateral decision_known(p.decision_id) d
        left join transfer t on t.decision_id = p.decision_id and t.funding_id is null
      where p.account_id = $1
      union all
      select p.id, 'purchase', 'out',
        case p.state when 'settled' then case when p.delivered_at is null then 'undelivered' else 'completed' end
          when 'failed' then case when p.reversed_at is null then 'failed' else 'reversed' end
          else 'pending' end,
        p.asset, coalesce(p.charged, p.units), case when p.scheme in ('upto', 'auth-capture') then p.units end, d.facts, p.origin, p.transaction_hash,
        p.key_id, p.decision_id, 'purchase', p.id, p.purpose,
        p.created_at, 'wallet'
      from purchase p cross join lateral decision_known(p.decision_id) d
      where p.account_id = $1
      union all
      select t.id, 'transfer', 'in', 'completed', t.token, t.units, null, null, sender.address, t.transaction_hash, null, null,
        'transfer', t.id, null, t.created_at, 'wallet'
      from posting p join transfer t on t.decision_id = split_part(p.transaction_id, ':', 1) and t.state = 'confirmed'
        join wallet own on own.address = t.destination join wallet sender on sender.account_id = t.account_id
      where p.destination >= $1 || ':' and p.destination < $1 || ';' and left(p.source, 5) = 'acct_' and left(p.destination, 5) = 'acct_'
        and split_part(p.source, ':', 1) <> split_part(p.destination, ':', 1) and p.transaction_id = t.decision_id || ':settle'
        and own.account_id = $1 and t.account_id <> $1
      union all
      select r.id, 'relay', case when r.destination = own.address then 'in' else 'out' end,
        case r.state when 'confirmed' then 'completed' when 'failed' then 'failed' else 'pending' end,
        r.token, r.units, null, d.facts, case when r.destination = own.address then r.payer else r.destination end,
        r.transaction_hash, d.key_id, r.decision_id, 'relay', r.id, null, r.created_at, 'wallet'
      from relay r cross join lateral decision_known(r.decision_id) d left join wallet own on own.account_id = r.account_id
      where r.account_id = $1
      union all
      select r.id, 'relay', 'in', 'completed', r.token, r.units, null, null, r.payer, r.transaction_hash, null, null, 'relay',
        r.id, null, r.created_at, 'wallet'
      from wallet own join relay r on r.destination = own.address and r.state = 'confirmed'
      where own.account_id = $1 and r.account_id <> $1
      union all
      select d.id, 'deposit', 'in', case when d.rank > 5 then 'reversed' when d.rank = 5 then 'completed' else 'pending' end,
        coalesce(d.asset, v.currency), coalesce(d.units, d.said_units), null, null, null, null, null, null, 'deposit', d.id, null,
        d.created_at, 'bank'
      from deposit d join virtual_account v on v.id = d.virtual_account_id
      where d.account_id = $1
      union all
      select p.transaction_id || '.' || p.ordinal, l.kind, 'in', 'completed', p.asset, p.units, null, null,
        case when l.kind = 'dividend' and l.reference ~ '^[A-Z0-9.]{1,12}$' then l.reference end,
        case when left(l.reference, 2) = '0x' then l.reference end, null, null, l.kind, p.transaction_id || '.' || p.ordinal,
        null, l.at,
        case when l.kind = 'dividend' then 'investing' when split_part(p.destination, ':', 2) = 'bank' then 'bank' else 'wallet' end
      from posting p join ledger_transaction l on l.id = p.transaction_id
      where p.destination >= $1 || ':' and p.destination < $1 || ';'
        and left(p.source, 9) = 'external:' and left(p.destination, 5) = 'acct_'
        and l.kind in ('deposit', 'dividend')
        and not exists (select from deposit d where d.id = l.reference)
      union all
      select p.transaction_id || '.' || p.ordinal, 'transfer', 'out', 'completed', p.asset, p.units, null, null, null,
        case when left(l.reference, 2) = '0x' then l.reference end, null, null, 'withdrawal',
        p.transaction_id || '.' || p.ordinal, null, l.at, 'wallet'
      from posting p join ledger_transaction l on l.id = p.transaction_id
      where p.source >= $1 || ':' and p.source < $1 || ';'
        and left(p.source, 5) = 'acct_' and right(p.source, 5) <> ':held' and left(p.destination, 9) = 'external:'
        and l.kind = 'withdrawal'
      union all
      select p.transaction_id || '.' || p.ordinal, 'shortfall', 'out', 'completed', p.asset, p.units, null, null, null, null, null,
        null, 'wallet', $1, 'Frozen: the chain holds less than the books.', l.at, 'wallet'
      from posting p join ledger_transaction l on l.id = p.transaction_id
      where p.source >= $1 || ':' and p.source < $1 || ';' and right(p.destination, 7) = ':frozen' and l.kind = 'shortfall'
      union all
      select p.transaction_id || '.' || p.ordinal, 'shortfall', 'in', 'completed', p.asset, p.units, null, null, null, null, null,
        null, 'wallet', $1, 'Released: the chain holds it again.', l.at, 'wallet'
      from posting p join ledger_transaction l on l.id = p.transaction_id
      where p.destination >= $1 || ':' and p.destination < $1 || ';' and right(p.source, 7) = ':frozen'
        and l.kind = 'shortfall_recovery'
      union all
      select a.id, 'card', 'out',
        case a.status when 'pending' then 'pending' when 'settled' then 'completed' when 'declined' then 'failed' else 'canceled' end,
        'USD', case a.status when 'pending' then a.approved else a.cleared - a.refunded end, a.units,
        null, a.about ->> 'merchant', null, a.key_id, a.decision_id, 'card_transaction', a.id, null, a.created_at, 'cards'
      from card_authorization a
      where a.account_id = $1 and not a.is_reserve
      union all
      select o.id, 'order', case o.side when 'buy' then 'out' else 'in' end,
        case when o.status in ('new', 'accepted', 'partially_filled') then 'pending'
          when o.filled_cash > 0 then 'completed' when o.status = 'rejected' then 'failed' else 'canceled' end,
        'USD', case when o.status in ('new', 'accepted', 'partially_filled') then o.notional else o.filled_cash end, o.notional,
        null, o.symbol, null, o.key_id, o.decision_id, 'order', o.id, null, o.submitted_at, 'investing'
      from investing_order o
      where o.account_id = $1 and ($2::text is null or o.key_id = $2)
      union all
      select d.id,
        case d.facts ->> 'category' when 'card' then 'card' when 'gasless' then 'relay' when 'invest' then 'order' when 'payout' then 'payout'
          when 'x402' then 'purchase' when 'swap' then 'swap' else 'transfer' end,
        'out', case d.verdict when 'deny' then 'denied' else 'failed' end, d.facts ->> 'asset', 0, null, d.facts,
        coalesce(d.facts #>> '{seller,origin}', d.facts ->> 'symbol', d.facts ->> 'counterparty'), null, d.key_id, d.id,
        'decision', d.id, null, d.at,
        case d.facts ->> 'category' when 'card' then 'cards' when 'invest' then 'investing' when 'payout' then 'bank' else 'wallet' end
      from decision d
      where d.account_id = $1 and d.verdict in ('deny', 'insufficient_funds') and d.operation <> 'cards.authorize'
        and d.facts ->> 'asset' is not null and d.facts ->> 'amount' is not null and ($2::text is null or d.key_id = $2)
    ) entry left join lateral (
      select coalesce(
        (select coalesce(n.memo, n.reason) from spend_note n where n.decision_id = entry.decision_id),
        (select r.memo from request_arrival a join payment_request r on r.id = a.request_id
          where entry.direction = 'in' and a.entry_id = entry.id and a.account_id = $1)
      ) as note
    ) noted on true
    where room = any($3::text[]) and kind = any($4::text[])
      and ($5::timestamptz is null or at >= $5) and ($6::timestamptz is null or at < $6)
      and ($7::timestamptz is null or (at, id collate "C") < ($7, $8::text))
      and ($10::text is null or direction = $10) and ($11::text is null or key_id = $11)
      and ($12::text is null or strpos(lower(counterparty), $12) > 0 or strpos(lower(coalesce(memo, note)), $12) > 0
        or counterparty = any($13::text[]) or object_id = any($13::text[]))
      and status = any($15::text[])
      and ($16::text is null or (decision_known(entry.decision_id)).facts ->> 'task' = $16)
    order by at desc, id collate "C" desc
    limit $9`,
}

/** Position after the last entry of a page. */
export interface ActivityPosition {
  readonly at: Date
  readonly id: string
}

/**
 * Null matches any entry.
 * @property keyId sees only the orders it placed and its own denials; null for a person.
 * @property agentId key that spent.
 * @property statuses statuses to list.
 * @property search part of the counterparty or the memo, in any letter case.
 * @property found counterparties and objects that match the search by a text that is stored sealed.
 */
export interface ActivityQuery {
  readonly accountId: string
  readonly keyId: string | null
  readonly rooms: readonly ActivityRoom[]
  readonly kinds: readonly string[]
  readonly from: Date | null
  readonly to: Date | null
  readonly direction: (typeof activityDirections)[number] | null
  readonly agentId: string | null
  /** Label of the task that the spend was for. */
  readonly task: string | null
  readonly statuses: readonly string[]
  readonly search: string | null
  readonly found: readonly string[]
  readonly after: ActivityPosition | null
  readonly limit: number
}

/**
 * Newest first; entries of the same millisecond by id. @param table values what no decision has valued.
 * @returns the position after the page, null on the last page.
 */
export async function listActivity(
  database: Connection,
  table: RateTable,
  {
    accountId,
    keyId,
    rooms,
    kinds,
    from,
    to,
    direction,
    agentId,
    task,
    statuses,
    search,
    found,
    after,
    limit,
  }: ActivityQuery,
): Promise<{ entries: ActivityEntry[]; next: ActivityPosition | null }> {
  const rows = await database.call<Row>(statement, [
    accountId,
    keyId,
    [...rooms],
    [...kinds],
    from,
    to,
    after?.at ?? null,
    after?.id ?? null,
    limit + 1,
    direction,
    agentId,
    search?.toLowerCase() ?? null,
    [...found],
    [...partOperations],
    [...statuses],
    task,
  ])
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  const next = rows.length > limit && last !== undefined ? { at: last.at, id: last.id } : null
  return { entries: shown.map((row) => toEntry(row, table)), next }
}

const asset = z.custom<Asset>((name) => typeof name === 'string' && name in assetDecimals)

function toEntry(row: Row, table: RateTable): ActivityEntry {
  const { counterparty, units, asked_units: askedUnits } = row
  const symbol = asset.parse(row.asset)
  const formatAmount = (of: bigint) => toDecimal({ asset: symbol, units: of })
  const isVoid = voidStatuses.has(row.status)
  const moved = isVoid ? 0n : units
  const intended = askedUnits ?? units
  const requested =
    row.object_kind === 'decision'
      ? row.asked
      : intended === null || intended === moved
        ? null
        : formatAmount(intended)
  return activityEntry.parse({
    id: row.id,
    at: row.at.toISOString(),
    kind: row.kind,
    direction: row.direction,
    status: row.status,
    amount: moved === null ? null : formatAmount(moved),
    requested,
    asset: symbol,
    usd:
      moved === null
        ? null
        : toUsd(table, { asset: symbol, units: moved }, isVoid ? null : countedMicros(row)),
    counterparty: counterparty !== null && isAddress(counterparty) ? getAddress(counterparty) : counterparty,
    contact: null,
    agentId: row.key_id,
    decisionId: row.decision_id,
    object: { kind: row.object_kind, id: row.object_id },
    refundOf:
      row.refund_kind === null || row.refund_id === null
        ? null
        : { kind: row.refund_kind, id: row.refund_id },
    task: row.task,
    memo: row.memo,
    transactionHash: row.transaction_hash,
  })
}

/** Value that the decision counted. A purchase that cost less than was reserved counts for that part. */
function countedMicros({ kind, micros, units, asked_units: asked }: Row): bigint | null {
  return kind === 'purchase' && micros !== null && units !== null && asked !== null && asked > 0n
    ? (micros * units) / asked
    : micros
}

/** @param micros value that the decision counted; null: none. */
function toUsd(table: RateTable, money: Money, micros: bigint | null): string | null {
  if (money.asset === 'USD') return toDecimal(money)
  const worth = micros ?? worthInMicros(table, money)
  return worth === null ? null : formatUsd(worth)
}
