/** Payment channels of x402 `batch-settlement`: their state in the contract, and calls by an address that holds no gas. */
import { keccak256 } from 'viem'
import type { Address, ChannelState, GaslessAccount, GaslessCall, Hex } from '../../providers/chain/port.ts'
import { channelsAddress } from '../../providers/payment-channels.ts'
import { channelsAbi } from '../contracts/abi.ts'
import type { NodeClient } from '../rpc/client.ts'
import { lowerCaseAddress } from '../rpc/networks.ts'
import { awaitReceipt } from './receipts.ts'
import { type Relayer, requireAcceptedByNode } from './relayer.ts'

/** How long a call, and the gas before it, wait for a block. */
const CONFIRMATION_MS = 60_000
const GAS_TRANSFER = 30_000n

/** @param blockTag `safe` where blocks can be replaced and a final answer is needed. */
export async function readChannelState(
  client: NodeClient,
  id: Hex,
  blockTag: 'latest' | 'safe',
): Promise<ChannelState> {
  const { number: blockNumber } = await client.getBlock({ blockTag })
  const at = { address: channelsAddress, abi: channelsAbi, args: [id], blockNumber } as const
  const [[balance, claimed], [amount, initiatedAt]] = await Promise.all([
    client.readContract({ ...at, functionName: 'channels' }),
    client.readContract({ ...at, functionName: 'pendingWithdrawals' }),
  ])
  const withdrawal =
    initiatedAt === 0 ? undefined : { amount, initiatedAt: new Date(Number(initiatedAt) * 1_000) }
  return { balance, claimed, withdrawal }
}

/** Reads what a seller's channels have paid out to it. @param blockTag `safe` where blocks can be replaced. */
export async function readChannelPayouts(
  client: NodeClient,
  { receiver, token }: { readonly receiver: Address; readonly token: Address },
  blockTag: 'latest' | 'safe',
): Promise<bigint> {
  const [, settled] = await client.readContract({
    address: channelsAddress,
    abi: channelsAbi,
    functionName: 'receivers',
    args: [lowerCaseAddress(receiver), lowerCaseAddress(token)],
    blockTag,
  })
  return settled
}

/**
 * Sends a call by an address without gas; the sponsor first sends what is missing of its cost. A repeat whose nonce is used sends nothing.
 * @throws Error when the call would revert, reverted, or is not confirmed in time.
 */
export async function callWithoutGas(
  { client, relayer }: { readonly client: NodeClient; readonly relayer: Relayer },
  account: GaslessAccount,
  { to, data, nonce }: GaslessCall,
): Promise<void> {
  const { address } = account
  const isSent = async () => (await client.getTransactionCount({ address, blockTag: 'latest' })) > nonce
  if (await isSent()) return
  const [estimate, offer] = await Promise.all([
    client.estimateGas({ account: address, to, data }),
    client.estimateFeesPerGas(),
  ])
  const gas = (estimate * 13n) / 10n
  const fees = {
    maxFeePerGas: offer.maxFeePerGas * 2n,
    maxPriorityFeePerGas: offer.maxPriorityFeePerGas,
  }
  // Rollups charge for the data too, so twice what execution costs.
  const cost = gas * fees.maxFeePerGas * 2n
  const balance = await client.getBalance({ address })
  if (balance < cost) {
    const topUp = { to: lowerCaseAddress(address), data: '0x', gas: GAS_TRANSFER } as const
    const { hash } = await relayer.send({ ...topUp, value: cost - balance })
    await awaitReceipt(client, hash, CONFIRMATION_MS)
  }
  const call = {
    type: 'eip1559',
    chainId: client.chain.id,
    nonce,
    to,
    data,
    gas,
    value: 0n,
    ...fees,
  } as const
  const serializedTransaction = await account.signTransaction(call)
  const hash = keccak256(serializedTransaction)
  try {
    await client.sendRawTransaction({ serializedTransaction })
  } catch (error) {
    // Another instance may have sent its own transaction of this nonce.
    if (await isSent()) return
    await requireAcceptedByNode(client, hash, error)
  }
  const { status } = await awaitReceipt(client, hash, CONFIRMATION_MS)
  if (status !== 'success') throw new Error(`The call ${hash} of ${address} to ${to} reverted.`)
}
