/**
 * On-chain allowances of agents on owner-held wallets: requested and signed by the owner, executed once by the chain
 * despite failures in between. A signed intent may be sent again until its outcome is known.
 */

import { requireNoDebt } from '../../../books/debts/debts.ts'
import { operationOutcome } from '../../../books/evidence/operation-outcome.ts'
import type { Clock } from '../../../core/base/clock.ts'
import type { Log } from '../../../core/base/log.ts'
import { Failure } from '../../../core/failures/failure.ts'
import type { Chains } from '../../../providers/chain/chains.ts'
import {
  type AuthorizedOperation,
  CARDS_AGENT,
  type Chain,
  type ChainAllowance,
  type Submission,
  type Wallet,
} from '../../../providers/chain/port.ts'
import type { Connection, Database } from '../../../storage/database.ts'
import {
  type AllowanceFields,
  findIntent,
  type Intent,
  useIntent,
  validUntilOf,
} from '../signing/intent-store.ts'
import { type Passkeys, rejected, verifySignature } from '../signing/verify-signature.ts'
import { type Assertion, authorizationOf } from '../transfers/authorize-transfer.ts'

/** How long a caller waits for the chain before the answer is `settlement_pending`. */
const WAIT_MS = 3000

export interface AllowanceParts {
  readonly database: Database
  readonly chains: Pick<Chains, 'of'>
  readonly passkeys: Passkeys
  readonly clock: Clock
  readonly log: Log
  /** Records the owner's consent in the journal, as the last step of the transaction that uses the intent. */
  readonly recordUse: (transaction: Connection, allowed: AllowanceFields) => Promise<void>
}

interface Executing {
  readonly chain: Chain
  readonly log: Log
}

/** An allowance signed by the owner. @property assertion assertion of a passkey signature. */
export interface SignedAllowance {
  readonly wallet: Wallet
  readonly intentId: string
  readonly signature: string
  readonly assertion: Assertion | undefined
  readonly at: Date
}

/** An agent's allowance as set on the chain. */
export interface SetAllowance extends ChainAllowance {
  readonly agentId: string
}

/** Rejects wallets owned by the gateway, which have no allowances. @throws Failure `conflict`. */
export function requireOwnWallet({ owner }: Pick<Wallet, 'owner'>): void {
  if (owner.kind !== 'gateway') return
  throw new Failure(
    'conflict',
    'The gateway signs for this wallet: its agents have no on-chain allowances and are limited only by their spend policies.',
    { hint: 'Add a passkey or an EVM key, which then owns the wallet, to set allowances on chain.' },
  )
}

/**
 * Executes a signed allowance.
 * @returns the agent's allowance on the chain afterwards.
 * @throws Failure `signature_rejected`, `wallet_busy`, `provider_unavailable`; `settlement_pending` when it is unknown whether the
 * chain accepted it.
 */
export async function setAllowance(parts: AllowanceParts, signed: SignedAllowance): Promise<SetAllowance> {
  const { database, chains, log } = parts
  const { wallet, intentId, signature, assertion, at } = signed
  requireOwnWallet(wallet)
  const intent = await findIntent(database, { accountId: wallet.accountId, id: intentId })
  if (intent === undefined || intent.allowance === null) throw rejected('You have no such intent.', null)
  // A used intent may have been executed since, so its sender gets the outcome even after its expiry.
  if (intent.usedAt === null && intent.expiresAt <= at) throw rejected('The intent has expired.', null)
  // Cards pay a debt, so their allowance may be raised.
  if (intent.usedAt === null && intent.allowance.agentId !== CARDS_AGENT)
    await requireNoDebt(database, wallet.accountId)
  const verified = await verifySignature(parts, { wallet, intent, signature, key: null })
  if (verified.by !== 'passkey' && verified.by !== 'eoa')
    throw rejected('Only the signer that owns the wallet on chain can allow this.', null)
  const { allowance: allowed } = intent
  const chain = chains.of(intent.chain)
  await database.transaction(async (transaction) => {
    if (await useIntent(transaction, { id: intent.id, at })) await parts.recordUse(transaction, allowed)
  })
  await execute(
    { chain, log },
    {
      ...buildOperation(wallet, intent, allowed),
      authorization: authorizationOf(verified, { message: intent.message, signature, assertion }),
    },
  )
  const allowance = await chain.readAllowance(wallet, allowed.agentId)
  if (allowance === null) throw new Error('an owner-held wallet must have allowances')
  return { agentId: allowed.agentId, ...allowance }
}

function buildOperation(wallet: Wallet, intent: Intent, { agentId, dailyMicros }: AllowanceFields) {
  const call = { kind: 'allowance', agentId, dailyMicros } as const
  return { wallet, id: intent.operationId, call, validUntil: validUntilOf(intent) }
}

async function execute({ chain, log }: Executing, operation: AuthorizedOperation): Promise<void> {
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

async function submit({ chain, log }: Executing, operation: AuthorizedOperation): Promise<Submission> {
  // An executed operation is not simulated again: it may have expired since.
  const known = await operationOutcome(chain, operation, 0)
  if ('transactionHash' in known) return { status: 'submitted', transactionHash: known.transactionHash }
  try {
    return await chain.submit(operation)
  } catch (cause) {
    log.warn(
      { err: cause, operationId: operation.id },
      'it is unknown whether the chain accepted an allowance',
    )
    throw pending(cause)
  }
}

function refusal({ reason, cause }: Extract<Submission, { status: 'refused' }>): Failure {
  const code = cause === 'authorization' ? 'signature_rejected' : 'provider_unavailable'
  return new Failure(code, `The chain rejected the allowance: ${reason}. Nothing changed.`, {
    isFinal: true,
    hint: 'Ask for a new intent with POST /api/wallets/allowances/intent and sign it.',
  })
}

function pending(cause?: unknown): Failure {
  return new Failure(
    'settlement_pending',
    'It is not yet known whether the chain accepted the allowance.',
    {
      retryAfter: 3,
      hint: 'Send the same intent and signature again to get the outcome: the chain executes them at most once.',
    },
    { cause },
  )
}
