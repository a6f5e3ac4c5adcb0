/**
 * Activity: one statement of what came into an account and left it, from every room. It only reads, and it may import the
 * base and the ports. The rooms keep their own lists, which say more of each entry.
 */
import { getAddress, isAddress } from 'viem'
import { z } from 'zod'
import { untrustedTextOrNull } from '../base/untrusted-text.ts'
import { type Asset, assetDecimals, decimalOf } from '../money/money.ts'
import type { Connection, Statement } from '../storage/database.ts'

export const activityKinds = [
  'transfer',
  'gasless',
  'x402',
  'purchase',
  'deposit',
  'withdrawal',
  'card',
  'order',
  'dividend',
] as const

/** Rooms that entries come from. A key sees a room with its scope. */
export const activityRooms = ['wallet', 'bank', 'cards', 'investing'] as const
export type ActivityRoom = (typeof activityRooms)[number]

export const activityEntry = z.strictObject({
  id: z.string().describe('Id of the transfer, purchase, order or deposit.'),
  kind: z.enum(activityKinds).describe('Kind of the entry.'),
  direction: z
    .enum(['in', 'out', 'none'])
    .describe('`in`: received, `out`: spent, `none`: a relayed payment of somebody else’s money.'),
  status: z
    .enum(['pending', 'completed', 'failed', 'canceled', 'reversed'])
    .describe('`pending` may still change; the others are final.'),
  asset: z.string().describe('Asset by symbol.'),
  amount: z
    .string()
    .nullable()
    .describe('Decimal string of the asset; null while a deposit’s amount is unknown.'),
  counterparty: untrustedTextOrNull('EVM address, merchant or ticker; null if there is none.'),
  transactionHash: z.string().nullable().describe('Hash on the chain; null if there is none.'),
  decisionId: z
    .string()
    .nullable()
    .describe('`dec_…`: the policy decision; null for what the account did not spend.'),
  at: z.string().describe('When it began, ISO 8601 UTC.'),
})
activityEntry.register(z.globalRegistry, { id: 'ActivityEntry' })

interface Row {
  readonly id: string
  readonly kind: string
  readonly direction: string
  readonly status: string
  readonly asset: string
  readonly units: bigint | null
  readonly counterparty: string | null
  readonly transaction_hash: string | null
  readonly decision_id: string | null
  readonly at: Date
}

/**
 * Money that is moved to a purse is part of the purchase for which it is moved. Further movements of card purchases, debts and reversals are part of their entry. A transfer between two wallets of the gateway is
 * an entry of both accounts; the receiver sees it once it is confirmed.
 */
const statement: Statement = {
  name: 'activity_list',
  text: `
    select id, kind, direction, status, asset, units, counterparty, transaction_hash, decision_id, at from (
      select t.id, case d.operation when 'x402.fx' then 'x402' else 'transfer' end as kind, 'out' as direction,
        case t.state when 'confirmed' then 'completed' when 'failed' then 'failed' else 'pending' end as status,
        t.token as asset, t.units, t.destination as counterparty, t.transaction_hash, t.decision_id, t.created_at as at,
        'wallet' as room
      from transfer t join decision d on d.id = t.decision_id
      where t.account_id = $1 and d.operation <> 'purchases.buy'
      union all
      select p.id, 'purchase', 'out',
        case p.state when 'settled' then 'completed' when 'failed' then case when p.reversed_at is null then 'failed' else 'reversed' end
          else 'pending' end,
        p.asset, p.units, p.origin, p.transaction_hash, p.decision_id, p.created_at, 'wallet'
      from purchase p
      where p.account_id = $1
      union all
      select t.id, 'transfer', 'in', 'completed', t.token, t.units, sender.address, t.transaction_hash, null, t.created_at, 'wallet'
      from wallet own join transfer t on t.destination = own.address and t.state = 'confirmed'
        join wallet sender on sender.account_id = t.account_id
      where own.account_id = $1 and t.account_id <> $1
      union all
      select r.id, 'gasless', case when r.destination = own.address then 'in' else 'none' end,
        case r.state when 'confirmed' then 'completed' when 'failed' then 'failed' else 'pending' end,
        r.token, r.units, case when r.destination = own.address then r.payer else r.destination end,
        r.transaction_hash, r.decision_id, r.created_at, 'wallet'
      from relay r left join wallet own on own.account_id = r.account_id
      where r.account_id = $1
      union all
      select r.id, 'gasless', 'in', 'completed', r.token, r.units, r.payer, r.transaction_hash, null, r.created_at, 'wallet'
      from wallet own join relay r on r.destination = own.address and r.state = 'confirmed'
      where own.account_id = $1 and r.account_id <> $1
      union all
      select d.id, 'deposit', 'in', case when d.rank > 5 then 'reversed' when d.rank = 5 then 'completed' else 'pending' end,
        coalesce(d.asset, v.currency), coalesce(d.units, d.said_units), null, null, null, d.created_at, 'bank'
      from deposit d join virtual_account v on v.id = d.virtual_account_id
      where d.account_id = $1
      union all
      select p.transaction_id || '.' || p.ordinal, l.kind, 'in', 'completed', p.asset, p.units, null,
        case when left(l.reference, 2) = '0x' then l.reference end, null, l.at,
        case when l.kind = 'dividend' then 'investing' when split_part(p.destination, ':', 2) = 'bank' then 'bank' else 'wallet' end
      from posting p join ledger_transaction l on l.id = p.transaction_id
      where p.destination >= $1 || ':' and p.destination < $1 || ';'
        and left(p.source, 9) = 'external:' and left(p.destination, 5) = 'acct_'
        and l.kind in ('deposit', 'dividend')
        and not exists (select from deposit d where d.id = l.reference)
      union all
      select p.transaction_id || '.' || p.ordinal, 'withdrawal', 'out', 'completed', p.asset, p.units, null,
        case when left(l.reference, 2) = '0x' then l.reference end, null, l.at, 'wallet'
      from posting p join ledger_transaction l on l.id = p.transaction_id
      where p.source >= $1 || ':' and p.source < $1 || ';'
        and left(p.source, 5) = 'acct_' and right(p.source, 5) <> ':held' and left(p.destination, 9) = 'external:'
        and l.kind = 'withdrawal'
      union all
      select a.id, 'card', 'out',
        case a.status when 'pending' then 'pending' when 'settled' then 'completed' when 'declined' then 'failed' else 'canceled' end,
        'USD', case a.status when 'pending' then a.approved when 'settled' then a.cleared - a.refunded else a.units end,
        a.about ->> 'merchant', null, a.decision_id, a.created_at, 'cards'
      from card_authorization a
      where a.account_id = $1
      union all
      select o.id, 'order', case o.side when 'buy' then 'out' else 'in' end,
        case when o.status in ('new', 'accepted', 'partially_filled') then 'pending'
          when o.filled_cash > 0 then 'completed' when o.status = 'rejected' then 'failed' else 'canceled' end,
        'USD', case when o.filled_cash > 0 then o.filled_cash else o.notional end,
        o.symbol, null, o.decision_id, o.submitted_at, 'investing'
      from investing_order o
      where o.account_id = $1 and ($2::text is null or o.key_id = $2)
    ) entry
    where room = any($3::text[]) and kind = any($4::text[])
      and ($5::timestamptz is null or at >= $5) and ($6::timestamptz is null or at < $6)
      and ($7::timestamptz is null or (at, id collate "C") < ($7, $8::text))
    order by at desc, id collate "C" desc
    limit $9`,
}

/** Position after the last entry of a page. */
export interface ActivityPosition {
  readonly at: Date
  readonly id: string
}

/** @property keyId sees only the orders it placed; null for a person. */
export interface ActivityQuery {
  readonly accountId: string
  readonly keyId: string | null
  readonly rooms: readonly ActivityRoom[]
  readonly kinds: readonly string[]
  readonly from: Date | null
  readonly to: Date | null
  readonly after: ActivityPosition | null
  readonly limit: number
}

/** Newest first; entries of the same millisecond by id. @returns the position after the page, null on the last page. */
export async function listActivity(
  database: Connection,
  { accountId, keyId, rooms, kinds, from, to, after, limit }: ActivityQuery,
): Promise<{ entries: z.output<typeof activityEntry>[]; next: ActivityPosition | null }> {
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
  ])
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  const next = rows.length > limit && last !== undefined ? { at: last.at, id: last.id } : null
  return { entries: shown.map(entryOf), next }
}

const asset = z.custom<Asset>((name) => typeof name === 'string' && name in assetDecimals)

function entryOf(row: Row): z.output<typeof activityEntry> {
  const { counterparty } = row
  return activityEntry.parse({
    id: row.id,
    kind: row.kind,
    direction: row.direction,
    status: row.status,
    asset: row.asset,
    amount: row.units === null ? null : decimalOf({ asset: asset.parse(row.asset), units: row.units }),
    counterparty: counterparty !== null && isAddress(counterparty) ? getAddress(counterparty) : counterparty,
    transactionHash: row.transaction_hash,
    decisionId: row.decision_id,
    at: row.at.toISOString(),
  })
}
