/** Minting of sandbox tokens. */
import { concat, encodeFunctionData } from 'viem'
import { stablecoins } from '../core/money/money.ts'
import { type Chain, MINT_MARK, type Mint, tokenAddress } from '../providers/chain/port.ts'
import { tokenAbi } from './contracts/abi.ts'
import type { Relayer } from './relay/relayer.ts'
import { lowerCaseAddress } from './rpc/networks.ts'

/** Maximum addresses per mint transaction. */
const BATCH = 200

/** Gas for an address without a balance of the token, and for the transaction itself. */
const GAS_EACH = 60_000n
const GAS_BASE = 100_000n

/** Mints token by token, in concurrent batches. @throws Error when the chain rejected one. */
export async function mintTokens(
  relayer: Relayer,
  chain: Pick<Chain, 'name' | 'tokens'>,
  mints: readonly Mint[],
): Promise<void> {
  const batches = stablecoins.flatMap((token) => splitChunks(mints.filter((mint) => mint.token === token)))
  await Promise.all(batches.map((batch) => mintBatch(relayer, chain, batch)))
}

async function mintBatch(
  relayer: Relayer,
  chain: Pick<Chain, 'name' | 'tokens'>,
  batch: readonly Mint[],
): Promise<void> {
  const [first] = batch
  if (first === undefined) return
  const args = [batch.map(({ to }) => lowerCaseAddress(to)), batch.map(({ units }) => units)] as const
  const data = concat([encodeFunctionData({ abi: tokenAbi, functionName: 'mintBatch', args }), MINT_MARK])
  const gas = GAS_BASE + GAS_EACH * BigInt(batch.length)
  const { receipt } = await relayer.send({ to: tokenAddress(chain, first.token), data, gas })
  if (receipt?.status !== 'success')
    throw new Error(`Minting ${first.token} to ${batch.length} addresses was refused.`)
}

function splitChunks(mints: readonly Mint[]): Mint[][] {
  const count = Math.ceil(mints.length / BATCH)
  return Array.from({ length: count }, (_, index) => mints.slice(index * BATCH, (index + 1) * BATCH))
}
