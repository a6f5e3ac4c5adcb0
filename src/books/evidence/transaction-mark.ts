/**
 * Marks of this gateway's transactions: bytes appended to the calldata that only the holder of DATA_KEY can compute.
 * The gateway recognizes its own transactions even after losing all state, and never claims those of another gateway.
 */
import { createHmac } from 'node:crypto'
import type { CalledTransaction, Hex } from '../../providers/chain/port.ts'

const MARK_BYTES = 16

/** Computes the mark of the transaction that carries an object, such as a relay, from the object's id. */
export function transactionMark(dataKey: Uint8Array, id: string): Hex {
  const mac = createHmac('sha256', dataKey).update(`transaction mark\n${id}`).digest()
  return `0x${mac.subarray(0, MARK_BYTES).toString('hex')}`
}

export function isMarked({ calldata }: Pick<CalledTransaction, 'calldata'>, mark: Hex): boolean {
  return calldata.toLowerCase().endsWith(mark.slice(2).toLowerCase())
}
