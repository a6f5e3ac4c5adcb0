/**
 * Marks of this gateway's transactions: bytes behind the calldata that only the holder of DATA_KEY can make. So a
 * transaction is known as ours whatever was lost since it was sent, and never taken for that of another gateway.
 */
import { createHmac } from 'node:crypto'
import type { CalledTransaction, Hex } from '../providers/chain.ts'

const MARK_BYTES = 16

/** The mark of the transaction that carries an object, such as a relay, by its id. */
export function transactionMark(dataKey: Uint8Array, id: string): Hex {
  const mac = createHmac('sha256', dataKey).update(`transaction mark\n${id}`).digest()
  return `0x${mac.subarray(0, MARK_BYTES).toString('hex')}`
}

/** Whether a transaction bears a mark. */
export function isMarked({ calldata }: Pick<CalledTransaction, 'calldata'>, mark: Hex): boolean {
  return calldata.toLowerCase().endsWith(mark.slice(2).toLowerCase())
}
