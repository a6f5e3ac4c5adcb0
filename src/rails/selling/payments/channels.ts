/**
 * Payment channels whose vouchers pay this gateway, in the database: every instance sees each channel as the last one left it. A voucher is
 * named by its channel and by how much the channel has paid with it in all.
 */
import { type Connection, callForRow, type Database, type Statement } from '../../../storage/database.ts'
import type { StoredPayment } from './store.ts'

/** What the protocol keeps of a channel; amounts are decimal strings of smallest units. */
export interface ChannelRecord {
  readonly channelId: string
  readonly chargedCumulativeAmount: string
}

const bookIncome: Statement = {
  name: 'channel_income_book',
  text: 'select channel_income_book($1, $2, $3, $4, $5, $6, $7) as units',
}

/** Time in which vouchers are gathered into one claim, and after which another gateway takes a claim over. */
const CLAIM_MS = 10 * 60_000

/** Names the payment by a voucher. @param cumulative smallest units that the channel has paid with it in all. */
export function nameVoucher(channelId: string, cumulative: string): string {
  return `${channelId.toLowerCase()}/${BigInt(cumulative)}`
}

/** Finds the record of an open channel. */
export async function findChannel({ kysely }: Connection, id: string): Promise<unknown> {
  const row = await kysely
    .selectFrom('sold_channel')
    .select('record')
    .where('id', '=', id.toLowerCase())
    .where('is_closed', '=', false)
    .executeTakeFirst()
  return row?.record ?? undefined
}

/** Lists the records of a chain's open channels. */
export async function listChannels({ kysely }: Connection, chain: string): Promise<readonly unknown[]> {
  const rows = await kysely
    .selectFrom('sold_channel')
    .select('record')
    .where('chain', '=', chain)
    .where('is_closed', '=', false)
    .where('record', 'is not', null)
    .orderBy('updated_at')
    .execute()
  return rows.map(({ record }) => record)
}

/**
 * Changes a channel's record; no other change of it comes between.
 * @param change returns the record to keep, the given one to change nothing, or undefined to close the channel.
 */
export function updateChannel<Stored extends ChannelRecord>(
  database: Database,
  { id, chain, at }: { readonly id: string; readonly chain: string; readonly at: Date },
  change: (current: Stored | undefined) => Stored | undefined,
  parse: (record: unknown) => Stored,
): Promise<{ channel: Stored | undefined; status: 'updated' | 'unchanged' | 'deleted' }> {
  const name = id.toLowerCase()
  return database.transaction(async ({ kysely }) => {
    await kysely
      .insertInto('sold_channel')
      .values({ id: name, chain, record: null, due_at: null, updated_at: at })
      .onConflict((conflict) => conflict.doNothing())
      .execute()
    const { record, is_closed } = await kysely
      .selectFrom('sold_channel')
      .select(['record', 'is_closed'])
      .where('id', '=', name)
      .forUpdate()
      .executeTakeFirstOrThrow()
    const current = record === null || is_closed ? undefined : parse(record)
    const next = change(current)
    if (next === current) return { channel: current, status: 'unchanged' }
    const charged = BigInt((next ?? current)?.chargedCumulativeAmount ?? 0)
    // What a new record begins with is what its payer says to have paid before.
    const isCharge =
      current !== undefined && next !== undefined && charged > BigInt(current.chargedCumulativeAmount)
    await kysely
      .updateTable('sold_channel')
      .set((eb) => ({
        // A closed channel keeps its record: its last claim may have to be made again.
        ...(next === undefined ? {} : { record: JSON.stringify(next) }),
        is_closed: next === undefined,
        charged,
        due_at: isCharge
          ? eb.fn.coalesce('due_at', eb.val(new Date(at.getTime() + CLAIM_MS)))
          : eb.ref('due_at'),
        updated_at: at,
      }))
      .where('id', '=', name)
      .execute()
    if (isCharge)
      await kysely.insertInto('sold_voucher').values({ channel_id: name, cumulative: charged }).execute()
    return { channel: next, status: next === undefined ? 'deleted' : 'updated' }
  })
}

/** Takes channels of a chain that owe money since a while; until they are claimed, another call takes them after {@link CLAIM_MS} only. */
export async function takeDueChannels(
  { kysely }: Connection,
  { chain, at, limit }: { readonly chain: string; readonly at: Date; readonly limit: number },
): Promise<readonly { readonly id: string; readonly record: unknown }[]> {
  return kysely
    .updateTable('sold_channel')
    .set({ due_at: new Date(at.getTime() + CLAIM_MS) })
    .where('id', 'in', (from) =>
      from
        .selectFrom('sold_channel')
        .select('id')
        .where('chain', '=', chain)
        .where('due_at', '<=', at)
        .orderBy('due_at')
        .limit(limit)
        .forUpdate()
        .skipLocked(),
    )
    .returning(['id', 'record'])
    .execute()
}

/** Notes that nothing more can be claimed from a channel, unless more was charged meanwhile. @param charged as it was looked at. */
export async function noteClaimed(
  { kysely }: Connection,
  { id, charged, at }: { readonly id: string; readonly charged: bigint; readonly at: Date },
): Promise<void> {
  await kysely
    .updateTable('sold_channel')
    .set({ due_at: null, updated_at: at })
    .where('id', '=', id)
    .where('charged', '=', charged)
    .execute()
}

/** Has the channels of a chain that changed since a moment looked at again: blocks were replaced, and claims may be lost. */
export async function reviewChannels(
  { kysely }: Connection,
  { chain, since, at }: { readonly chain: string; readonly since: Date; readonly at: Date },
): Promise<void> {
  await kysely
    .updateTable('sold_channel')
    .set({ due_at: at })
    .where('chain', '=', chain)
    .where('updated_at', '>=', since)
    .where('charged', '>', 0n)
    .execute()
}

/** True if any channel has ever paid on a chain. */
export async function hasChannels({ kysely }: Connection, chain: string): Promise<boolean> {
  const found = await kysely
    .selectFrom('sold_channel')
    .select('id')
    .where('chain', '=', chain)
    .limit(1)
    .executeTakeFirst()
  return found !== undefined
}

/** True if the voucher that a payment is named by was charged. */
export async function isVoucherCharged(
  { kysely }: Connection,
  { nonce }: Pick<StoredPayment, 'nonce'>,
): Promise<boolean> {
  const { id, cumulative } = readVoucherName(nonce)
  const found = await kysely
    .selectFrom('sold_voucher')
    .select('cumulative')
    .where('channel_id', '=', id)
    .where('cumulative', '=', cumulative)
    .executeTakeFirst()
  return found !== undefined
}

/** True if no later voucher of the channel was charged. */
export async function isLatestVoucher(
  { kysely }: Connection,
  { nonce }: Pick<StoredPayment, 'nonce'>,
): Promise<boolean> {
  const { id, cumulative } = readVoucherName(nonce)
  const later = await kysely
    .selectFrom('sold_voucher')
    .select('cumulative')
    .where('channel_id', '=', id)
    .where('cumulative', '>', cumulative)
    .limit(1)
    .executeTakeFirst()
  return later === undefined
}

function readVoucherName(nonce: string): { readonly id: string; readonly cumulative: bigint } {
  const [id = '', cumulative = ''] = nonce.split('/')
  return { id, cumulative: BigInt(cumulative) }
}

/**
 * Books what the channels of a chain have paid out to an address. @param settled the contract's count in all.
 * @param identity of the chain: two runs of a development chain count apart.
 * @returns what was not booked before, in smallest units; negative for a count that has fallen.
 */
export async function bookChannelIncome(
  connection: Connection,
  {
    identity,
    chain,
    token,
    payTo,
    settled,
    at,
  }: {
    readonly identity: string
    readonly chain: string
    readonly token: string
    readonly payTo: string
    readonly settled: bigint
    readonly at: Date
  },
): Promise<bigint> {
  const address = payTo.toLowerCase()
  const parameters = [identity, chain, token.toLowerCase(), address, 'USDC', settled, at]
  const { units } = await callForRow<{ units: bigint }>(connection, bookIncome, parameters)
  return units
}
