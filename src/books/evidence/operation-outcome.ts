/**
 * The only judge of chain outcomes. Compares the chain's own evidence with the expected result and returns an outcome
 * that may be booked. A used nonce proves nothing, because its owner can spend it on anything. The evidence is the
 * token's `Transfer` log, exactly as expected, emitted by our own operation or transaction. May import the base and
 * the ports; domains, jobs and the x402 engine call it.
 */
import {
  type AuthorizedOperation,
  type Chain,
  type Hex,
  type OperationExecution,
  type TransferLog,
  tokenAddress,
} from '../../providers/chain/port.ts'

/**
 * Outcome of an operation. `failed`: executed without moving anything. `canceled`: another operation of the wallet
 * used its nonce, so it can never be executed.
 */
export type OperationOutcome =
  | { readonly status: 'absent' | 'pending' }
  | { readonly status: 'confirmed' | 'failed' | 'canceled'; readonly transactionHash: Hex }

export type OperationChain = Pick<
  Chain,
  'awaitExecution' | 'name' | 'hashOperation' | 'tokens' | 'walletAddress'
>

/**
 * Reads the outcome of an operation; waits up to `waitMs` while it is pending.
 * @throws when the chain cannot be read.
 */
export async function operationOutcome(
  chain: OperationChain,
  operation: AuthorizedOperation,
  waitMs: number,
): Promise<OperationOutcome> {
  const execution = await chain.awaitExecution(operation, waitMs)
  return execution.status === 'executed' ? judgeExecution(chain, operation, execution) : execution
}

async function judgeExecution(
  chain: OperationChain,
  operation: AuthorizedOperation,
  { operationHash, succeeded, transaction }: Extract<OperationExecution, { status: 'executed' }>,
): Promise<OperationOutcome> {
  const { hash: transactionHash, transfers } = transaction
  if (operationHash !== chain.hashOperation(operation)) return { status: 'canceled', transactionHash }
  if (!succeeded) return { status: 'failed', transactionHash }
  const { call, wallet } = operation
  if (call.kind === 'allowance' || call.kind === 'owner') return { status: 'confirmed', transactionHash }
  const expected = {
    token: tokenAddress(chain, call.token),
    from: await chain.walletAddress(wallet),
    to: call.to,
    units: call.units,
  }
  const hasMoved = transfers.some((log) => log.operationHash === operationHash && isTransfer(log, expected))
  return { status: hasMoved ? 'confirmed' : 'failed', transactionHash }
}

export function isTransfer(
  log: TransferLog,
  expected: Pick<TransferLog, 'token' | 'from' | 'to' | 'units'>,
): boolean {
  return (
    log.units === expected.units &&
    isSame(log.token, expected.token) &&
    isSame(log.from, expected.from) &&
    isSame(log.to, expected.to)
  )
}

function isSame(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase()
}
