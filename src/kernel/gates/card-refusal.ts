/** The failure of a card for one purchase whose amount was not reserved. */
import { findViolations } from '../../books/spending/decisions.ts'
import { Failure } from '../../core/failures/failure.ts'
import { toDecimal } from '../../core/money/money.ts'
import type { CardReason } from '../../providers/card-processor/port.ts'
import { type Context, requireCaller } from '../context.ts'
import { awaitApproval } from './approval.ts'
import { parsePolicy } from './policy.ts'
import { buildDenial } from './spend.ts'

/**
 * Asks the owner where the policy wants that. @param input the decoded call. @returns `policy_denied`, `approval_required`,
 * `approval_rejected`, `insufficient_funds`, `account_locked`, `provider_unavailable` or `conflict`.
 */
export async function refuseCard(
  context: Context,
  { reason, decisionId }: { reason: CardReason; decisionId: string | null },
  { units, input }: { units: bigint; input: unknown },
): Promise<Failure> {
  const caller = requireCaller(context)
  const amount = toDecimal({ asset: 'USD', units })
  const decision = decisionId === null ? {} : { decisionId }
  if (decisionId !== null && (reason === 'policy_denied' || reason === 'budget_exceeded')) {
    const violations = await findViolations(context.database, decisionId)
    return buildDenial({ verdict: 'deny', decisionId, violations, replayed: false })
  }
  if (decisionId !== null && reason === 'approval_required' && caller.kind === 'key')
    return awaitApproval(context, {
      operation: 'cards.issue',
      call: { input, raw: input, isWhole: true },
      key: caller.key,
      accountId: caller.account.id,
      decisionId,
      isReplayed: false,
      ttlSeconds: parsePolicy(caller.key)?.approval?.ttlSec,
      what: `A card for ${amount} USD`,
    })
  switch (reason) {
    case 'insufficient_funds':
    case 'debt_owed':
      return new Failure('insufficient_funds', `The account has less than ${amount} USD for a card.`, {
        ...decision,
        hint: 'Tell the owner, who adds funds; then use a new idempotency key. Debts of the account are collected first.',
      })
    case 'account_locked':
      return new Failure('account_locked', 'The account was locked; nothing was reserved.', {
        hint: 'Unlock it through POST /api/auth/recovery/start.',
      })
    case 'unavailable':
      return new Failure(
        'provider_unavailable',
        'The money did not reach the escrow in time; nothing was reserved.',
        {
          retryAfter: 5,
          hint: 'Send the request again.',
        },
      )
    default:
      return new Failure('conflict', `The card was refused (${reason}); nothing is reserved.`, {
        ...decision,
        reason,
        hint: 'Read GET /api/cards and the key, then send the request with a new idempotency key.',
      })
  }
}
