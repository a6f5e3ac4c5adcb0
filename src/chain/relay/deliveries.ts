/** Messages of CCTP v2 that were delivered: the transmitter says whether, its log in which transaction. */
import { cctpAbi, messageReceivedEvent } from '../../providers/cctp.ts'
import type { Address, Hex } from '../../providers/chain/port.ts'
import type { NodeClient } from '../rpc/client.ts'
import { type LogSearch, pagesBack } from './executions.ts'

/** @throws Error when it was delivered and its log is outside the searchable range. */
export async function findDelivery(
  client: NodeClient,
  { transmitter, nonce }: { readonly transmitter: Address; readonly nonce: Hex },
  search: LogSearch | undefined,
): Promise<Hex | undefined> {
  const used = await client.readContract({
    address: transmitter,
    abi: cctpAbi,
    functionName: 'usedNonces',
    args: [nonce],
  })
  if (used === 0n) return undefined
  for await (const range of pagesBack(client, search)) {
    const [log] = await client.getLogs({
      address: transmitter,
      event: messageReceivedEvent,
      args: { nonce },
      ...range,
    })
    if (log !== undefined) return log.transactionHash
  }
  throw new Error(`The message ${nonce} was delivered, but its log was not found.`)
}
