/**
 * The only judge of what the chain has done. Takes the chain's own evidence, compares it with what was to happen, and
 * answers an outcome that may be booked. A nonce that is used proves nothing: its owner can spend it on anything. What
 * counts is the token's `Transfer` log, exactly as expected, emitted by our own operation or transaction. May import the
 * base and the ports; domains, jobs and the x402 engine ask it.
 */
import type { AuthorizedOperation, Chain, Hex, OperationExecution, TransferLog } from '../providers/chain.ts'

/**
 * The outcome of an operation. `failed`: it was executed and moved nothing. `canceled`: another operation of the wallet used
 * its nonce, so that it can never be executed.
 */
export type OperationOutcome =
  | { readonly status: 'absent' | 'pending' }
  | { readonly status: 'confirmed' | 'failed' | 'canceled'; readonly transactionHash: Hex }

/** What judging an operation needs of the chain. */
export type OperationChain = Pick<Chain, 'executionOf' | 'operationHashOf' | 'tokens' | 'walletAddress'>

/** The outcome of an operation; waits up to `waitMs` for one that is pending. @throws where the chain cannot be read. */
export async function operationOutcome(
  chain: OperationChain,
  operation: AuthorizedOperation,
  waitMs: number,
): Promise<OperationOutcome> {
  const execution = await chain.executionOf(operation, waitMs)
  return execution.status === 'executed' ? judgeExecution(chain, operation, execution) : execution
}

async function judgeExecution(
  chain: OperationChain,
  operation: AuthorizedOperation,
  { operationHash, succeeded, transaction }: Extract<OperationExecution, { status: 'executed' }>,
): Promise<OperationOutcome> {
  const { hash: transactionHash, transfers } = transaction
  if (operationHash !== chain.operationHashOf(operation)) return { status: 'canceled', transactionHash }
  if (!succeeded) return { status: 'failed', transactionHash }
  const { call, wallet } = operation
  if (call.kind === 'allowance') return { status: 'confirmed', transactionHash }
  const expected = {
    token: chain.tokens[call.token],
    from: await chain.walletAddress(wallet),
    to: call.to,
    units: call.units,
  }
  const hasMoved = transfers.some((log) => log.operationHash === operationHash && isTransfer(log, expected))
  return { status: hasMoved ? 'confirmed' : 'failed', transactionHash }
}

/** Whether a log is the very transfer that was expected. */
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
