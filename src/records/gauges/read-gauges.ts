/**
 * Health gauges of the deployment: backlogs, ledger drift and chain lag. Read-only, with bounded cost. May import the
 * base and ports; reads tables of all domains.
 */
import { alarmDomains } from '../../books/alarms/alarms.ts'
import type { Clock } from '../../core/base/clock.ts'
import { type Cancel, timers } from '../../core/base/timers.ts'
import type { ChainName } from '../../core/money/chains.ts'
import { stablecoins, toDecimal } from '../../core/money/money.ts'
import type { Chain } from '../../providers/chain/port.ts'
import type { Gauge } from '../../providers/metrics/port.ts'
import { countOwnersLeft } from '../../rails/wallets/owners/owner-store.ts'
import type { Database, Statement } from '../../storage/database.ts'
import { readCardFloat } from './card-float.ts'

export interface GaugeDependencies {
  readonly database: Pick<Database, 'call' | 'connections'>
  readonly chains: {
    readonly all: readonly Pick<Chain, 'name' | 'latestBlockAt'>[]
    readonly absent: readonly string[]
  }
  readonly clock: Clock
  readonly settings: { readonly anchorChain: ChainName | null }
}

/** Each count uses a partial index over open rows, so that history costs nothing. */
const backlog: Statement = {
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
  text: `select chain, token, count(*) as wallets, sum(abs(booked - on_chain))::text as units
    from wallet_drift group by chain, token`,
}

const shortfall: Statement = {
  name: 'gauge_shortfall',
  text: `select chain, token, sum(frozen + uncovered)::text as units from wallet_shortfall group by chain, token`,
}

const alarms: Statement = {
  name: 'gauge_alarms',
  text: 'select domain, count(*) as count from alarm where resolved_at is null group by domain',
}

/** The end of the last anchored day; of the day before the first, while none is; null while there is nothing to anchor. */
const anchored: Statement = {
  name: 'gauge_anchored',
  text: `select coalesce(max(day) filter (where state = 'confirmed') + 1, min(day))::text as until from decision_anchor`,
}

/** Safes that a former key is needed for after a replacement: those of a chain that was added. */
const owners: Statement = {
  name: 'gauge_owners',
  text: `select c.chain, (select count(*) from owner_swap s where s.chain = c.chain and s.state in ('new', 'sent') and s.signature is null) as count
    from unnest($1::text[]) as c (chain)`,
}

const openRotation: Statement = {
  name: 'gauge_owner_rotation',
  text: 'select to_owner from owner_rotation where finished_at is null',
}

/** Time limit per source, because a scrape waits for all of them. */
const READ_TIMEOUT_MS = 2_000

/** Reads all gauges. A source that fails reports `up` 0, and its gauges are omitted. Never throws. */
export async function readGauges({
  database,
  chains,
  clock,
  settings,
}: GaugeDependencies): Promise<readonly Gauge[]> {
  const [stored, ...lags] = await Promise.all([
    readInTime(readStored({ database, chains, settings }, clock())),
    ...chains.all.map((chain) => readInTime(readLag(chain, clock))),
  ])
  return [
    up('database', stored !== null),
    ...chains.all.map(({ name }, at) => up(at === 0 ? 'chain' : `chain_${name}`, lags[at] !== null)),
    ...chains.absent.map((name) => up(`chain_${name}`, false)),
    ...(stored ?? []),
    ...lags.flatMap((lag) => lag ?? []),
    ...gaugeConnections(database),
  ]
}

/** Seconds since the beginning of a UTC day. */
function readAge(day: string, now: Date): number {
  return Math.max(0, now.getTime() - Date.parse(`${day}T00:00:00Z`)) / 1_000
}

async function readStored(
  { database, chains, settings }: Omit<GaugeDependencies, 'clock'>,
  now: Date,
): Promise<Gauge[]> {
  const here = [...chains.all.map(({ name }) => name), ...chains.absent]
  const [[depths], drifts, shortfalls, raised, float, [anchors], former] = await Promise.all([
    database.call<Record<string, bigint>>(backlog, [now]),
    database.call<{ chain: string; token: string; wallets: bigint; units: string }>(drift, []),
    database.call<{ chain: string; token: string; units: string }>(shortfall, []),
    database.call<{ domain: string; count: bigint }>(alarms, []),
    readCardFloat(database),
    settings.anchorChain === null ? [] : database.call<{ until: string | null }>(anchored, []),
    readFormerOwners(database, here),
  ])
  const namePosition = ({ chain, token }: { chain: string; token: string }) => `${chain} ${token}`
  const missing = new Map(shortfalls.map((row) => [namePosition(row), BigInt(row.units)]))
  const open = new Map(raised.map(({ domain, count }) => [domain, Number(count)]))
  const units = new Map(drifts.map((row) => [namePosition(row), BigInt(row.units)]))
  const wallets = new Map(drifts.map((row) => [namePosition(row), Number(row.wallets)]))
  return [
    ...Object.entries(depths ?? {}).map(([kind, count]) => ({
      name: 'open',
      help: 'Open items of the whole deployment: transfers, relays, x402 payments, holds, orders, pending approvals, out-of-order webhooks, debts, card settlements refused by the chain, chains whose latest settlements are re-verified after a reorganization.',
      labels: { kind },
      value: Number(count),
    })),
    {
      name: 'card_float_usd',
      help: 'What cards have promised of wallets that their owners can empty, in US dollars: at most CARD_FLOAT for each account.',
      labels: {},
      value: Number(toDecimal({ asset: 'USDC', units: float.micros })),
    },
    ...(anchors === undefined
      ? []
      : [
          {
            name: 'anchor_age_seconds',
            help: 'Time since the end of the last day whose head of the decision chain is anchored. Alert above two days.',
            labels: {},
            value: anchors.until === null ? 0 : readAge(anchors.until, now),
          },
        ]),
    ...alarmDomains.map((domain) => ({
      name: 'alarms',
      help: 'Open alarms that require a person: GET /api/admin/alarms.',
      labels: { domain },
      value: open.get(domain) ?? 0,
    })),
    ...former.map(({ chain, count }) => ({
      name: 'former_owner_safes',
      help: 'Smart accounts that still have a former CHAIN_OWNER_KEY, by chain: CHAIN_OWNER_KEY_PREVIOUS is needed above zero.',
      labels: { chain },
      value: count,
    })),
    ...here
      .flatMap((chain) => stablecoins.map((asset) => ({ chain, asset })))
      .flatMap(({ chain, asset }) => [
        {
          name: 'ledger_drift',
          help: 'Total difference between ledger and chain over all wallets, in whole coins.',
          labels: { asset, chain },
          // For display and alerts only, so a float is acceptable.
          value: Number(toDecimal({ asset, units: units.get(namePosition({ chain, token: asset })) ?? 0n })),
        },
        {
          name: 'ledger_drift_wallets',
          help: 'Wallets whose ledger and chain differ.',
          labels: { asset, chain },
          value: wallets.get(namePosition({ chain, token: asset })) ?? 0,
        },
        {
          name: 'wallet_shortfall',
          help: 'Total booked money that the chain no longer holds, in whole coins. Alert above zero.',
          labels: { asset, chain },
          value: Number(
            toDecimal({ asset, units: missing.get(namePosition({ chain, token: asset })) ?? 0n }),
          ),
        },
      ]),
  ]
}

async function readFormerOwners(
  database: GaugeDependencies['database'],
  here: readonly string[],
): Promise<readonly { readonly chain: string; readonly count: number }[]> {
  const [open] = await database.call<{ to_owner: string }>(openRotation, [])
  if (open !== undefined) {
    const counts = await countOwnersLeft(database, { chains: here, to: open.to_owner })
    return counts.map(({ chain, left }) => ({ chain, count: left }))
  }
  const rows = await database.call<{ chain: string; count: bigint }>(owners, [here])
  return rows.map(({ chain, count }) => ({ chain, count: Number(count) }))
}

async function readLag(chain: Pick<Chain, 'name' | 'latestBlockAt'>, clock: Clock): Promise<Gauge[]> {
  const at = await chain.latestBlockAt()
  return [
    {
      name: 'chain_block_age_seconds',
      help: 'Age of the latest block. A local chain creates blocks only for transactions.',
      labels: { chain: chain.name },
      value: Math.max(0, clock().getTime() - at.getTime()) / 1_000,
    },
  ]
}

function gaugeConnections({ connections }: Pick<Database, 'connections'>): Gauge[] {
  return Object.entries(connections()).map(([state, value]) => ({
    name: 'database_connections',
    help: 'Database connections of this process, and calls waiting for one.',
    labels: { state },
    value,
  }))
}

function up(part: string, isUp: boolean): Gauge {
  return {
    name: 'up',
    help: '1 if the source could be read for this scrape.',
    labels: { part },
    value: isUp ? 1 : 0,
  }
}

/** Returns null on failure or timeout. */
async function readInTime<Value>(reading: Promise<Value>): Promise<Value | null> {
  let cancel: Cancel | undefined
  const late = new Promise<null>((resolve) => {
    cancel = timers.after(READ_TIMEOUT_MS, () => resolve(null))
  })
  const read = await Promise.race([reading.catch(() => null), late])
  cancel?.()
  return read
}
