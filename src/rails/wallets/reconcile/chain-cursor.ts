/** Search progress on a chain, and the identity of that chain. */
import type { Block, Chain } from '../../../providers/chain/port.ts'
import type { Connection } from '../../../storage/database.ts'

/** A block of a specific chain instance. */
export interface ChainBlock {
  readonly identity: string
  readonly block: Block
}

/**
 * Search progress.
 * @property adoptedAt when the books adopted this chain instance.
 * @property at when the cursor last moved.
 * @property verifySince settlements from this time on are being verified again; null: none are.
 */
export interface ChainCursor extends ChainBlock {
  readonly adoptedAt: Date
  readonly at: Date
  readonly verifySince: Date | null
}

/** Finds the cursor of a chain; undefined before the first search. */
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

/** Records that settlements since a moment must be verified again, by any process. */
export async function recordVerification(
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

/**
 * Records that all settlements since a moment were verified or reversed. A verification that reaches further back
 * stays open.
 */
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

/** Starts searching a chain after a block, replacing any previous cursor. */
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

/** Moves the cursor to a block. @param from position it must still have. */
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

/** Reads the latest block. @throws when the chain cannot be read. */
export async function readHead(chain: Chain): Promise<ChainBlock> {
  const number = await chain.blockNumber()
  const [block, identity] = await Promise.all([chain.block(number), chain.identity()])
  if (block === undefined) throw new Error(`The latest block ${number} cannot be read.`)
  return { identity, block }
}
