/** Reads of transactions and stablecoin transfers from one node. */
import { getAddress, TransactionNotFoundError, type TransactionReceipt } from 'viem'
import type {
  Address,
  CalledTransaction,
  FoundTransfer,
  Hex,
  TokenAddresses,
} from '../providers/chain/port.ts'
import { transferEvent } from './contracts/abi.ts'
import type { ReadReceipt } from './relay/read-receipt.ts'
import { findReceipt } from './relay/receipts.ts'
import type { NodeClient } from './rpc/client.ts'
import { lowerCaseAddress } from './rpc/networks.ts'

/** Reads a transaction with its calldata; undefined while it is in no block. */
export async function readTransaction(
  client: NodeClient,
  hash: Hex,
  read: (receipt: TransactionReceipt) => ReadReceipt,
): Promise<CalledTransaction | undefined> {
  const [receipt, sent] = await Promise.all([
    findReceipt(client, hash),
    client.getTransaction({ hash }).catch((error: unknown) => {
      if (error instanceof TransactionNotFoundError) return undefined
      throw error
    }),
  ])
  if (receipt === undefined || sent === undefined) return undefined
  const { transaction, sent: messages, delivered } = read(receipt)
  const sender = getAddress(sent.from)
  return { ...transaction, calldata: sent.input, sender, sent: messages, delivered }
}

/** Searches a range of blocks, inclusive, for transfers of any of the tokens. */
export async function findTransfers(
  client: NodeClient,
  tokens: TokenAddresses,
  { fromBlock, toBlock, to }: { fromBlock: bigint; toBlock: bigint; to?: Address },
): Promise<FoundTransfer[]> {
  const logs = await client.getLogs({
    address: Object.values(tokens),
    event: transferEvent,
    ...(to === undefined ? {} : { args: { to } }),
    strict: true,
    fromBlock,
    toBlock,
  })
  return logs.map(({ address, transactionHash, args }) => ({
    transactionHash,
    token: lowerCaseAddress(address),
    units: args.value,
    from: lowerCaseAddress(args.from),
    to: lowerCaseAddress(args.to),
  }))
}
