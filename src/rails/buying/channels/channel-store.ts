/** Channels in the database. */
import { sql } from 'kysely'
import type { AccountPrincipal } from '../../../core/base/principal.ts'
import { Failure } from '../../../core/failures/failure.ts'
import type { Address } from '../../../providers/chain/port.ts'
import { type Connection, callForRow, type Database, type Statement } from '../../../storage/database.ts'
import type { Channel } from './channel.ts'

/** A channel of a key to a seller. */
export interface ChannelPair {
  readonly keyId: string
  readonly origin: string
  readonly payTo: Address
  readonly asset: string
  readonly chain: string
}

/** Finds the open channel to a seller. @property left what can be bought by it. @property number of all channels to it so far. */
export async function findOpenChannel(
  { kysely }: Connection,
  { keyId, origin, payTo, asset, chain }: ChannelPair,
): Promise<{ readonly channel: Channel | undefined; readonly left: bigint; readonly number: number }> {
  const rows = await kysely
    .selectFrom('channel')
    .leftJoin('balance', (join) =>
      join
        .on(
          'balance.account',
          '=',
          sql<string>`channel.account_id || ':purse.' || channel.id || ':available'`,
        )
        .onRef('balance.asset', '=', 'channel.asset'),
    )
    .selectAll('channel')
    .select('balance.units as left')
    .where('key_id', '=', keyId)
    .where('origin', '=', origin)
    .where('pay_to', '=', payTo)
    .where('channel.asset', '=', asset)
    .where('chain', '=', chain)
    .execute()
  const channel = rows.find(({ status }) => status === 'open')
  return { channel, left: channel?.left ?? 0n, number: rows.length }
}

/** An open channel, as a purchase by known terms needs it. @property left what can be bought by it. */
export type OpenChannel = Pick<
  Channel,
  'id' | 'receiver_authorizer' | 'withdraw_delay' | 'token' | 'booked'
> & { readonly left: bigint }

const open: Statement = {
  name: 'channel_open',
  text: `select c.id, c.receiver_authorizer, c.withdraw_delay, c.token, c.booked, b.units as left
    from channel c
    join balance b on b.account = c.account_id || ':purse.' || c.id || ':available' and b.asset = c.asset
    where c.key_id = $1 and c.origin = $2 and c.pay_to = $3 and c.asset = $4 and c.chain = $5 and c.status = 'open'`,
}

/** Finds the open channel to a seller that has money. */
export async function findFilledChannel(
  connection: Connection,
  { keyId, origin, payTo, asset, chain }: ChannelPair,
): Promise<OpenChannel | undefined> {
  const [channel] = await connection.call<OpenChannel>(open, [keyId, origin, payTo, asset, chain])
  return channel
}

export async function findChannel({ kysely }: Connection, id: string): Promise<Channel | undefined> {
  return kysely.selectFrom('channel').selectAll().where('id', '=', id).executeTakeFirst()
}

export interface NewChannel extends ChannelPair {
  readonly id: string
  readonly accountId: string
  readonly network: string
  readonly token: Address
  readonly receiverAuthorizer: string
  readonly withdrawDelay: number
  readonly hash: string
  readonly at: Date
}

/** Opens a channel unless it exists, in place of the one that was open to the seller. Its purse must exist. */
export async function openChannel(database: Database, channel: NewChannel): Promise<void> {
  const { id, accountId, keyId, origin, payTo, asset, chain, at } = channel
  await database.transaction(async ({ kysely }) => {
    await kysely
      .updateTable('channel')
      .set({ status: 'closing', closing_at: at, updated_at: at })
      .where('key_id', '=', keyId)
      .where('origin', '=', origin)
      .where('pay_to', '=', payTo)
      .where('asset', '=', asset)
      .where('chain', '=', chain)
      .where('status', '=', 'open')
      .where('id', '<>', id)
      .execute()
    await kysely
      .insertInto('channel')
      .values({
        id,
        account_id: accountId,
        key_id: keyId,
        origin,
        chain,
        network: channel.network,
        asset,
        token: channel.token,
        pay_to: payTo,
        receiver_authorizer: channel.receiverAuthorizer,
        withdraw_delay: channel.withdrawDelay,
        hash: channel.hash,
        opened_at: at,
        last_used_at: at,
        updated_at: at,
      })
      .onConflict((conflict) => conflict.doNothing())
      .execute()
  })
}

const claim: Statement = { name: 'channel_claim', text: 'select * from channel_claim($1, $2)' }

/** @property cumulative the voucher that is next, in smallest units. */
export interface Claim {
  readonly verdict: 'present' | 'sign' | 'deposit' | 'busy' | 'ending' | 'over'
  readonly cumulative: bigint
}

/** Takes the channel of a purchase for it, for as long as the purchase is claimed. */
export function claimChannel(database: Connection, { id, at }: { id: string; at: Date }): Promise<Claim> {
  return callForRow<{ verdict: Claim['verdict']; cumulative: bigint }>(database, claim, [id, at])
}

const sign: Statement = {
  name: 'channel_sign',
  text: 'select channel_sign($1, $2, $3, $4, $5, $6) as kept',
}

/** Keeps a signed voucher. @returns false if it must not leave the process. */
export async function keepVoucher(
  database: Connection,
  voucher: {
    readonly id: string
    readonly cumulative: bigint
    readonly sinceBlock: bigint
    readonly credential: Uint8Array
    readonly credentialHash: string
    readonly at: Date
  },
): Promise<boolean> {
  const { id, cumulative, sinceBlock, credential, credentialHash, at } = voucher
  const { kept } = await callForRow<{ kept: boolean }>(database, sign, [
    id,
    cumulative,
    sinceBlock,
    credential,
    credentialHash,
    at,
  ])
  return kept
}

const settlement: Statement = {
  name: 'channel_settle',
  text: 'select verdict from channel_settle($1, $2, $3, $4)',
}

/** Books a purchase by the voucher for `cumulative` as paid. `stale`: it is not the next one, and nothing is booked. */
export async function settleVoucher(
  database: Connection,
  { id, cumulative, destination, at }: { id: string; cumulative: bigint; destination: string; at: Date },
): Promise<'settled' | 'already_settled' | 'stale'> {
  const { verdict } = await callForRow<{ verdict: 'settled' | 'already_settled' | 'stale' }>(
    database,
    settlement,
    [id, cumulative, destination, at],
  )
  return verdict
}

const delivery: Statement = {
  name: 'channel_deliver',
  text: 'select verdict, is_kept from channel_settle($1, $2, $3, $4, $5, $6, $7)',
}

/** Books as {@link settleVoucher}, and keeps what came. @property isKept false if there was a delivery: the first stays. */
export async function deliverByVoucher(
  database: Connection,
  settled: {
    readonly id: string
    readonly cumulative: bigint
    readonly destination: string
    readonly delivered: Uint8Array
    readonly hash: string
    readonly attempts: number
    readonly at: Date
  },
): Promise<{ readonly verdict: 'settled' | 'already_settled' | 'stale'; readonly isKept: boolean }> {
  const { id, cumulative, destination, delivered, hash, attempts, at } = settled
  const { verdict, is_kept: isKept } = await callForRow<{
    verdict: 'settled' | 'already_settled' | 'stale'
    is_kept: boolean
  }>(database, delivery, [id, cumulative, destination, at, delivered, hash, attempts])
  return { verdict, isKept }
}

const aside: Statement = {
  name: 'channel_set_aside',
  text: 'select channel_set_aside($1, $2, $3, $4) as is_aside',
}

/** Sets a purchase aside whose terms were refused, so that its call can be decided anew. @returns false if it was stopped. */
export async function setAside(
  database: Connection,
  { id, call, at }: { id: string; call: { principal: string; key: string } | null; at: Date },
): Promise<boolean> {
  const given = [id, call?.principal ?? null, call?.key ?? null, at]
  return (await callForRow<{ is_aside: boolean }>(database, aside, given)).is_aside
}

/** Begins to close an open channel. */
export async function beginClosing({ kysely }: Connection, id: string, at: Date): Promise<void> {
  await kysely
    .updateTable('channel')
    .set({ status: 'closing', closing_at: at, updated_at: at })
    .where('id', '=', id)
    .where('status', '=', 'open')
    .execute()
}

/** Reads a channel as its caller may see it. @throws Failure `not_found`. */
export async function readOwnChannel(
  { kysely }: Connection,
  caller: AccountPrincipal,
  id: string,
): Promise<Channel> {
  let query = kysely
    .selectFrom('channel')
    .selectAll()
    .where('id', '=', id)
    .where('account_id', '=', caller.account.id)
  if (caller.kind === 'key') query = query.where('key_id', '=', caller.key.id)
  const channel = await query.executeTakeFirst()
  if (channel === undefined) throw new Failure('not_found', 'You have no such channel.')
  return channel
}

/** Lists channels, those that are not closed first, and the newest of each first. */
export async function listChannels(
  { kysely }: Connection,
  caller: AccountPrincipal,
  limit: number,
): Promise<Channel[]> {
  let query = kysely
    .selectFrom('channel')
    .selectAll()
    .where('account_id', '=', caller.account.id)
    .orderBy((of) => of('status', '=', 'closed'))
    .orderBy('opened_at', 'desc')
    .orderBy('id')
    .limit(limit)
  if (caller.kind === 'key') query = query.where('key_id', '=', caller.key.id)
  return query.execute()
}

/**
 * Finds the purchase by the voucher for `cumulative` that is out and was not answered. Several may have signed the same: the one that can be
 * booked next is meant, for an earlier one was refused before another was booked.
 */
export async function findUnanswered(
  { kysely }: Connection,
  { channelId, cumulative, except }: { channelId: string; cumulative: bigint; except: string },
): Promise<string | undefined> {
  const row = await kysely
    .selectFrom('purchase')
    .innerJoin('channel', 'channel.id', 'purchase.purse_id')
    .select('purchase.id')
    .where('purse_id', '=', channelId)
    .where('scheme', '=', 'batch-settlement')
    .where('state', '=', 'signed')
    .where('cumulative', '=', cumulative)
    // One that was set aside is paid by what was bought in its place: a seller that says so now counts otherwise.
    .where(({ not, and, eb }) =>
      not(
        and([
          eb('is_canceled', '=', true),
          eb(sql`failure_code`, 'is not distinct from', 'terms_not_payable'),
        ]),
      ),
    )
    .where((of) => of(sql<bigint>`channel.booked + purchase.units`, '=', cumulative))
    .where('purchase.id', '<>', except)
    .orderBy('purchase.id', 'desc')
    .executeTakeFirst()
  return row?.id
}

/** Notes why nothing came. The voucher stays out: a seller that took it may still deliver, or claim it. */
export async function noteRefusal(
  { kysely }: Connection,
  { id, code, failure, at }: { id: string; code: string; failure: string; at: Date },
): Promise<void> {
  await kysely
    .updateTable('purchase')
    .set({ failure_code: code, failure, updated_at: at })
    .where('id', '=', id)
    .where('state', '<>', 'failed')
    .where('delivered_at', 'is', null)
    .execute()
}
