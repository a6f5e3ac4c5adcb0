import { z } from 'zod'
import { decideReview, REVIEW_RELEASE_MS } from '../../../src/books/spending/reviews.ts'
import { adminNote } from '../../../src/kernel/admin-note.ts'
import { type Context, requirePerson } from '../../../src/kernel/context.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { decideRecoveryReview } from '../../../src/people/identity/recovery-reviews.ts'
import { sendSecurityNotice } from '../../../src/people/identity/security-notices.ts'
import { latestOrDollars } from '../../../src/providers/rates/port.ts'
import { decideDepositReview } from '../../../src/rails/banking/deposit-reviews.ts'
import { cancelStoppedOrders } from '../../../src/rails/investing/stopped-orders.ts'
import { recordMint } from '../../../src/rails/wallets/reconcile/owed-mints.ts'
import { decideMovementReview } from '../../../src/rails/wallets/reconcile/release-deposits.ts'
import { disableEndpoints } from '../../../src/records/events/webhooks/endpoints.ts'
import { removeChannels } from '../../../src/records/notifications/channels.ts'
import type { Connection } from '../../../src/storage/database.ts'

export default defineTool({
  name: 'admin.reviews.decide',
  title: 'Decide on a review',
  summary: 'Release or block a spend or a deposit that AML has flagged for review, or a recovery.',
  description:
    '`release`: that spend passes once when it is sent again within 24 hours, under every other rule; a deposit is credited at once; a recovery unlocks its account with paused keys and ended sessions. `block`: never. The decision is stored with its reason and administrator, and never changes.',
  route: 'POST /api/admin/reviews/{id}',
  who: 'admin',
  effect: 'write',
  proof: 'step-up',
  ownTransactions: true,
  input: z.strictObject({
    id: z.string().max(64).describe('`rev_…`'),
    decision: z
      .enum(['release', 'block'])
      .describe('`release`: the spend may be sent again, the deposit is credited, or the account unlocked.'),
    reason: adminNote.describe('Reason, for the record.'),
  }),
  output: z.strictObject({
    id: z.string().describe('`rev_…`'),
    status: z.enum(['released', 'blocked']).describe('Decision on the review.'),
    releasedUntil: z
      .string()
      .nullable()
      .describe(
        'Deadline for sending the spend again, ISO 8601 UTC; null when blocked, and for a deposit or recovery.',
      ),
  }),
  failures: ['not_found', 'conflict', 'rates_unavailable', 'chain_not_supported', 'provider_unavailable'],
  example: {
    id: 'rev_01h455vb4pex5vsknk084sn02q',
    decision: 'release',
    reason: 'The invoice was shown, and the payee is a known supplier.',
  },
  run: async (context, { id, decision, reason }) => {
    const at = context.now
    const decidedBy = requirePerson(context).account.id
    const status = decision === 'release' ? ('released' as const) : ('blocked' as const)
    const decided = { id, decidedBy, status, reason, at }
    const table = await latestOrDollars(context.rates, at)
    const record = (database: Connection) => {
      const object = { kind: 'review', id } as const
      return recordChange(context, { as: 'admin', action: `review.${status}`, object }, database)
    }
    const isOnce =
      (await decideRecovery(context, decided, record)) ||
      (await decideMovementReview(context, decided, record)) ||
      (await context.database.transaction(async (database) => {
        const parts = { ...context, database }
        const isBanks = await decideDepositReview(
          { ...parts, oweMint: recordMint(context) },
          { ...decided, table },
        )
        if (!isBanks) await decideReview(parts, decided)
        await record(database)
        return isBanks
      }))
    const until = new Date(at.getTime() + REVIEW_RELEASE_MS).toISOString()
    return { id, status, releasedUntil: decision === 'release' && !isOnce ? until : null }
  },
})

/** @returns false if the review is of no recovery. */
async function decideRecovery(
  context: Context,
  decided: Parameters<typeof decideRecoveryReview>[1],
  record: (database: Connection) => Promise<void>,
): Promise<boolean> {
  const isReleased = decided.status === 'released'
  const accountId = await context.database.transaction(async (database) => {
    const id = await decideRecoveryReview(database, decided)
    if (id === undefined) return undefined
    if (isReleased) await disableEndpoints(database, id)
    if (isReleased) await removeChannels(database, id)
    const notice = isReleased ? 'recovery_released' : 'recovery_blocked'
    await sendSecurityNotice({ ...context, database }, { accountId: id, notice, at: decided.at })
    const unlocked = { accountId: id, as: 'admin', action: 'account.unlocked' } as const
    if (isReleased) await recordChange(context, { ...unlocked, object: { kind: 'account', id } }, database)
    await record(database)
    return id
  })
  if (accountId === undefined) return false
  if (isReleased) context.afterCommit((database) => cancelStoppedOrders({ ...context, database }, accountId))
  return true
}
