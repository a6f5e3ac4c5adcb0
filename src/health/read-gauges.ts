/**
 * How the deployment is: what waits, what differs, how far the chain is behind. Reads alone, each bounded in what it costs.
 * May import the base and ports; knows the tables of all rooms, and nothing of who asks.
 */
import { alarmDomains } from '../alarms/alarms.ts'
import type { Clock } from '../base/clock.ts'
import { decimalOf, stablecoins } from '../money/money.ts'
import type { Chain } from '../providers/chain.ts'
import type { Gauge } from '../providers/metrics.ts'
import type { Database, Statement } from '../storage/database.ts'

/** What is read. */
export interface GaugeDependencies {
  readonly database: Pick<Database, 'call' | 'connections'>
  readonly chain: Pick<Chain, 'latestBlockAt'>
  readonly clock: Clock
}

/** Each has a partial index over what is open, so that a long history costs nothing. */
const waiting: Statement = {
  name: 'gauge_waiting',
  text: `select
    (select count(*) from transfer where state in ('reserved', 'submitted', 'settlement_pending')) as transfers,
    (select count(*) from relay where state in ('reserved', 'submitted', 'settlement_pending')) as relays,
    (select count(*) from payment where state in ('taking', 'pending')) as payments,
    (select count(*) from reservation where status = 'reserved') as holds,
    (select count(*) from investing_order where status in ('new', 'accepted', 'partially_filled')) as orders,
    (select count(*) from approval where status = 'pending' and expires_at > $1) as approvals,
    (select count(*) from card_early) as webhooks,
    (select count(*) from chain_cursor where verify_since is not null) as verifications,
    (select count(*) from debt where owed > 0) as debts,
    (select count(*) from card_settlement where status = 'refused') as settlements`,
}

const drift: Statement = {
  name: 'gauge_drift',
  text: `select token, count(*) as wallets, sum(abs(booked - on_chain))::text as units from wallet_drift group by token`,
}

const shortfall: Statement = {
  name: 'gauge_shortfall',
  text: `select token, sum(frozen + uncovered)::text as units from wallet_shortfall group by token`,
}

const alarms: Statement = {
  name: 'gauge_alarms',
  text: 'select domain, count(*) as count from alarm where resolved_at is null group by domain',
}

/** How long a part may take to answer. Whoever scrapes waits for all of it. */
const PATIENCE_MS = 2_000

/** Reads every gauge. A part that cannot be read is told as `up` 0, and its gauges are left out. Never throws. */
export async function readGauges({ database, chain, clock }: GaugeDependencies): Promise<readonly Gauge[]> {
  const [stored, lag] = await Promise.all([
    settled(readStored(database, clock())),
    settled(readLag(chain, clock)),
  ])
  return [
    up('database', stored !== null),
    up('chain', lag !== null),
    ...(stored ?? []),
    ...(lag ?? []),
    ...connectionsOf(database),
  ]
}

async function readStored(database: Pick<Database, 'call'>, now: Date): Promise<Gauge[]> {
  const [[depths], drifts, shortfalls, raised] = await Promise.all([
    database.call<Record<string, bigint>>(waiting, [now]),
    database.call<{ token: string; wallets: bigint; units: string }>(drift, []),
    database.call<{ token: string; units: string }>(shortfall, []),
    database.call<{ domain: string; count: bigint }>(alarms, []),
  ])
  const missing = new Map(shortfalls.map((row) => [row.token, BigInt(row.units)]))
  const open = new Map(raised.map(({ domain, count }) => [domain, Number(count)]))
  const units = new Map(drifts.map((row) => [row.token, BigInt(row.units)]))
  const wallets = new Map(drifts.map((row) => [row.token, Number(row.wallets)]))
  return [
    ...Object.entries(depths ?? {}).map(([kind, count]) => ({
      name: 'open',
      help: 'What has not ended yet, of the whole deployment: transfers, relays, x402 payments, holds, orders, approvals that wait, webhooks that came early, debts, card settlements that the chain refused, chains whose latest settlements are looked for again after a reorganization.',
      labels: { kind },
      value: Number(count),
    })),
    ...alarmDomains.map((domain) => ({
      name: 'alarms',
      help: 'Reports and rows that do not fit and wait for a person: GET /api/admin/alarms.',
      labels: { domain },
      value: open.get(domain) ?? 0,
    })),
    ...stablecoins.flatMap((asset) => [
      {
        name: 'ledger_drift',
        help: 'By how much ledger and chain differ, of all wallets together, in whole coins.',
        labels: { asset },
        // A figure to look at and to raise alarms by; nothing is booked by it.
        value: Number(decimalOf({ asset, units: units.get(asset) ?? 0n })),
      },
      {
        name: 'ledger_drift_wallets',
        help: 'Wallets whose ledger and chain differ.',
        labels: { asset },
        value: wallets.get(asset) ?? 0,
      },
      {
        name: 'wallet_shortfall',
        help: 'Money in the books that the chain no longer holds, of all wallets together, in whole coins. Alert above zero.',
        labels: { asset },
        value: Number(decimalOf({ asset, units: missing.get(asset) ?? 0n })),
      },
    ]),
  ]
}

async function readLag(chain: GaugeDependencies['chain'], clock: Clock): Promise<Gauge[]> {
  const at = await chain.latestBlockAt()
  return [
    {
      name: 'chain_block_age_seconds',
      help: 'How old the latest block is. A local chain closes one only when something happens on it.',
      labels: {},
      value: Math.max(0, clock().getTime() - at.getTime()) / 1_000,
    },
  ]
}

function connectionsOf({ connections }: Pick<Database, 'connections'>): Gauge[] {
  return Object.entries(connections()).map(([state, value]) => ({
    name: 'database_connections',
    help: 'Connections of this process to the database, and calls that wait for one.',
    labels: { state },
    value,
  }))
}

function up(part: string, isUp: boolean): Gauge {
  return {
    name: 'up',
    help: 'Whether a part could be read for this scrape.',
    labels: { part },
    value: isUp ? 1 : 0,
  }
}

/** What was read, or null where it failed or took too long. */
async function settled<Value>(reading: Promise<Value>): Promise<Value | null> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), PATIENCE_MS)
  })
  const read = await Promise.race([reading.catch(() => null), late])
  clearTimeout(timer)
  return read
}
