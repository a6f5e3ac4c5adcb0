/**
 * Statements: what an account had, what came and left, and what it has then, from the postings of the ledger alone. It only reads; it
 * may import the base, the books and the ports. Invariants: an asset's opening balance and its movements add up to its closing balance;
 * every transaction of the ledger that changed what the account has is in one movement of each asset, and no other is.
 */
import { z } from 'zod'
import type { Json } from '../../core/base/json.ts'
import { untrustedTextOrNull } from '../../core/base/untrusted-text.ts'
import { Failure } from '../../core/failures/failure.ts'
import { assetDecimals } from '../../core/money/money.ts'
import { formatValue, nameValue, type Value } from '../../core/money/shares.ts'
import type { Connection, Statement as Query } from '../../storage/database.ts'
import type { PastCalendar } from './past-calendar.ts'
import type { Period } from './period.ts'

/** A statement of more movements is refused: a shorter period has fewer. */
const MAX_MOVEMENTS = 20_000

export const movementView = z.strictObject({
  id: z.string().describe('Id of the booking; one booking may move two assets.'),
  at: z.string().describe('ISO 8601 UTC.'),
  direction: z.enum(['in', 'out']).describe('Into the account, or out of it.'),
  amount: z.string().describe('What moved, with its fee.'),
  asset: z.string().describe('Asset by symbol.'),
  usd: z.string().nullable().describe('Worth in USD at the time; null if no rate was recorded.'),
  rate: z.string().nullable().describe('USD per unit of the asset at the time; null likewise.'),
  fee: z.string().describe('Fee in the amount.'),
  counterparty: untrustedTextOrNull('Name, origin, ticker or EVM address.'),
  contact: untrustedTextOrNull('Name of the contact that it is.'),
  memo: untrustedTextOrNull('Purpose or reference.'),
  task: untrustedTextOrNull('Label of its task.'),
  agentId: z.string().nullable().describe('Key that spent; null for a person, and for what came in.'),
  category: z.string().describe('Way of paying of a spend, such as `card`; otherwise the kind of booking.'),
  object: z
    .strictObject({ kind: z.string().describe('Such as `purchase`.'), id: z.string().describe('Its id.') })
    .describe('Object that it belongs to.'),
  refundOf: z
    .strictObject({ kind: z.string().describe('Its kind.'), id: z.string().describe('Its id.') })
    .nullable()
    .describe('Payment that this returns; null for other money.'),
  transactionHash: z.string().nullable().describe('Hash on the chain, if there is one.'),
  decisionId: z.string().nullable().describe('Decision that allowed the payment; null for what came in.'),
})
movementView.register(z.globalRegistry, { id: 'Movement' })
export type Movement = z.output<typeof movementView>

export const paymentView = z.strictObject({
  id: z.string().describe('Id of its movement.'),
  asset: z.string().describe('Asset of its movement.'),
  agent: untrustedTextOrNull('Name of the key that paid; null for a person.'),
  approvalId: z.string().nullable().describe('Approval that it was made under; null: nobody was asked.'),
  agreed: z.array(z.string()).describe('People who agreed: `acct_…`'),
  decision: z
    .strictObject({
      at: z.string().describe('ISO 8601 UTC.'),
      operation: z.string().describe('Such as `wallets.transfer`.'),
      verdict: z.string().describe('`allow`.'),
      policyVersion: z.int().nullable().describe('Version of the key’s policy; null for a person.'),
      policyHash: z.string().nullable().describe('SHA-256 of that policy, hex.'),
      verified: z.boolean().describe('True if its receipt is signed by this gateway and says the same.'),
      sequence: z.int().nullable().describe('Position in the chain of decisions; null until it is sealed.'),
      hash: z.string().nullable().describe('Hash in that chain, hex.'),
    })
    .nullable()
    .describe('The decision on it; null where none was needed.'),
})
paymentView.register(z.globalRegistry, { id: 'Payment' })
export type Payment = z.output<typeof paymentView>

export const statementView = z.strictObject({
  period: z.string().describe('As asked for.'),
  from: z.string().describe('Start, ISO 8601 UTC.'),
  to: z.string().describe('End, exclusive.'),
  accountId: z.string().describe('`acct_…`'),
  balances: z
    .array(
      z.strictObject({
        asset: z.string().describe('Asset by symbol.'),
        opening: z.string().describe('All of it at the start, held money too.'),
        closing: z.string().describe('All of it at the end.'),
      }),
    )
    .describe('Assets that the account had or moved.'),
  movements: z.array(movementView).describe('What came and left, oldest first.'),
  payments: z
    .array(paymentView)
    .optional()
    .describe('With `pages=each`: who paid each movement out, and the decision on it.'),
})
export type AccountStatement = z.output<typeof statementView>

interface Row {
  /** Units by asset at the end of the period, the same in every row. */
  readonly closing: Json
  /** Null in the one row of a period without movements, as are all below. */
  readonly id: string | null
  readonly kind: string | null
  readonly at: Date | null
  readonly asset: string | null
  readonly units: bigint | null
  readonly object_kind: string | null
  readonly object_id: string | null
  readonly counterparty: string | null
  readonly memo: string | null
  readonly transaction_hash: string | null
  readonly fee_units: bigint | null
  readonly key_id: string | null
  readonly task: string | null
  readonly category: string | null
  readonly rate: string | null
  readonly refund_kind: string | null
  readonly refund_id: string | null
  readonly decision_id: string | null
}

/**
 * The account's postings from or to anybody else since the start, summed by transaction and asset. A spend is booked under its decision,
 * everything else under its object; the other side of a transfer between two accounts sees the transfer, not the decision behind it.
 */
const query: Query = {
  name: 'statement_movements',
  text: `
    with moved as (
      select p.transaction_id, p.asset, -p.units as units, p.ordinal from posting p
      where p.source >= $1 || ':' and p.source < $1 || ';' and left(p.source, 5) = 'acct_' and left(p.destination, 5) <> 'acct_'
      union all
      select p.transaction_id, p.asset, p.units, p.ordinal from posting p
      where p.destination >= $1 || ':' and p.destination < $1 || ';' and left(p.source, 9) = 'external:'
        and left(p.destination, 5) = 'acct_'
      union all
      select p.transaction_id, p.asset, p.units, p.ordinal from posting p
      where p.destination >= $1 || ':' and p.destination < $1 || ';' and left(p.destination, 5) = 'acct_'
        and left(p.source, 5) <> 'acct_' and left(p.source, 9) <> 'external:'
      union all
      select p.transaction_id, p.asset, -p.units, p.ordinal from posting p
      where p.source >= $1 || ':' and p.source < $1 || ';' and left(p.source, 5) = 'acct_' and left(p.destination, 5) = 'acct_'
        and split_part(p.source, ':', 1) <> split_part(p.destination, ':', 1)
      union all
      select p.transaction_id, p.asset, p.units, p.ordinal from posting p
      where p.destination >= $1 || ':' and p.destination < $1 || ';' and left(p.source, 5) = 'acct_'
        and left(p.destination, 5) = 'acct_' and split_part(p.source, ':', 1) <> split_part(p.destination, ':', 1)
    ), net as (
      select l.id, l.kind, l.reference, l.at, m.asset, sum(m.units)::bigint as units,
        array_agg(m.transaction_id || '.' || m.ordinal) as entries
      from moved m join ledger_transaction l on l.id = m.transaction_id
      where l.at >= $2
      group by l.id, l.kind, l.reference, l.at, m.asset having sum(m.units) <> 0
    ), closing as (
      select c.asset, sum(c.units)::text as units from (
        select asset, units from balance where account >= $1 || ':' and account < $1 || ';'
        union all
        select asset, -units from net where at >= $3
      ) c group by c.asset
    )
    select (select coalesce(jsonb_object_agg(asset, units), '{}') from closing) as closing, net.id, net.kind, net.at, net.asset, net.units, o.kind as object_kind, o.id as object_id,
      coalesce(o.counterparty, case when net.kind = 'dividend' then net.reference end, (
        select p.origin from purchase p where r.object_kind = 'purchase' and p.account_id = $1 and p.id = r.object_id
      )) as counterparty,
      coalesce(o.memo, (
        select q.memo from request_arrival a join payment_request q on q.id = a.request_id
        where a.account_id = $1 and net.units > 0 and a.entry_id = any (net.entries || o.id) limit 1
      ), (
        select n.memo from spend_note n where n.account_id = $1 and n.decision_id = coalesce(o.decision_id, net.reference)
      )) as memo,
      coalesce(o.hash, case when left(net.reference, 2) = '0x' then net.reference end) as transaction_hash, o.fee as fee_units,
      case when net.units < 0 then d.key_id end as key_id, d.facts ->> 'task' as task, d.facts ->> 'category' as category,
      case when d.facts ->> 'asset' = net.asset then d.facts ->> 'usdRate' end as rate,
      r.object_kind as refund_kind, r.object_id as refund_id, case when net.units < 0 then d.id end as decision_id
    from (select) one
    left join (select * from net where net.at < $3 order by net.at, net.id, net.asset limit $4) net on true
    left join lateral (
      select 'purchase' as kind, p.id, p.decision_id, p.origin as counterparty, p.purpose as memo, p.transaction_hash as hash,
        null::bigint as fee
      from purchase p where p.account_id = $1 and (p.decision_id = net.reference or p.id = net.reference)
      union all
      select 'payout', p.id, p.decision_id, p.recipient_id, null, null, p.fee_units
      from payout p where p.account_id = $1 and (p.decision_id = net.reference or p.id = net.reference)
      union all
      select 'card_transaction', a.id, a.decision_id, a.about ->> 'merchant', null, null, null
      from card_authorization a where a.account_id = $1 and a.id = net.reference
      union all
      select 'card_transaction', a.id, a.decision_id, a.about ->> 'merchant', null,
        (select t.transaction_hash from transfer t where t.decision_id = s.decision_id), null
      from card_settlement s join card_authorization a on a.id = s.authorization_id
      where s.account_id = $1 and s.decision_id = net.reference
      union all
      select 'card_transaction', a.id, a.decision_id, a.about ->> 'merchant', null, null, null
      from debt b join card_authorization a on a.id = b.reference
      where b.account_id = $1 and b.id = net.reference and b.kind = 'card'
      union all
      select 'card_transaction', a.id, a.decision_id, a.about ->> 'merchant', null, null, null
      from debt b join card_settlement s on s.id = b.reference join card_authorization a on a.id = s.authorization_id
      where b.account_id = $1 and b.id = net.reference and b.kind = 'settlement'
      union all
      select 'deposit', b.reference, null, null, null, null, null
      from debt b where b.account_id = $1 and b.id = net.reference and b.kind = 'deposit'
      union all
      select 'order', i.id, i.decision_id, i.symbol, null, null, null
      from investing_order i where i.account_id = $1 and (i.decision_id = net.reference or i.id = net.reference)
      union all
      select 'relay', r.id, r.decision_id, r.destination, null, r.transaction_hash, null
      from relay r where r.account_id = $1 and r.decision_id = net.reference
      union all
      select 'deposit', b.id, null, null, null, null, null from deposit b where b.account_id = $1 and b.id = net.reference
      union all
      select 'channel', c.id, null, c.origin, null, null, null from channel c where c.account_id = $1 and c.id = net.reference
      union all
      select 'swap', s.id, s.decision_id, case net.asset when s.sell then s.buy else s.sell end, null, s.transaction_hash, null
      from swap_order s where s.account_id = $1
        and (s.funding_id = net.reference or s.funding_id is null and s.decision_id = net.reference or s.id = net.reference)
      union all
      select 'transfer', t.id, t.decision_id, t.destination, null, t.transaction_hash, null
      from transfer t where t.account_id = $1 and (t.funding_id is null and t.decision_id = net.reference or t.id = net.reference)
      union all
      select 'transfer', t.id, null, w.address, null, t.transaction_hash, null
      from transfer t left join wallet w on w.account_id = t.account_id
      where t.account_id <> $1 and net.units > 0 and (t.funding_id is null and t.decision_id = net.reference or t.id = net.reference)
      limit 1
    ) o on true
    left join lateral decision_known(coalesce(o.decision_id, net.reference)) d on d.account_id = $1
    left join lateral (
      select f.object_kind, f.object_id from refund f where f.account_id = $1 and f.entry_id = any (net.entries) limit 1
    ) r on true
    order by net.at, net.id, net.asset`,
}

/** Kinds of bookings that return a payment, which is then the object. */
const returns: ReadonlySet<string> = new Set([
  'card_refund',
  'card_return',
  'payout_return',
  'purchase_reversal',
  'transfer_reversal',
  'channel_return',
])

/** Kinds of bookings that are called otherwise where no spend of this account names them. */
const kindNames: ReadonlyMap<string, string> = new Map([['settle', 'transfer']])

/** Dollars, and tokens that stand for one. */
const dollars: ReadonlySet<string> = new Set(['USD', 'USDC', 'USDT', 'PYUSD'])
const RATE_DIGITS = 6

const unitsByAsset = z.record(z.string(), z.string().transform(BigInt))

/** A row with a movement. */
type Moved = Row & {
  readonly id: string
  readonly kind: string
  readonly at: Date
  readonly units: bigint
} & {
  readonly asset: Value['asset']
}

function isMoved(row: Row): row is Moved {
  return row.id !== null
}

/**
 * Reads the statement of a period, in one snapshot: balances are those of now, less what has moved since. @param calendar that the
 * period and the movements' times are of; the ledger has the clock's.
 * @throws Failure `invalid_request` when it has too many movements.
 */
export async function readStatement(
  connection: Connection,
  {
    accountId,
    period: { text, from, to },
    calendar: { onClock, onCalendar },
  }: { readonly accountId: string; readonly period: Period; readonly calendar: PastCalendar },
): Promise<AccountStatement> {
  const rows = await connection.call<Row>(query, [accountId, onClock(from), onClock(to), MAX_MOVEMENTS + 1])
  if (rows.length > MAX_MOVEMENTS)
    throw new Failure('invalid_request', `It has more than ${MAX_MOVEMENTS} movements.`, {
      hint: 'Ask for fewer days, such as 2026-11-01..2026-11-07.',
    })
  const closing = unitsByAsset.parse(rows[0]?.closing)
  const moved = rows.filter(isMoved)
  const opening = { ...closing }
  for (const { asset, units } of moved) opening[asset] = (opening[asset] ?? 0n) - units
  const known = new Set([...Object.keys(closing), ...moved.map(({ asset }) => asset)])
  const shown = [...known].filter(isAsset).filter((asset) => {
    const isEmpty = (closing[asset] ?? 0n) === 0n && (opening[asset] ?? 0n) === 0n
    return !isEmpty || moved.some((row) => row.asset === asset)
  })
  return {
    period: text,
    from: from.toISOString(),
    to: to.toISOString(),
    accountId,
    balances: shown.sort(compareAssets).map((asset) => ({
      asset: nameValue({ asset }),
      opening: formatValue({ asset, units: opening[asset] ?? 0n }),
      closing: formatValue({ asset, units: closing[asset] ?? 0n }),
    })),
    movements: moved.map((row) => viewMovement({ ...row, at: onCalendar(row.at) })),
  }
}

function isAsset(name: string): name is Value['asset'] {
  return name in assetDecimals || name.startsWith('equity:')
}

/** Money before shares, each by name. */
function compareAssets(one: string, other: string): number {
  const [first, second] = [one, other].map((asset) => `${asset in assetDecimals ? 0 : 1}${asset}`)
  return (first ?? '') < (second ?? '') ? -1 : 1
}

function viewMovement(row: Moved): Movement {
  const { asset, units, refund_kind, refund_id } = row
  const value = { asset, units: units < 0n ? -units : units }
  const object = { kind: row.object_kind ?? row.kind, id: row.object_id ?? row.id }
  const rate = dollars.has(asset) ? (row.rate ?? '1') : row.rate
  return {
    id: row.id,
    at: row.at.toISOString(),
    direction: units < 0n ? 'out' : 'in',
    amount: formatValue(value),
    asset: nameValue({ asset }),
    usd: rate === null ? null : worth(formatValue(value), rate),
    rate,
    fee: formatValue({ asset, units: countFee(row) }),
    counterparty: row.counterparty,
    contact: null,
    memo: row.memo,
    task: row.task,
    agentId: row.key_id,
    category: row.category ?? kindNames.get(row.kind) ?? row.kind,
    object,
    refundOf:
      refund_kind !== null && refund_id !== null
        ? { kind: refund_kind, id: refund_id }
        : units > 0n && returns.has(row.kind)
          ? object
          : null,
    transactionHash: row.transaction_hash,
    decisionId: row.decision_id,
  }
}

/** What leaves with the other end of a bridge is its fee. */
function countFee({ kind, units, fee_units }: Moved): bigint {
  if (units >= 0n) return 0n
  return kind === 'bridge' ? -units : (fee_units ?? 0n)
}

/** The product of two decimals, rounded half up to millionths of a dollar. */
function worth(amount: string, rate: string): string {
  const [a, b] = [parseDecimal(amount), parseDecimal(rate)]
  const digits = a.digits + b.digits
  const product = a.units * b.units
  const micros =
    digits <= RATE_DIGITS
      ? product * 10n ** BigInt(RATE_DIGITS - digits)
      : (product + 5n * 10n ** BigInt(digits - RATE_DIGITS - 1)) / 10n ** BigInt(digits - RATE_DIGITS)
  return formatValue({ asset: 'USDC', units: micros })
}

function parseDecimal(text: string): { readonly units: bigint; readonly digits: number } {
  const [whole = '0', fraction = ''] = text.split('.')
  return { units: BigInt(whole + fraction), digits: fraction.length }
}
