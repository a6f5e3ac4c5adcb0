/** How far a chain was searched for transfers, and whether it is still the same chain. */
import type { Block, Chain } from '../../providers/chain.ts'
import type { Connection } from '../../storage/database.ts'

/** A block of one very chain. */
export interface ChainBlock {
  readonly identity: string
  readonly block: Block
}

/**
 * How far a chain was searched. @property adoptedAt since when the books are those of this very chain. @property at when the
 * cursor was moved. @property verifySince what was settled from then on is being looked for again; null: nothing is.
 */
export interface ChainCursor extends ChainBlock {
  readonly adoptedAt: Date
  readonly at: Date
  readonly verifySince: Date | null
}

/** The cursor of a chain; undefined where nothing was searched yet. */
export async function findCursor(
  database: Connection,
  { name }: Pick<Chain, 'name'>,
): Promise<ChainCursor | undefined> {
  const row = await database.kysely
    .selectFrom('chain_cursor')
    .selectAll()
    .where('chain', '=', name)
    .executeTakeFirst()
  if (row === undefined) return undefined
  const hash = `0x${row.block_hash.slice(2)}` as const
  return {
    identity: row.identity,
    block: { number: row.block_number, hash },
    adoptedAt: row.adopted_at,
    at: row.updated_at,
    verifySince: row.verify_since,
  }
}

/** Notes that settlements since a moment must be looked for again, for whichever process carries on. */
export async function noteVerification(
  database: Connection,
  { name }: Pick<Chain, 'name'>,
  since: Date,
): Promise<void> {
  await database.kysely
    .updateTable('chain_cursor')
    .set((eb) => ({ verify_since: eb.fn<Date>('least', ['verify_since', eb.val(since)]) }))
    .where('chain', '=', name)
    .execute()
}

/** Notes that all settlements since a moment were found or booked back. One that reaches further back goes on. */
export async function endVerification(
  database: Connection,
  { name }: Pick<Chain, 'name'>,
  since: Date,
): Promise<void> {
  await database.kysely
    .updateTable('chain_cursor')
    .set({ verify_since: null })
    .where('chain', '=', name)
    .where('verify_since', '>=', since)
    .execute()
}

/** Begins to search a chain behind a block, whatever chain was searched before. */
export async function adoptChain(
  database: Connection,
  { name }: Pick<Chain, 'name'>,
  { identity, block, at }: ChainBlock & { at: Date },
): Promise<void> {
  const values = {
    identity,
    block_number: block.number,
    block_hash: block.hash,
    adopted_at: at,
    updated_at: at,
    verify_since: null,
  }
  await database.kysely
    .insertInto('chain_cursor')
    .values({ chain: name, ...values })
    .onConflict((conflict) => conflict.column('chain').doUpdateSet(values))
    .execute()
}

/** Moves the cursor on to a block. @param from where it must still stand. */
export async function moveCursor(
  database: Connection,
  { name }: Pick<Chain, 'name'>,
  { block, from, at }: { block: Block; from: ChainBlock; at: Date },
): Promise<void> {
  await database.kysely
    .updateTable('chain_cursor')
    .set({ block_number: block.number, block_hash: block.hash, updated_at: at })
    .where('chain', '=', name)
    .where('identity', '=', from.identity)
    .where('block_number', '=', from.block.number)
    .execute()
}

/** The latest block. @throws where the chain cannot be read. */
export async function headOf(chain: Chain): Promise<ChainBlock> {
  const number = await chain.blockNumber()
  const [block, identity] = await Promise.all([chain.block(number), chain.identity()])
  if (block === undefined) throw new Error(`The latest block ${number} cannot be read.`)
  return { identity, block }
}
