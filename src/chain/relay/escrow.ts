/** Escrowed payments of x402 `auth-capture`: their state in the contract. */
import type { EscrowState, Hex } from '../../providers/chain/port.ts'
import { escrowAddress } from '../../providers/payment-escrow.ts'
import { escrowAbi } from '../contracts/abi.ts'
import type { NodeClient } from '../rpc/client.ts'

/** @param blockTag `safe` where blocks can be replaced and a final answer is needed. */
export async function readEscrowState(
  client: NodeClient,
  hash: Hex,
  blockTag: 'latest' | 'safe',
): Promise<EscrowState> {
  const [isCollected, capturable, refundable] = await client.readContract({
    address: escrowAddress,
    abi: escrowAbi,
    functionName: 'paymentState',
    args: [hash],
    blockTag,
  })
  return { isCollected, capturable, refundable }
}
