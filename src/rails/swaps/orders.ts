/** Swap orders: swaps that the wallet executes. The row is written before its transfer; it ends once. */
import type { Selectable } from 'kysely'
import { z } from 'zod'
import type { Page } from '../../core/base/page.ts'
import { chainInput } from '../../core/money/chains.ts'
import {
  decimalAmount,
  formatUnits,
  type Stablecoin,
  stablecoins,
  toDecimal,
} from '../../core/money/money.ts'
import type { Hex } from '../../providers/chain/port.ts'
import type { Connection } from '../../storage/database.ts'
import type { SwapOrderTable } from '../../storage/schema.ts'
import { findTransferOfDecision, findTransferOfFunding, parseStablecoin } from '../wallets/store.ts'

/** A swap as stored. @property feeMicros cost within what arrives, in millionths of a US dollar. @property route its aggregator. */
export interface SwapOrder {
  readonly id: string
  readonly accountId: string
  readonly keyId: string | null
  readonly decisionId: string
  readonly quoteId: string
  readonly chain: string
  readonly sell: Stablecoin
  readonly units: bigint
  readonly buy: Stablecoin
  readonly minReceived: bigint
  readonly expected: bigint
  readonly feeMicros: bigint
  readonly route: string
  readonly state: SwapOrderTable['state']
  readonly received: bigint | null
  readonly unsold: bigint
  readonly transactionHash: string | null
  readonly failure: string | null
  readonly createdAt: Date
  /** Present: USDC is burned on `chain` and minted on this one. */
  readonly toChain: string | null
  /** It moves the money of a payment: its transfer and its reservation have this name. Null: it is a swap of its own. */
  readonly fundingId: string | null
  readonly bridge: BridgeProgress
}

/**
 * How far a burn has come.
 * @property message attested. @property nonce of the message; alone where somebody else has minted first. @property mintHash transaction
 * that minted. @property mints how many were booked: more than one where blocks were replaced. @property lacking what a replaced mint
 * left booked as spent, so that the next does not book it again.
 */
export interface BridgeProgress {
  readonly message: Hex | null
  readonly attestation: Hex | null
  readonly nonce: Hex | null
  readonly mintHash: Hex | null
  readonly mints: number
  readonly lacking: bigint
}

export type NewSwapOrder = Omit<
  SwapOrder,
  'state' | 'received' | 'unsold' | 'transactionHash' | 'failure' | 'fundingId' | 'bridge'
>

/** Statuses of swaps. `bridging` is of swaps between chains; `refunded` of none yet. */
const swapStatuses = ['submitted', 'confirmed', 'bridging', 'refunded', 'failed'] as const

const leg = z.strictObject({
  chain: z.string().describe('Chain by name.'),
  token: z.enum(stablecoins).describe('Stablecoin by symbol.'),
})

export const swapView = z.strictObject({
  swapId: z.string().describe('`swp_…`'),
  status: z
    .enum(swapStatuses)
    .describe(
      '`submitted`: sent, do not send it again; `bridging`: it has left, and is on its way to the other chain; `failed`: nothing moved.',
    ),
  sell: leg.describe('What leaves.'),
  buy: leg.describe('What arrives.'),
  sent: z.string().describe('Amount that leaves, less what came back unsold; decimal.'),
  received: z.string().nullable().describe('Amount that arrived, decimal; null until it has.'),
  minReceived: z.string().describe('With less nothing moves at all; decimal.'),
  fee: z.string().describe('Cost within what arrives, in USD.'),
  route: z.string().describe('Aggregator whose route was taken.'),
  transactions: z
    .array(
      z.strictObject({
        chain: z.string().describe('Chain by name.'),
        hash: z.string().describe('Its hash.'),
      }),
    )
    .describe('Transactions on the chains, in their order.'),
  waitingFor: z
    .enum(['attestation', 'mint'])
    .nullable()
    .describe(
      'What a `bridging` swap waits for. It is never lost: the burn can be minted at any later time.',
    ),
  decisionId: z.string().describe('`dec_…`: the decision that allowed it.'),
  failure: z.string().nullable().describe('Why nothing moved; null: it did, or may.'),
  createdAt: z.string().describe('When it was requested, ISO 8601 UTC.'),
})
swapView.register(z.globalRegistry, { id: 'Swap' })

export function viewSwap(swap: SwapOrder): z.input<typeof swapView> {
  const { id, chain, sell, buy, units, unsold, received, minReceived, transactionHash, toChain } = swap
  const hasMoved = swap.state !== 'failed'
  return {
    swapId: id,
    status: swap.state,
    sell: { chain, token: sell },
    buy: { chain: toChain ?? chain, token: buy },
    sent: toDecimal({ asset: sell, units: hasMoved ? units - unsold : 0n }),
    received: received === null ? null : toDecimal({ asset: buy, units: received }),
    minReceived: toDecimal({ asset: buy, units: minReceived }),
    fee: formatUnits(swap.feeMicros, 6),
    route: swap.route,
    transactions: [
      ...(transactionHash === null ? [] : [{ chain, hash: transactionHash }]),
      ...(toChain === null || swap.bridge.mintHash === null
        ? []
        : [{ chain: toChain, hash: swap.bridge.mintHash }]),
    ],
    waitingFor: swap.state !== 'bridging' ? null : swap.bridge.nonce === null ? 'attestation' : 'mint',
    decisionId: swap.decisionId,
    failure: swap.failure,
    createdAt: swap.createdAt.toISOString(),
  }
}

/** Members that name a swap. */
export const swapMembers = {
  quoteId: z
    .string()
    .max(64)
    .optional()
    .describe('`quote_…` of POST /api/swaps, within its 30 seconds; instead of `sell` and `buy`.'),
  sell: z
    .strictObject({
      chain: chainInput.optional().describe('Default: the default chain.'),
      token: z.enum(stablecoins).describe('By symbol.'),
      amount: decimalAmount.describe('Decimal of the token.'),
    })
    .optional()
    .describe('What leaves.'),
  buy: z
    .strictObject({
      chain: chainInput.optional().describe('Default: that of `sell`.'),
      token: z.enum(stablecoins).describe('By symbol.'),
    })
    .optional()
    .describe('What arrives.'),
  maxSlippageBps: z
    .int()
    .min(0)
    .max(1_000)
    .optional()
    .describe('Most that may be lost against the quote, in basis points; default 50.'),
  minReceived: decimalAmount.optional().describe('Least that must arrive; it never lowers the quote’s.'),
}

/** Requires one way of naming a swap. */
export function refineSwap(
  { quoteId, sell, buy, maxSlippageBps }: Partial<Record<keyof typeof swapMembers, unknown>>,
  context: z.core.$RefinementCtx,
): void {
  const issue = (path: string, message: string) =>
    context.addIssue({ code: 'custom', path: [path], message, input: undefined })
  if (quoteId === undefined) {
    if (sell === undefined) issue('sell', 'is required without a quoteId')
    if (buy === undefined) issue('buy', 'is required without a quoteId')
    return
  }
  if (sell !== undefined) issue('sell', 'is in the quote already')
  if (buy !== undefined) issue('buy', 'is in the quote already')
  if (maxSlippageBps !== undefined) issue('maxSlippageBps', 'is in the quote already; use minReceived')
}

/** Inserts a swap if its money is still reserved, and its quote unused. @returns whether it was inserted. */
export async function insertSwap(database: Connection, swap: NewSwapOrder): Promise<boolean> {
  const rows = await database.call(
    {
      name: 'swaps_insert_order',
      text: `insert into swap_order
          (id, account_id, key_id, decision_id, quote_id, chain, sell, units, buy, min_received, expected, fee_micros, route, state,
            created_at, updated_at, to_chain)
        select $1, $2, $3, r.decision_id, $5, $6, $7, $8, $9, $10, $11, $12, $13, 'submitted', $14, $14, $15
        from (select decision_id from reservation where decision_id = $4 and status = 'reserved' for update) r
        on conflict do nothing
        returning id`,
    },
    [
      swap.id,
      swap.accountId,
      swap.keyId,
      swap.decisionId,
      swap.quoteId,
      swap.chain,
      swap.sell,
      swap.units,
      swap.buy,
      swap.minReceived,
      swap.expected,
      swap.feeMicros,
      swap.route,
      swap.createdAt,
      swap.toChain,
    ],
  )
  return rows.length === 1
}

/** Identifies a swap: by id within an account or one of its keys (null: all), or by its decision. */
type SwapName =
  | { readonly accountId: string; readonly keyId: string | null; readonly id: string }
  | { readonly decisionId: string }

/** Finds the transfer that pays the desk for a swap. */
export function findTransferOfSwap(
  database: Connection,
  { decisionId, fundingId }: Pick<SwapOrder, 'decisionId' | 'fundingId'>,
): ReturnType<typeof findTransferOfDecision> {
  return fundingId === null
    ? findTransferOfDecision(database, decisionId)
    : findTransferOfFunding(database, fundingId)
}

export async function findSwap(database: Connection, name: SwapName): Promise<SwapOrder | undefined> {
  let query = database.kysely.selectFrom('swap_order').selectAll()
  if ('decisionId' in name) query = query.where('decision_id', '=', name.decisionId)
  else {
    query = query.where('account_id', '=', name.accountId).where('id', '=', name.id)
    if (name.keyId !== null) query = query.where('key_id', '=', name.keyId)
  }
  const row = await query.executeTakeFirst()
  return row === undefined ? undefined : parseSwap(row)
}

/** Lists an account's swaps, or those of one of its keys, newest first: one more than the page's limit. */
export async function listSwaps(
  database: Connection,
  { accountId, keyId, page }: { accountId: string; keyId: string | null; page: Page },
): Promise<SwapOrder[]> {
  let query = database.kysely.selectFrom('swap_order').selectAll().where('account_id', '=', accountId)
  if (keyId !== null) query = query.where('key_id', '=', keyId)
  if (page.after !== null) query = query.where('id', '<', page.after)
  const rows = await query
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute()
  return rows.map(parseSwap)
}

/** Claims open swaps that leave a chain, untouched since a moment; concurrent processes claim different ones. */
export async function claimSwaps(
  { database, chain }: { database: Connection; chain: { readonly name: string } },
  { before, at, limit }: { before: Date; at: Date; limit: number },
): Promise<SwapOrder[]> {
  const rows = await database.kysely
    .updateTable('swap_order')
    .set({ updated_at: at })
    .where('id', 'in', (query) =>
      query
        .selectFrom('swap_order')
        .select('id')
        .where('state', 'in', ['submitted', 'bridging'])
        .where('chain', '=', chain.name)
        .where('updated_at', '<', before)
        .where((where) => where.or([where('look_at', 'is', null), where('look_at', '<=', at)]))
        .orderBy('updated_at')
        .limit(limit)
        .forUpdate()
        .skipLocked(),
    )
    .returningAll()
    .execute()
  return rows.map(parseSwap)
}

/** Ends a swap, once. @returns whether it was open. */
export async function endSwap(
  { kysely }: Connection,
  id: string,
  end:
    | {
        readonly state: 'confirmed'
        readonly received: bigint
        readonly unsold: bigint
        readonly transactionHash: Hex
      }
    | { readonly state: 'failed'; readonly failure: string },
  at: Date,
): Promise<boolean> {
  const columns =
    end.state === 'failed'
      ? { state: end.state, failure: end.failure }
      : {
          state: end.state,
          received: end.received,
          unsold: end.unsold,
          transaction_hash: end.transactionHash,
        }
  const row = await kysely
    .updateTable('swap_order')
    .set({ ...columns, updated_at: at })
    .where('id', '=', id)
    .where('state', '=', 'submitted')
    .returning('id')
    .executeTakeFirst()
  return row !== undefined
}

/** Ends a swap that was made as one that was not, once: its block was replaced. @returns whether it was confirmed. */
export async function reopenSwap(
  { kysely }: Connection,
  id: string,
  { failure, at }: { readonly failure: string; readonly at: Date },
): Promise<boolean> {
  const row = await kysely
    .updateTable('swap_order')
    .set({ state: 'failed', failure, received: null, unsold: 0n, updated_at: at })
    .where('id', '=', id)
    .where('state', '=', 'confirmed')
    .returning('id')
    .executeTakeFirst()
  return row !== undefined
}

/** Records another transaction of a confirmed swap, once. @returns undefined when it has it already, or was reversed. */
export async function updateSwap(
  { kysely }: Connection,
  id: string,
  to: {
    readonly received: bigint
    readonly unsold: bigint
    readonly transactionHash: Hex
    readonly at: Date
  },
): Promise<{ readonly id: string } | undefined> {
  return kysely
    .updateTable('swap_order')
    .set({
      received: to.received,
      unsold: to.unsold,
      transaction_hash: to.transactionHash,
      updated_at: to.at,
    })
    .where('id', '=', id)
    .where('state', '=', 'confirmed')
    .where('transaction_hash', '!=', to.transactionHash)
    .returning('id')
    .executeTakeFirst()
}

/** Checks whether a quote was used up by a swap that has not failed. */
export async function isQuoteUsed({ kysely }: Connection, quoteId: string): Promise<boolean> {
  const row = await kysely
    .selectFrom('swap_order')
    .select('id')
    .where('quote_id', '=', quoteId)
    .executeTakeFirst()
  return row !== undefined
}

export function parseSwap(row: Selectable<SwapOrderTable>): SwapOrder {
  return {
    id: row.id,
    accountId: row.account_id,
    keyId: row.key_id,
    decisionId: row.decision_id,
    quoteId: row.quote_id,
    chain: row.chain,
    sell: parseStablecoin(row.sell),
    units: row.units,
    buy: parseStablecoin(row.buy),
    minReceived: row.min_received,
    expected: row.expected,
    feeMicros: row.fee_micros,
    route: row.route,
    state: row.state,
    received: row.received,
    unsold: row.unsold,
    transactionHash: row.transaction_hash,
    failure: row.failure,
    createdAt: row.created_at,
    toChain: row.to_chain,
    fundingId: row.funding_id,
    bridge: {
      message: toHex(row.message),
      attestation: toHex(row.attestation),
      nonce: toHex(row.message_nonce),
      mintHash: toHex(row.mint_hash),
      mints: row.mints,
      lacking: row.lacking,
    },
  }
}

function toHex(stored: string | null): Hex | null {
  return stored === null ? null : `0x${stored.slice(2)}`
}
