/**
 * The end of channels: on request, when idle, and with their keys. The seller is asked to return the rest at once; a minute later the
 * channel's address leaves alone, within whose delay the seller may still claim. Each step is read from the chain before it is made, so
 * that any process goes on where another ended, and only the chain says what was paid.
 */
import { sql } from 'kysely'
import { encodeFunctionData, parseAbi } from 'viem'
import { z } from 'zod'
import { raiseAlarm } from '../../../books/alarms/alarms.ts'
import { external } from '../../../books/ledger/accounts.ts'
import { toJson } from '../../../core/base/json.ts'
import type { ChannelState } from '../../../providers/chain/port.ts'
import { channelStruct, channelsAddress } from '../../../providers/payment-channels.ts'
import { type Connection, callForRow, type Statement } from '../../../storage/database.ts'
import { purseKey } from '../authorization.ts'
import type { PayingParts } from '../pay-purchase.ts'
import { ask } from '../request.ts'
import { methods, payableAssets } from '../terms.ts'
import { type Channel, readConfig } from './channel.ts'
import { findUnanswered, noteRefusal, settleVoucher } from './channel-store.ts'
import { cancelDeposit, type Depositing, resolveDeposit } from './deposit.ts'
import { readCharged, signVoucher } from './voucher.ts'

/** How long the seller has to return the rest. */
const ASKED_MS = 60_000
/** How long a process works on the end of a channel, and the pause between two looks. */
const BUSY_MS = 30_000
const PAUSE_MS = 2_000
const BATCH = 20
const REFUND_MS = 10_000

const abi = parseAbi([
  channelStruct,
  'function initiateWithdraw(ChannelConfig config, uint128 amount)',
  'function finalizeWithdraw(ChannelConfig config)',
])

/** Runs one round. @returns the number of channels that are to be closed. */
export async function closeChannels(parts: PayingParts, signal: AbortSignal): Promise<number> {
  const { database, clock, log } = parts
  await beginDue(parts)
  const at = clock()
  const due = await database.kysely
    .selectFrom('channel')
    .select('id')
    .where('status', 'in', ['closing', 'exiting'])
    .where('chain', '=', parts.chain.name)
    .where('busy_until', '<=', at)
    .orderBy('busy_until')
    .limit(BATCH)
    .execute()
  for (const { id } of due) {
    if (signal.aborted) break
    const channel = await claimEnd(parts, id)
    if (channel === undefined) continue
    await close(parts, channel).catch((err: unknown) =>
      log.warn({ err, channelId: id }, 'closing a channel failed'),
    )
    await database.kysely
      .updateTable('channel')
      .set({ busy_until: new Date(clock().getTime() + PAUSE_MS) })
      .where('id', '=', id)
      .execute()
  }
  return due.length
}

/** Begins to close channels that are idle, of keys that are over, and of accounts that owe a debt. */
async function beginDue({ database, clock, settings }: PayingParts): Promise<void> {
  const at = clock()
  await sql`
    update channel c set status = 'closing', closing_at = ${at}, updated_at = ${at}
    where c.status = 'open' and (
        c.last_used_at < ${new Date(at.getTime() - settings.channels.idleMs)}
        or exists (select from access_key k join access_key o on o.id = any (k.path || k.id)
          where k.id = c.key_id and (o.status = 'revoked' or o.expires_at <= ${at}))
        or exists (select from debt d where d.account_id = c.account_id and d.owed > 0))
      and not exists (select from purchase p
        where p.id = c.purchase_id and p.state in ('reserved', 'signed') and p.busy_until > ${at})`.execute(
    database.kysely,
  )
}

async function claimEnd({ database, clock }: PayingParts, id: string): Promise<Channel | undefined> {
  const at = clock()
  return database.kysely
    .updateTable('channel')
    .set({ busy_until: new Date(at.getTime() + BUSY_MS) })
    .where('id', '=', id)
    .where('busy_until', '<=', at)
    .where('status', 'in', ['closing', 'exiting'])
    .returningAll()
    .executeTakeFirst()
}

const onePayable = z.enum(payableAssets)

async function close(parts: PayingParts, given: Channel): Promise<void> {
  const { database, chain, clock, settings } = parts
  const depositing = {
    id: given.id,
    config: readConfig(settings.dataKey, chain.id, given),
    asset: onePayable.parse(given.asset),
  }
  if (await isPresented(parts, given)) return
  const channel = await endDeposits(parts, depositing)
  if (channel === undefined) return
  const hash = toHash(channel)
  const latest = await chain.channelState(hash, 'latest')
  if (latest.balance === latest.claimed) {
    const final = await chain.channelState(hash, 'final')
    if (final.balance === latest.balance && final.claimed === latest.claimed)
      await bookEnd(parts, channel, final)
    return
  }
  if (channel.status === 'exiting') return leave(parts, { channel, depositing, latest })
  if (channel.asked_at === null) {
    await database.kysely
      .updateTable('channel')
      .set({ asked_at: clock() })
      .where('id', '=', channel.id)
      .execute()
    return askForRest(parts, { channel, depositing })
  }
  if (clock().getTime() < channel.asked_at.getTime() + ASKED_MS) return
  await database.kysely
    .updateTable('channel')
    .set({ status: 'exiting', updated_at: clock() })
    .where('id', '=', channel.id)
    .where('status', '=', 'closing')
    .execute()
  await leave(parts, { channel, depositing, latest })
}

/** Checks whether a purchase is presented: its end comes first. */
async function isPresented({ database, clock }: PayingParts, { purchase_id: id }: Channel): Promise<boolean> {
  if (id === null) return false
  const row = await database.kysely
    .selectFrom('purchase')
    .select('id')
    .where('id', '=', id)
    .where('state', 'in', ['reserved', 'signed'])
    .where('busy_until', '>', clock())
    .executeTakeFirst()
  return row !== undefined
}

/** Sees to it that no deposit is on its way. @returns undefined while one is. */
async function endDeposits(parts: PayingParts, depositing: Depositing): Promise<Channel | undefined> {
  const channel = await resolveDeposit(parts, depositing)
  if (channel?.deposit_units == null) return channel
  await cancelDeposit(parts, depositing, channel.deposits).catch((err: unknown) =>
    parts.log.warn({ err, channelId: channel.id }, 'the deposit of a channel could not be cancelled'),
  )
  const after = await resolveDeposit(parts, depositing)
  return after?.deposit_units == null ? after : undefined
}

interface Leaving {
  readonly channel: Channel
  readonly depositing: Depositing
}

/**
 * Asks the seller to return the rest, by a voucher for what is booked. Its answer is only a hint; one that says that an unanswered voucher
 * was charged is heeded, and it is asked again.
 */
async function askForRest(parts: PayingParts, leaving: Leaving): Promise<void> {
  const { database, chain, clock } = parts
  const { id, booked } = leaving.channel
  const charged = await sendRefund(parts, leaving, booked)
  if (charged === null || charged <= booked) return
  const purchase = await findUnanswered(database, { channelId: id, cumulative: charged, except: '' })
  if (purchase === undefined) return
  const paid = { id: purchase, cumulative: charged, destination: external(chain.name), at: clock() }
  if ((await settleVoucher(database, paid)) !== 'settled') return
  await noteRefusal(database, {
    ...{ id: purchase, code: 'seller_failed', at: clock() },
    failure: 'the seller says that it had taken the payment',
  })
  await sendRefund(parts, leaving, charged)
}

/** @returns what the seller says to have charged, if it says so; null otherwise. */
async function sendRefund(
  { database, chain, settings, fetchPublic, log }: PayingParts,
  { channel, depositing }: Leaving,
  cumulative: bigint,
): Promise<bigint | null> {
  const last = await database.kysely
    .selectFrom('purchase')
    .select(['url', 'method', 'offer'])
    .where('purse_id', '=', channel.id)
    .where('state', 'in', ['settled', 'signed'])
    .orderBy('id', 'desc')
    .executeTakeFirst()
  if (last === undefined) return null
  const credential = await signVoucher(
    settings.dataKey,
    { ...depositing, type: 'refund', cumulative },
    { chainId: chain.id, offer: toJson(last.offer) },
  )
  const asked = await ask(
    {
      ...{ url: new URL(last.url), method: z.enum(methods).parse(last.method) },
      ...{ headers: {}, secrets: {}, body: undefined },
    },
    { fetchPublic, loopback: settings.mode === 'sandbox', timeoutMs: REFUND_MS, credential },
  )
  if (asked.status !== 'answered') {
    log.info(
      { channelId: channel.id, status: asked.status },
      'a seller does not answer the end of its channel',
    )
    return null
  }
  return readCharged(asked.answer, channel.hash)
}

/** Makes the next step of leaving alone. */
async function leave(
  parts: PayingParts,
  { channel, depositing, latest }: Leaving & { readonly latest: ChannelState },
): Promise<void> {
  const { chain, clock, settings } = parts
  const { config } = depositing
  const account = purseKey(settings.dataKey, channel.id)
  const { withdrawal } = latest
  const until = toWithdrawable(channel, latest)
  // A development chain's clock may be ahead, and only it decides.
  if (until !== null && clock() < until && !chain.isGasFree)
    return noteExit(parts, channel, { until, sent: 0 })
  const data =
    withdrawal === undefined
      ? encodeFunctionData({
          abi,
          functionName: 'initiateWithdraw',
          args: [config, latest.balance - latest.claimed],
        })
      : encodeFunctionData({ abi, functionName: 'finalizeWithdraw', args: [config] })
  if (until !== null) await noteExit(parts, channel, { until, sent: 0 })
  // A repeat of a transaction sends nothing, and is counted too: the next look at the chain says whether it was of use.
  const isEarly = until !== null && clock() < until
  try {
    await chain.callAs(account, { to: channelsAddress, data, nonce: channel.exits })
  } catch (error) {
    if (isEarly) return
    throw error
  }
  const after = toWithdrawable(channel, await chain.channelState(toHash(channel), 'latest'))
  await noteExit(parts, channel, { until: after ?? until, sent: 1 })
}

function toWithdrawable(channel: Channel, { withdrawal }: ChannelState): Date | null {
  if (withdrawal === undefined) return null
  return new Date(withdrawal.initiatedAt.getTime() + channel.withdraw_delay * 1000)
}

async function noteExit(
  { database, clock }: PayingParts,
  { id, exits }: Channel,
  { until, sent }: { until: Date | null; sent: number },
): Promise<void> {
  await database.kysely
    .updateTable('channel')
    .set({ withdrawable_at: until, exits: exits + sent, updated_at: clock() })
    .where('id', '=', id)
    .where('exits', '=', exits)
    .execute()
}

const ending: Statement = {
  name: 'channel_end',
  text: 'select verdict, missing from channel_end($1, $2, $3)',
}

/** Books the end of a channel by a final block in which nothing is left in it. */
async function bookEnd(parts: PayingParts, channel: Channel, { claimed }: ChannelState): Promise<void> {
  const { database, clock, log } = parts
  const at = clock()
  const { verdict, missing } = await callForRow<{ verdict: string; missing: bigint }>(database, ending, [
    channel.id,
    claimed,
    at,
  ])
  if (verdict !== 'closed_short') return
  await raiseAlarm(
    { database, log },
    {
      ...{ domain: 'purchases', objectId: channel.id, reason: 'channel_overclaimed', at },
      reported: { asset: channel.asset, claimed: claimed.toString(), missing: missing.toString() },
    },
  )
}

/** Sandbox: ends the channels of a chain that is gone as they are booked, since nothing can be claimed any more. */
export async function endLostChannels(database: Connection, at: Date): Promise<void> {
  await database.kysely
    .updateTable('channel')
    .set({ status: 'closing' })
    .where('status', '=', 'open')
    .execute()
  const lost = await database.kysely
    .selectFrom('channel')
    .select(['id', 'booked'])
    .where('status', '<>', 'closed')
    .orderBy('id')
    .execute()
  for (const { id, booked } of lost) await callForRow(database, ending, [id, booked, at])
}

function toHash({ hash }: Channel): `0x${string}` {
  return `0x${hash.slice(2)}`
}
