/** Blocks that evidence was read from, and whether the chain still has them. */
import { BlockNotFoundError } from 'viem'
import type { Block, Hex } from '../../providers/chain/port.ts'
import type { NodeClient } from '../rpc/client.ts'

export interface SeenBlocks {
  /** Records the block of a receipt used as evidence. */
  note(receipt: { readonly blockNumber: bigint; readonly blockHash: Hex }): void
  /** Checks whether any block recorded since the last call, or the highest of the earlier ones, was replaced. */
  areReplaced(): Promise<boolean>
}

export function createSeenBlocks(client: NodeClient): SeenBlocks {
  let unchecked = new Map<bigint, Set<Hex>>()
  let highest: Block | undefined

  return {
    note({ blockNumber, blockHash }) {
      const hashes = unchecked.get(blockNumber) ?? new Set()
      unchecked.set(blockNumber, hashes.add(blockHash))
    },
    async areReplaced() {
      const noted = unchecked
      unchecked = new Map()
      const blocks = [...noted].flatMap(([number, hashes]) => [...hashes].map((hash) => ({ number, hash })))
      if (highest !== undefined) blocks.push(highest)
      try {
        const found = await Promise.all(blocks.map(({ number }) => readBlock(client, number)))
        const isReplaced = blocks.some(({ hash }, index) => found[index]?.hash !== hash)
        highest = isReplaced ? undefined : findHighest(blocks)
        return isReplaced
      } catch (error) {
        // Checked again with the next call.
        for (const [number, hashes] of noted)
          unchecked.set(number, new Set([...hashes, ...(unchecked.get(number) ?? [])]))
        throw error
      }
    },
  }
}

/** Reads a block; undefined if the chain has none with that number. */
export async function readBlock(client: NodeClient, number: bigint): Promise<Block | undefined> {
  try {
    const { hash } = await client.getBlock({ blockNumber: number })
    return { number, hash }
  } catch (error) {
    if (error instanceof BlockNotFoundError) return undefined
    throw error
  }
}

function findHighest(blocks: readonly Block[]): Block | undefined {
  return blocks.reduce<Block | undefined>(
    (highest, block) => (highest === undefined || block.number > highest.number ? block : highest),
    undefined,
  )
}
