/**
 * What an agent may spend of a wallet that its owner holds on chain: asked for and signed by the owner, executed once by the
 * chain, whatever fails in between. A signed intent may be sent again until its outcome is known.
 */
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { operationOutcome } from '../../evidence/operation-outcome.ts'
import { Failure } from '../../failures/failure.ts'
import type { AuthorizedOperation, Chain, ChainAllowance, Submission, Wallet } from '../../providers/chain.ts'
import type { Connection, Database } from '../../storage/database.ts'
import {
  type AllowanceFields,
  findIntent,
  type Intent,
  useIntent,
  validUntilOf,
} from '../signing/intent-store.ts'
import { type Passkeys, rejected, verifySignature } from '../signing/verify-signature.ts'
import { type Assertion, authorizationOf } from '../transfers/authorize-transfer.ts'

/** How long a caller waits for the chain before it is told `settlement_pending`. */
const WAIT_MS = 3000

/** What setting needs. */
export interface AllowanceParts {
  readonly database: Database
  readonly chain: Chain
  readonly passkeys: Passkeys
  readonly clock: Clock
  readonly log: Log
  /** Writes into the journal that the owner allows it, last in the transaction that uses the intent. */
  readonly recordUse: (transaction: Connection, allowed: AllowanceFields) => Promise<void>
}

/** What the owner has signed. @property assertion the signature, where it is a passkey's. */
export interface SignedAllowance {
  readonly wallet: Wallet
  readonly intentId: string
  readonly signature: string
  readonly assertion: Assertion | undefined
  readonly at: Date
}

/** An agent's allowance as the chain has it. */
export interface SetAllowance extends ChainAllowance {
  readonly agentId: string
}

/** A wallet that the gateway signs for has no allowances. @throws Failure `conflict`. */
export function requireOwnWallet({ owner }: Pick<Wallet, 'owner'>): void {
  if (owner.kind !== 'gateway') return
  throw new Failure(
    'conflict',
    'The gateway signs for this wallet: its agents have no allowances on chain, and their spend policies alone limit them.',
    { hint: 'Add a passkey or an EVM key, which then owns the wallet, to set allowances on chain.' },
  )
}

/**
 * Executes a signed allowance.
 * @returns what the chain says of the agent afterwards.
 * @throws Failure `signature_rejected`, `settlement_pending` where it is not known whether the chain took it, `provider_unavailable`.
 */
export async function setAllowance(parts: AllowanceParts, signed: SignedAllowance): Promise<SetAllowance> {
  const { database, chain } = parts
  const { wallet, intentId, signature, assertion, at } = signed
  requireOwnWallet(wallet)
  const intent = await findIntent(database, { accountId: wallet.accountId, id: intentId })
  if (intent === undefined || intent.allowance === null)
    throw rejected('There is no such intent of yours.', null)
  // One that was sent before may have been executed since: its sender is told how it went.
  if (intent.usedAt === null && intent.expiresAt <= at) throw rejected('The intent has expired.', null)
  const verified = await verifySignature(parts, { wallet, intent, signature, key: null })
  if (verified.by !== 'passkey' && verified.by !== 'eoa')
    throw rejected('Only the signer that owns the wallet on chain can allow this.', null)
  const { allowance: allowed } = intent
  await database.transaction(async (transaction) => {
    if (await useIntent(transaction, { id: intent.id, at })) await parts.recordUse(transaction, allowed)
  })
  await execute(parts, {
    ...operationOf(wallet, intent, allowed),
    authorization: authorizationOf(verified, { message: intent.message, signature, assertion }),
  })
  const allowance = await chain.allowanceOf(wallet, allowed.agentId)
  if (allowance === null) throw new Error('a wallet that its owner holds has allowances')
  return { agentId: allowed.agentId, ...allowance }
}

function operationOf(wallet: Wallet, intent: Intent, { agentId, dailyMicros }: AllowanceFields) {
  const call = { kind: 'allowance', agentId, dailyMicros } as const
  return { wallet, id: intent.operationId, call, validUntil: validUntilOf(intent) }
}

async function execute({ chain, log }: AllowanceParts, operation: AuthorizedOperation): Promise<void> {
  const submission = await submit({ chain, log }, operation)
  if (submission.status === 'refused') throw refusal(submission)
  const outcome = await operationOutcome(chain, operation, WAIT_MS)
  if (outcome.status === 'failed' || outcome.status === 'canceled')
    throw new Failure('provider_unavailable', 'The chain did not execute the allowance; nothing changed.', {
      isFinal: true,
      hint: 'Ask for a new intent and sign it.',
    })
  if (outcome.status !== 'confirmed') throw pending()
}

async function submit(
  { chain, log }: Pick<AllowanceParts, 'chain' | 'log'>,
  operation: AuthorizedOperation,
): Promise<Submission> {
  // A wallet's one that was executed is not judged again: its time may be over.
  const known = await operationOutcome(chain, operation, 0)
  if ('transactionHash' in known) return { status: 'submitted', transactionHash: known.transactionHash }
  try {
    return await chain.submit(operation)
  } catch (cause) {
    log.warn({ err: cause, operationId: operation.id }, 'it is not known whether the chain took an allowance')
    throw pending(cause)
  }
}

function refusal({ reason, cause }: Extract<Submission, { status: 'refused' }>): Failure {
  const code = cause === 'authorization' ? 'signature_rejected' : 'provider_unavailable'
  return new Failure(code, `The chain did not take the allowance: ${reason}. Nothing changed.`, {
    isFinal: true,
    hint: 'Ask for a new intent with POST /api/wallets/allowances/intent and sign it.',
  })
}

function pending(cause?: unknown): Failure {
  return new Failure(
    'settlement_pending',
    'It is not known yet whether the chain took the allowance.',
    {
      retryAfter: 3,
      hint: 'Send the same intent and signature again to learn it: the chain executes them at most once.',
    },
    { cause },
  )
}
