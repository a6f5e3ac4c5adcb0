/** Requests for approval of declined purchases, and the purchases that an approval lets pass. */
import { createHash } from 'node:crypto'
import type { Policy } from '../../../policies/policy.ts'
import { PURCHASE_RETRY_MS } from '../../books/approvals/approvals.ts'
import type { SpendRequest } from '../../books/spending/spend-request.ts'
import type { NewId } from '../../core/base/ids.ts'
import { canonicalJson } from '../../core/base/json.ts'
import { toDecimal } from '../../core/money/money.ts'
import type { CardAuthorization } from '../../providers/card-processor/port.ts'

/** Maximum open requests of a key: purchases are tried by merchants, and each request is a message to the owner. */
const MAX_OPEN = 10
/** One day, for policies that were changed in the meantime. */
const DEFAULT_TTL_SECONDS = 86_400

/**
 * Builds the `ask` of card_authorize as JSON text; null for a purchase that its policy approves without the owner.
 * Merchants are equal if both their id and their name are.
 */
export function buildApprovalRequest(
  newId: NewId,
  { needsApproval, operation }: Pick<SpendRequest, 'needsApproval' | 'operation'>,
  {
    cardId,
    policy,
    request: { merchant, channel, units },
    now,
  }: { cardId: string; policy: Policy | null; request: CardAuthorization; now: Date },
): string | null {
  if (!needsApproval) return null
  const ttlSeconds = policy?.approval?.ttlSec ?? DEFAULT_TTL_SECONDS
  const names = JSON.stringify([merchant.id, merchant.name])
  return JSON.stringify({
    id: newId('appr', now),
    input: canonicalJson({
      cardId,
      merchant: merchant.name,
      mcc: merchant.mcc,
      amount: toDecimal({ asset: 'USD', units }),
      currency: 'USD',
      channel,
    }),
    fingerprint: createHash('sha256')
      .update(`${operation}\n${canonicalJson({ cardId, names, units: units.toString() })}`)
      .digest('hex'),
    merchant: names,
    expires_at: new Date(now.getTime() + ttlSeconds * 1000),
    since: new Date(now.getTime() - PURCHASE_RETRY_MS),
    max_open: MAX_OPEN,
  })
}
