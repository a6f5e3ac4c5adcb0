/** Parses receipts for token transfers, and for the operations and authorizations that made them. */
import { decodeAbiParameters, hexToBigInt, size, slice, type TransactionReceipt, toEventSelector } from 'viem'
import { messageReceivedEvent, messageSentEvent } from '../../providers/cctp.ts'
import type {
  Address,
  DeliveredMessage,
  Hex,
  MinedTransaction,
  SentMessage,
  TransferLog,
} from '../../providers/chain/port.ts'
import {
  authorizationUsedEvent,
  beforeExecutionEvent,
  transferEvent,
  uptoEvents,
  userOperationEvent,
} from '../contracts/abi.ts'
import { lowerCaseAddress, uptoProxyAddress } from '../rpc/networks.ts'

export interface ExecutedOperation {
  readonly hash: Hex
  readonly sender: Address
  readonly nonce: bigint
  readonly succeeded: boolean
}

export interface ReadReceipt {
  readonly transaction: MinedTransaction
  readonly operations: readonly ExecutedOperation[]
  /** Messages of CCTP v2. */
  readonly sent: readonly SentMessage[]
  readonly delivered: readonly DeliveredMessage[]
}

type Log = Pick<TransactionReceipt['logs'][number], 'address' | 'topics' | 'data'>

const selectors = {
  transfer: toEventSelector(transferEvent),
  authorizationUsed: toEventSelector(authorizationUsedEvent),
  beforeExecution: toEventSelector(beforeExecutionEvent),
  userOperation: toEventSelector(userOperationEvent),
  messageSent: toEventSelector(messageSentEvent),
  messageReceived: toEventSelector(messageReceivedEvent),
  uptoSettled: new Set(Object.values(uptoEvents).map((event) => toEventSelector(event))),
}

/**
 * Parses a receipt. The EntryPoint executes operations in sequence and logs each after its events: a transfer between
 * two of these logs belongs to the operation of the second.
 */
export function readReceipt(
  { transactionHash, blockNumber, status, logs }: TransactionReceipt,
  entryPoint: Address,
  transmitter?: Address,
): ReadReceipt {
  const transfers: TransferLog[] = []
  const operations: ExecutedOperation[] = []
  const sent: SentMessage[] = []
  const delivered: DeliveredMessage[] = []
  let firstOfOperation = 0
  let firstSent = 0
  for (const [position, log] of logs.entries()) {
    const transfer = transferIn(log, position, { previous: logs[position - 1], next: logs[position + 1] })
    if (transfer !== undefined) transfers.push(transfer)
    if (transmitter !== undefined && lowerCaseAddress(log.address) === transmitter) {
      const message = sentIn(log)
      if (message !== undefined) sent.push({ message, operationHash: null })
      const arrived = deliveredIn(log)
      if (arrived !== undefined)
        delivered.push({ ...arrived, after: delivered.at(-1)?.position ?? -1, position })
    }
    if (lowerCaseAddress(log.address) !== lowerCaseAddress(entryPoint)) continue
    if (log.topics[0] === selectors.beforeExecution) {
      firstOfOperation = transfers.length
      firstSent = sent.length
    }
    const operation = operationIn(log)
    if (operation === undefined) continue
    for (const [index, moved] of transfers.entries())
      if (index >= firstOfOperation) transfers[index] = { ...moved, operationHash: operation.hash }
    for (const [index, message] of sent.entries())
      if (index >= firstSent) sent[index] = { ...message, operationHash: operation.hash }
    firstOfOperation = transfers.length
    firstSent = sent.length
    operations.push(operation)
  }
  return {
    transaction: { hash: transactionHash, blockNumber, succeeded: status === 'success', transfers },
    operations,
    sent,
    delivered,
  }
}

function sentIn({ topics: [selector], data }: Log): Hex | undefined {
  if (selector !== selectors.messageSent) return undefined
  return decodeAbiParameters([{ type: 'bytes' }], data)[0]
}

function deliveredIn({
  topics: [selector, _caller, nonce],
  data,
}: Log): Pick<DeliveredMessage, 'nonce' | 'source' | 'sender' | 'body'> | undefined {
  if (selector !== selectors.messageReceived || nonce === undefined) return undefined
  const types = [{ type: 'uint32' }, { type: 'bytes32' }, { type: 'bytes' }] as const
  const [source, sender, body] = decodeAbiParameters(types, data)
  return { nonce, source, sender, body }
}

function transferIn(
  { address, topics, data }: Log,
  position: number,
  { previous, next }: { previous: Log | undefined; next: Log | undefined },
): TransferLog | undefined {
  const [selector, from, to] = topics
  if (selector !== selectors.transfer || from === undefined || to === undefined) return undefined
  if (topics.length !== 3 || size(data) !== 32) return undefined
  return {
    token: lowerCaseAddress(address),
    from: toAddress(from),
    to: toAddress(to),
    units: hexToBigInt(data),
    position,
    operationHash: null,
    authorization: previous?.address === address ? authorizationIn(previous) : null,
    isUpto: next !== undefined && isUptoSettlement(next),
  }
}

function isUptoSettlement({ address, topics: [selector] }: Log): boolean {
  return (
    selector !== undefined &&
    selectors.uptoSettled.has(selector) &&
    lowerCaseAddress(address) === lowerCaseAddress(uptoProxyAddress)
  )
}

function authorizationIn({ topics }: Log): TransferLog['authorization'] {
  const [selector, authorizer, nonce] = topics
  if (selector !== selectors.authorizationUsed || authorizer === undefined || nonce === undefined) return null
  return { authorizer: toAddress(authorizer), nonce }
}

function operationIn({ topics, data }: Log): ExecutedOperation | undefined {
  const [selector, hash, sender] = topics
  if (selector !== selectors.userOperation || hash === undefined || sender === undefined) return undefined
  return {
    hash,
    sender: toAddress(sender),
    nonce: hexToBigInt(slice(data, 0, 32)),
    succeeded: hexToBigInt(slice(data, 32, 64)) === 1n,
  }
}

function toAddress(topic: Hex): Address {
  return lowerCaseAddress(slice(topic, 12))
}
