/** Steps of swaps between chains as stored; each happens once, under the order's row. */
import type { Hex } from '../../providers/chain/port.ts'
import type { Connection } from '../../storage/database.ts'
import { parseSwap, type SwapOrder } from './orders.ts'

/** A mint that this gateway has sent is given that long before it is sent again. */
const MINT_AGAIN_MS = 15_000

/** Pauses between looks at an order: a tenth of its age, within these. */
const LOOK_MS = { least: 500, most: 60_000, share: 10 } as const

/** Records that the burn is on the chain. @returns whether it was not recorded yet. */
export async function beginBridge(
  { kysely }: Connection,
  id: string,
  { transactionHash, at }: { readonly transactionHash: Hex; readonly at: Date },
): Promise<boolean> {
  const row = await kysely
    .updateTable('swap_order')
    .set({ state: 'bridging', transaction_hash: transactionHash, updated_at: at })
    .where('id', '=', id)
    .where('state', '=', 'submitted')
    .where('to_chain', 'is not', null)
    .returning('id')
    .executeTakeFirst()
  return row !== undefined
}

/** Sets when an order is looked at next. Older ones are looked at less often. */
export async function postponeBridge(
  { kysely }: Connection,
  { id, createdAt }: Pick<SwapOrder, 'id' | 'createdAt'>,
  at: Date,
): Promise<void> {
  const age = at.getTime() - createdAt.getTime()
  const pause = Math.min(Math.max(age / LOOK_MS.share, LOOK_MS.least), LOOK_MS.most)
  await kysely
    .updateTable('swap_order')
    .set({ look_at: new Date(at.getTime() + pause) })
    .where('id', '=', id)
    .execute()
}

/** Records an attested message. @returns whether it is this order's: a message ends one order. */
export async function recordAttestation(
  { kysely }: Connection,
  id: string,
  { message, attestation, nonce, at }: { message: Hex; attestation: Hex; nonce: Hex; at: Date },
): Promise<boolean> {
  const row = await kysely
    .updateTable('swap_order')
    .set({ message, attestation, message_nonce: nonce, updated_at: at })
    .where('id', '=', id)
    .where('state', '=', 'bridging')
    .where((where) => where.or([where('message_nonce', 'is', null), where('message_nonce', '=', nonce)]))
    .where((where) =>
      where.not(
        where.exists(
          where
            .selectFrom('swap_order as other')
            .select('other.id')
            .where('other.message_nonce', '=', nonce)
            .where('other.id', '!=', id),
        ),
      ),
    )
    .returning('id')
    .executeTakeFirst()
  return row !== undefined
}

/** Drops an attestation that has expired; the message keeps its nonce. */
export async function dropAttestation({ kysely }: Connection, id: string): Promise<void> {
  await kysely
    .updateTable('swap_order')
    .set({ message: null, attestation: null, mint_sent_at: null })
    .where('id', '=', id)
    .where('state', '=', 'bridging')
    .execute()
}

/** Claims the sending of a mint, so that only one process does. @returns whether it may be sent now. */
export async function claimMint({ kysely }: Connection, id: string, at: Date): Promise<boolean> {
  const before = new Date(at.getTime() - MINT_AGAIN_MS)
  const row = await kysely
    .updateTable('swap_order')
    .set({ mint_sent_at: at })
    .where('id', '=', id)
    .where('state', '=', 'bridging')
    .where((where) => where.or([where('mint_sent_at', 'is', null), where('mint_sent_at', '<', before)]))
    .returning('id')
    .executeTakeFirst()
  return row !== undefined
}

/** Gives a claim back: nothing was sent. */
export async function unclaimMint({ kysely }: Connection, id: string): Promise<void> {
  await kysely.updateTable('swap_order').set({ mint_sent_at: null }).where('id', '=', id).execute()
}

/** Ends an order that was minted, once. @returns the order as it was; undefined: it is not on its way. */
export async function endBridge(
  { kysely }: Connection,
  id: string,
  { received, mintHash, at }: { readonly received: bigint; readonly mintHash: Hex; readonly at: Date },
): Promise<SwapOrder | undefined> {
  const row = await kysely
    .updateTable('swap_order')
    .set((columns) => ({
      state: 'confirmed',
      received,
      mint_hash: mintHash,
      mints: columns('mints', '+', 1),
      updated_at: at,
    }))
    .where('id', '=', id)
    .where('state', '=', 'bridging')
    .returningAll()
    .executeTakeFirst()
  return row === undefined ? undefined : parseSwap(row)
}

/** Locks an order that was minted in a transaction; undefined where it was not. */
export async function lockMinted(
  { kysely }: Connection,
  id: string,
  mintHash: Hex,
): Promise<SwapOrder | undefined> {
  const row = await kysely
    .selectFrom('swap_order')
    .selectAll()
    .where('id', '=', id)
    .where('state', '=', 'confirmed')
    .where('mint_hash', '=', mintHash)
    .forUpdate()
    .executeTakeFirst()
  return row === undefined ? undefined : parseSwap(row)
}

/** Puts an order on its way again: its mint is gone. @param lacking what of it is spent. */
export async function reopenBridge(
  { kysely }: Connection,
  id: string,
  { lacking, at }: { readonly lacking: bigint; readonly at: Date },
): Promise<void> {
  await kysely
    .updateTable('swap_order')
    .set({
      state: 'bridging',
      received: null,
      mint_hash: null,
      mint_sent_at: null,
      look_at: null,
      lacking,
      updated_at: at,
    })
    .where('id', '=', id)
    .execute()
}

/** Records another transaction of the burn. */
export async function updateBurn(
  { kysely }: Connection,
  id: string,
  { transactionHash, at }: { readonly transactionHash: Hex; readonly at: Date },
): Promise<void> {
  await kysely
    .updateTable('swap_order')
    .set({ transaction_hash: transactionHash, updated_at: at })
    .where('id', '=', id)
    .where('state', 'in', ['bridging', 'confirmed'])
    .execute()
}

/** Ends an order whose burn can never be, once. @returns whether it was on its way. */
export async function failBridge(
  { kysely }: Connection,
  id: string,
  { failure, at }: { readonly failure: string; readonly at: Date },
): Promise<boolean> {
  const row = await kysely
    .updateTable('swap_order')
    .set({ state: 'failed', failure, updated_at: at })
    .where('id', '=', id)
    .where('state', '=', 'bridging')
    .returning('id')
    .executeTakeFirst()
  return row !== undefined
}

/** Lists orders that were minted on a chain since a moment. */
export async function bridgesMintedSince(
  { database, chain }: { database: Connection; chain: { readonly name: string } },
  since: Date,
): Promise<SwapOrder[]> {
  const rows = await database.kysely
    .selectFrom('swap_order')
    .selectAll()
    .where('to_chain', '=', chain.name)
    .where('mint_hash', 'is not', null)
    .where('state', '=', 'confirmed')
    .where('updated_at', '>=', since)
    .execute()
  return rows.map(parseSwap)
}
