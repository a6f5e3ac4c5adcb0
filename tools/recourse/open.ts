import { z } from 'zod'
import { visibleText } from '../../src/core/base/untrusted-text.ts'
import { type Context, requireCaller } from '../../src/kernel/context.ts'
import { awaitApproval } from '../../src/kernel/gates/approval.ts'
import { parsePolicy } from '../../src/kernel/gates/policy.ts'
import { requireScope } from '../../src/kernel/gates/scope.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { signDocument } from '../../src/records/decisions/signed-document.ts'
import { findPayment, scopeOfKind } from '../../src/records/recourse/payments.ts'
import { openRecourse } from '../../src/records/recourse/run-recourse.ts'
import { findRecourse, recourseReasons } from '../../src/records/recourse/store.ts'
import { recourseObject, recourseView, viewRecourse } from '../../src/records/recourse/view.ts'

const NAME = 'recourse.open'

const request = z.strictObject({
  object: recourseObject.describe('The payment.'),
  reason: z.enum(recourseReasons).describe('Why.'),
  note: z.string().trim().min(1).max(500).optional().describe('For the owner.'),
})

export default defineTool({
  name: NAME,
  title: 'Get money back',
  summary: 'Try to get the money of one payment back, by every way.',
  description:
    'Use it when what was paid does not come or is wrong; then read it with `recourse_get`. A repeated call answers the same. Delivered goods need the owner’s approval.',
  restDescription:
    'An unsettled payment is made void; a settled one is presented once more, then its seller is asked for a refund if its terms declare where. Money counts once the chain or the provider shows it.',
  route: 'POST /api/recourse',
  who: 'account',
  scopes: [],
  effect: 'write',
  proof: 'none',
  ownTransactions: true,
  mcp: true,
  input: request,
  output: recourseView,
  failures: [
    'not_found',
    'insufficient_scope',
    'recourse_impossible',
    'approval_required',
    'approval_rejected',
    'conflict',
  ],
  example: {
    object: { kind: 'purchase', id: 'buy_01h455vb4pex5vsknk084sn02q' },
    reason: 'not_delivered',
  },
  run: async (context, input) => {
    const caller = requireCaller(context)
    const { object, reason } = input
    const scopes = [scopeOfKind[object.kind]]
    requireScope({ name: NAME, who: 'account', scopes, orScopes: null, role: 'owner' }, caller)
    const owner = { accountId: caller.account.id, keyId: caller.kind === 'key' ? caller.key.id : null }
    const known = await findRecourse(context.database, owner, {
      objectKind: object.kind,
      objectId: object.id,
    })
    if (known !== undefined) return viewRecourse(known)
    const payment = await findPayment(context.database, owner, object)
    // A card shows no goods: who says that they are not as described has them.
    const hasGoods =
      payment.wasDelivered || (object.kind === 'card_transaction' && reason === 'not_as_described')
    if (hasGoods) await requireOwnersYes(context, input)
    const { receiptKey } = context.settings
    const parts = {
      ...context,
      signDocument: (of: { type: string; document: unknown }) => signDocument(receiptKey, of),
    }
    const note = input.note === undefined ? null : visibleText(input.note)
    return viewRecourse(
      await openRecourse(parts, payment, { accountId: owner.accountId, objectId: object.id, reason, note }),
    )
  },
})

/** An agent may not take back on its own what its owner has got. @throws Failure `approval_required`. */
async function requireOwnersYes(context: Context, input: z.output<typeof request>): Promise<void> {
  const caller = requireCaller(context)
  if (caller.kind !== 'key' || context.approvedBy !== undefined) return
  throw await awaitApproval(context, {
    operation: NAME,
    call: { input, raw: input, isWhole: true },
    key: caller.key,
    accountId: caller.account.id,
    decisionId: null,
    isReplayed: false,
    ttlSeconds: parsePolicy(caller.key)?.approval?.ttlSec,
    what: 'Recourse on what was delivered',
  })
}
