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
  text: 'select channel_income_book($1, $2, $3, $4, $5, $6) as units',
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
    .executeTakeFirst()
  return row?.record ?? undefined
}

/** Lists the records of a chain's open channels. */
export async function listChannels(
  { kysely }: Connection,
  chain: string,
): Promise<readonly { readonly record: unknown; readonly updatedAt: Date }[]> {
  const rows = await kysely
    .selectFrom('sold_channel')
    .select(['record', 'updated_at'])
    .where('chain', '=', chain)
    .where('record', 'is not', null)
    .orderBy('updated_at')
    .execute()
  return rows.map(({ record, updated_at }) => ({ record, updatedAt: updated_at }))
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
    const { record } = await kysely
      .selectFrom('sold_channel')
      .select('record')
      .where('id', '=', name)
      .forUpdate()
      .executeTakeFirstOrThrow()
    const current = record === null ? undefined : parse(record)
    const next = change(current)
    if (next === current) return { channel: current, status: 'unchanged' }
    await kysely
      .updateTable('sold_channel')
      .set((eb) => ({
        record: next === undefined ? null : JSON.stringify(next),
        charged:
          next === undefined
            ? eb.ref('charged')
            : eb.fn<bigint>('greatest', ['charged', eb.val(BigInt(next.chargedCumulativeAmount))]),
        due_at:
          current?.chargedCumulativeAmount === next?.chargedCumulativeAmount
            ? eb.ref('due_at')
            : eb.fn.coalesce('due_at', eb.val(new Date(at.getTime() + CLAIM_MS))),
        updated_at: at,
      }))
      .where('id', '=', name)
      .execute()
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
        .where('record', 'is not', null)
        .orderBy('due_at')
        .limit(limit)
        .forUpdate()
        .skipLocked(),
    )
    .returning(['id', 'record'])
    .execute()
}

/** Notes what a channel has paid by the contract; what was charged meanwhile is claimed later, unless the channel is `isEmpty`. */
export async function noteClaimed(
  { kysely }: Connection,
  { id, claimed, isEmpty }: { readonly id: string; readonly claimed: bigint; readonly isEmpty: boolean },
): Promise<void> {
  await kysely
    .updateTable('sold_channel')
    .set((eb) => ({
      claimed,
      due_at: isEmpty
        ? null
        : eb.case().when('charged', '<=', claimed).then(null).else(eb.ref('due_at')).end(),
    }))
    .where('id', '=', id)
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
  connection: Connection,
  payment: Pick<StoredPayment, 'nonce'>,
): Promise<boolean> {
  const { charged, cumulative } = await readCharged(connection, payment)
  return charged >= cumulative
}

/** True if no later voucher of the channel was charged. */
export async function isLatestVoucher(
  connection: Connection,
  payment: Pick<StoredPayment, 'nonce'>,
): Promise<boolean> {
  const { charged, cumulative } = await readCharged(connection, payment)
  return charged <= cumulative
}

async function readCharged({ kysely }: Connection, { nonce }: Pick<StoredPayment, 'nonce'>) {
  const [id = '', cumulative = ''] = nonce.split('/')
  const row = await kysely
    .selectFrom('sold_channel')
    .select('charged')
    .where('id', '=', id)
    .executeTakeFirst()
  return { charged: row?.charged ?? 0n, cumulative: BigInt(cumulative) }
}

/**
 * Books what the channels of a chain have paid out to an address. @param settled the contract's count in all.
 * @returns what was not booked before, in smallest units.
 */
export async function bookChannelIncome(
  connection: Connection,
  {
    chain,
    token,
    payTo,
    settled,
    at,
  }: {
    readonly chain: string
    readonly token: string
    readonly payTo: string
    readonly settled: bigint
    readonly at: Date
  },
): Promise<bigint> {
  const { units } = await callForRow<{ units: bigint }>(connection, bookIncome, [
    chain,
    token.toLowerCase(),
    payTo.toLowerCase(),
    'USDC',
    settled,
    at,
  ])
  return units
}
