/**
 * State of a transfer that its owner signed for the `upto` proxy. Permit2 keeps a bit for each used nonce and logs nothing; the token and
 * the proxy log the transfer. The owner's permits, counted by the token, tell whether its permission was taken back.
 */
import { hexToBigInt, type TransactionReceipt } from 'viem'
import type { Hex, PermitState, TokenPermit } from '../../providers/chain/port.ts'
import { permit2Abi, tokenAbi, transferEvent } from '../contracts/abi.ts'
import type { NodeClient } from '../rpc/client.ts'
import { lowerCaseAddress, permit2Address } from '../rpc/networks.ts'
import { type LogSearch, pagesBack } from './executions.ts'
import type { ReadReceipt } from './read-receipt.ts'

/** Permits that an owner signs for a payment: the second takes the first one back. */
const PERMITS = 2n

/**
 * Checks in one block that the nonce is unused and that the permission was taken back or has ended.
 * @param blockTag `safe` where blocks can be replaced.
 */
export async function isPermitOver(
  client: NodeClient,
  permit: TokenPermit,
  { validBefore, blockTag }: { validBefore: Date; blockTag: 'latest' | 'safe' },
): Promise<boolean> {
  const { number, timestamp } = await client.getBlock({ blockTag })
  const { isUsed, permits } = await readMarks(client, permit, number)
  return !isUsed && (permits >= PERMITS || timestamp >= BigInt(Math.ceil(validBefore.getTime() / 1000)))
}

/** @throws Error when the nonce is used and no settlement is in the searchable range. */
export async function readPermitState(
  client: NodeClient,
  permit: TokenPermit,
  { search, read }: { search: LogSearch | undefined; read: (receipt: TransactionReceipt) => ReadReceipt },
): Promise<PermitState> {
  const { token, owner, to, nonce } = permit
  const { isUsed, permits } = await readMarks(client, permit, await client.getBlockNumber())
  if (!isUsed) return { status: permits >= PERMITS ? 'canceled' : 'unused' }
  const { word, bit } = splitNonce(nonce)
  for await (const range of pagesBack(client, search)) {
    const [moved, invalidated] = await Promise.all([
      client.getLogs({ address: token, event: transferEvent, args: { from: owner, to }, ...range }),
      client.getContractEvents({
        address: permit2Address,
        abi: permit2Abi,
        eventName: 'UnorderedNonceInvalidation',
        args: { owner },
        strict: true,
        ...range,
      }),
    ])
    if (invalidated.some(({ args }) => args.word === word && ((args.mask >> bit) & 1n) === 1n))
      return { status: 'invalidated' }
    const hashes: Hex[] = []
    for (const { transactionHash, logIndex } of moved.reverse()) {
      const receipt = await client.getTransactionReceipt({ hash: transactionHash })
      const position = receipt.logs.findIndex((log) => log.logIndex === logIndex)
      const { transfers } = read(receipt).transaction
      if (transfers.some((each) => each.position === position && each.isUpto)) hashes.push(transactionHash)
    }
    const [latest, ...earlier] = hashes
    if (latest !== undefined) return { status: 'used', transactionHashes: [latest, ...earlier] }
  }
  throw new Error(`The Permit2 nonce ${nonce} is used, but its settlement was not found.`)
}

/** Whether the nonce is used, and how many permits of the owner the token has taken, in one block. */
async function readMarks(
  client: NodeClient,
  { token, owner, nonce }: TokenPermit,
  blockNumber: bigint,
): Promise<{ readonly isUsed: boolean; readonly permits: bigint }> {
  const { word, bit } = splitNonce(nonce)
  const [bits, permits] = await Promise.all([
    client.readContract({
      address: permit2Address,
      abi: permit2Abi,
      functionName: 'nonceBitmap',
      args: [lowerCaseAddress(owner), word],
      blockNumber,
    }),
    client.readContract({
      address: token,
      abi: tokenAbi,
      functionName: 'nonces',
      args: [lowerCaseAddress(owner)],
      blockNumber,
    }),
  ])
  return { isUsed: ((bits >> bit) & 1n) === 1n, permits }
}

/** Place of a nonce in Permit2's bitmap. */
export function splitNonce(nonce: Hex): { readonly word: bigint; readonly bit: bigint } {
  const value = hexToBigInt(nonce)
  return { word: value >> 8n, bit: value & 0xffn }
}
