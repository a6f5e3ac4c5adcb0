/** Purses in the books and on the chain: per address, the chain holds at least what the books say. */
import { sql } from 'kysely'
import { raiseAlarm } from '../../books/alarms/alarms.ts'
import { purchaseOutcome } from '../../books/evidence/purchase-outcome.ts'
import { pursePlace } from '../../books/ledger/accounts.ts'
import type { Clock } from '../../core/base/clock.ts'
import type { Log } from '../../core/base/log.ts'
import { type Address, type Chain, type Mint, tokenAddress } from '../../providers/chain/port.ts'
import type { Connection } from '../../storage/database.ts'
import { hashEscrow, isPurseOn, signedPurchase, toHex } from './store.ts'
import { type PayableAsset, payableAssets } from './terms.ts'

/** Money of a purse. Units are smallest units. */
export interface PurseBalance {
  readonly purseId: string
  readonly accountId: string
  /** Key whose purchases it pays; null for people. */
  readonly agentId: string | null
  readonly address: Address
  readonly asset: PayableAsset
  readonly available: bigint
  readonly held: bigint
}

interface Row {
  readonly id: string
  readonly account_id: string
  readonly agent_id: string | null
  readonly address: string
  readonly asset: PayableAsset
  readonly available: bigint
  readonly held: bigint
}

/**
 * Reads the balances of purses that ever had money, by purse and asset; those of one purchase only while they have some. @param accountId of one account; null: all.
 * @param chain of one chain; by default of all. @param after id of the last purse that was read. @param limit maximum number of rows.
 */
export async function readPurseBalances(
  { kysely }: Connection,
  accountId: string | null,
  { chain, after = '', limit = 1_000_000 }: { chain?: string; after?: string; limit?: number } = {},
): Promise<readonly PurseBalance[]> {
  const { rows } = await sql<Row>`
    select p.id, p.account_id, p.address, b.asset,
      case left(p.id, 4) when 'buy_' then (select o.key_id from purchase o where o.id = p.id)
        when 'chn_' then (select c.key_id from channel c where c.id = p.id)
        else nullif(p.id, p.account_id) end as agent_id,
      coalesce(sum(b.units) filter (where b.account like '%:available'), 0)::bigint as available,
      coalesce(sum(b.units) filter (where b.account like '%:held'), 0)::bigint as held
    from purse p join balance b on b.account in
      (p.account_id || ':purse.' || p.id || ':available', p.account_id || ':purse.' || p.id || ':held')
    where (${accountId}::text is null or p.account_id = ${accountId}) and b.asset = any(${[...payableAssets]}) and p.id > ${after}
      and ${chain === undefined ? sql`true` : isPurseOn('p', chain)}
    group by p.id, p.account_id, p.address, b.asset having left(p.id, 4) not in ('buy_', 'chn_') or sum(b.units) > 0 order by p.id, b.asset limit ${limit}`.execute(
    kysely,
  )
  return rows.map(({ id, account_id, agent_id, address, asset, available, held }) => ({
    purseId: id,
    accountId: account_id,
    agentId: agent_id,
    address: toHex(address),
    asset,
    available,
    held,
  }))
}

/** Money of a purse that payments have taken on the chain before they are booked. @returns smallest units. */
async function readUnbooked(
  { database: { kysely }, chain }: { database: Connection; chain: Chain },
  { purseId, address, asset }: PurseBalance,
): Promise<bigint> {
  const purchases = await kysely
    .selectFrom('purchase')
    .selectAll()
    .where('purse_id', '=', purseId)
    .where('asset', '=', asset)
    .where('state', '=', 'signed')
    .execute()
  const sweeps = await kysely
    .selectFrom('purse_sweep')
    .select(['units', 'nonce'])
    .where('purse_id', '=', purseId)
    .where('asset', '=', asset)
    .where('state', '=', 'open')
    .execute()
  let units = 0n
  for (const purchase of purchases.filter(({ scheme }) => scheme === 'upto')) {
    const outcome = await purchaseOutcome(chain, signedPurchase(purchase))
    if (outcome.status === 'settled') units += outcome.units
  }
  for (const purchase of purchases.filter(({ scheme }) => scheme === 'auth-capture')) {
    const { capturable, refundable } = await chain.escrowState(hashEscrow(purchase), 'latest')
    units += capturable + refundable
  }
  for (const payment of [...purchases.filter(({ scheme }) => scheme === 'exact'), ...sweeps]) {
    const state = await chain.authorizationState({
      token: tokenAddress(chain, asset),
      authorizer: address,
      nonce: toHex(payment.nonce),
    })
    if (state.status === 'used') units += payment.units
  }
  return units
}

/**
 * Money of a purse that the books have and the chain has not. Payments that were executed but not booked yet are not
 * missing.
 * @returns 0n while the books are moving.
 */
async function findLack(
  { database, chain }: { database: Connection; chain: Chain },
  balance: PurseBalance,
): Promise<bigint> {
  const { address, asset, available, held } = balance
  // The address first: what moves into a channel meanwhile is counted twice, never missed.
  const onChain = await chain.readBalance(asset, address)
  let lack = available + held - onChain - (await readInChannel({ database, chain }, balance))
  if (lack <= 0n) return 0n
  lack -= await readUnbooked({ database, chain }, balance)
  const again = (await readPurseBalances(database, balance.accountId)).find(
    (other) => other.purseId === balance.purseId && other.asset === asset,
  )
  const isStill = again?.available === available && again.held === held
  return isStill && lack > 0n ? lack : 0n
}

/**
 * Money of a purse that is in the contract of its channel, and what its seller has claimed before it is booked. @returns smallest units.
 */
async function readInChannel(
  { database: { kysely }, chain }: { database: Connection; chain: Chain },
  { purseId }: PurseBalance,
): Promise<bigint> {
  if (!purseId.startsWith('chn_')) return 0n
  const channel = await kysely
    .selectFrom('channel')
    .select(['hash', 'booked'])
    .where('id', '=', purseId)
    .where('status', '<>', 'closed')
    .executeTakeFirst()
  if (channel === undefined) return 0n
  const { balance, claimed } = await chain.channelState(toHex(channel.hash), 'latest')
  return balance - claimed + (claimed > channel.booked ? claimed - channel.booked : 0n)
}

/** Money of one purse that the books have and the chain has not; 0n while the books are moving. */
export async function findPurseLack(
  parts: { database: Connection; chain: Chain },
  purse: { id: string; account_id: string; asset: PayableAsset },
): Promise<bigint> {
  const balances = await readPurseBalances(parts.database, purse.account_id)
  const balance = balances.find(({ purseId, asset }) => purseId === purse.id && asset === purse.asset)
  return balance === undefined ? 0n : findLack(parts, balance)
}

/** Sandbox: mints what purses lack on a fresh chain. @returns the number of topped-up balances. */
export async function levelPurses(parts: { database: Connection; chain: Chain }): Promise<number> {
  const mints: Mint[] = []
  for (const balance of await readPurseBalances(parts.database, null, { chain: parts.chain.name })) {
    const units = await findLack(parts, balance)
    if (units > 0n) mints.push({ token: balance.asset, to: balance.address, units })
  }
  if (mints.length > 0) await parts.chain.mint(mints)
  return mints.length
}

/** Purses per round. */
const PAGE = 100

/**
 * Creates a round that compares a page of purses with the chain. A purse that is short in two rounds raises an alarm: nodes may
 * answer from different blocks.
 */
export function createPurseComparison(parts: {
  readonly database: Connection
  readonly chain: Chain
  readonly clock: Clock
  readonly log: Log
}): () => Promise<void> {
  const suspected = new Set<string>()
  let after = ''
  return async () => {
    const balances = await readPurseBalances(parts.database, null, {
      ...{ chain: parts.chain.name, after, limit: PAGE },
    })
    for (const balance of balances) {
      const name = `${balance.purseId} ${balance.asset}`
      const lack = await findLack(parts, balance)
      if (lack === 0n) suspected.delete(name)
      else if (!suspected.has(name)) suspected.add(name)
      else
        await raiseAlarm(parts, {
          domain: 'purchases',
          objectId: pursePlace(balance.purseId),
          reason: 'purse_short',
          reported: { asset: balance.asset, units: lack.toString() },
          at: parts.clock(),
        })
    }
    after = balances.length < PAGE ? '' : (balances.at(-1)?.purseId ?? '')
  }
}
