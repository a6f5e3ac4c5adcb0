import { z } from 'zod'
import type { Scope } from '../../policies/scopes.ts'
import { insertNote, parseNote, reasonMember } from '../../src/books/spending/spend-note.ts'
import { Failure } from '../../src/core/failures/failure.ts'
import { type Context, requireCaller } from '../../src/kernel/context.ts'
import { refuseCard } from '../../src/kernel/gates/card-refusal.ts'
import { requireKyc } from '../../src/kernel/gates/kyc.ts'
import { parsePolicy } from '../../src/kernel/gates/policy.ts'
import { requireValidCredential } from '../../src/kernel/standing.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { loadHolderName, verifiedApplicant } from '../../src/people/compliance/verified-person.ts'
import { bindToKey, listLooseParts } from '../../src/rails/cards/agent-card.ts'
import { cardAuthorization } from '../../src/rails/cards/card-authorization.ts'
import { boundKey, controlMembers, viewCard, withControls } from '../../src/rails/cards/card-view.ts'
import { resolveBinding } from '../../src/rails/cards/change-card.ts'
import { cardCredential, readCredential } from '../../src/rails/cards/credential.ts'
import { issueCard, newCard } from '../../src/rails/cards/issue-card.ts'
import { type CardOrder, forgetCardOrder, type NewCard, orderCard } from '../../src/rails/cards/order-card.ts'
import { reserveAmount } from '../../src/rails/cards/reserve-amount.ts'
import { cardDetails, type SingleUseWish, viewOneCard } from '../../src/rails/cards/single-use.ts'
import { parseWish, singleUseInput } from '../../src/rails/cards/single-use-wish.ts'
import type { Card } from '../../src/rails/cards/store.ts'

export default defineTool({
  name: 'cards.issue',
  title: 'Issue a card',
  summary: 'Issue a virtual card that is paid from the wallet and from cash.',
  description:
    '`singleUse` (scope cards:pay): for one purchase, reserved now under your policy (category `card`); `credential` is shown once. Without (cards:write) only the owner sees its number. Default: 100 USD a purchase and a day, no ATM or magnetic stripe; purchases must also fit your policy.',
  restDescription:
    'Only the owner changes what a key’s card is bound to. An owner’s card needs a fresh second factor. `provider_unavailable`: it may still be issued; repeat with the same idempotency key. A card for one purchase takes one authorization and its increments, and ends with its clearing, its expiry or DELETE /api/cards/{id}; what it has not taken returns. After an approval it is issued without showing `credential` again.',
  route: 'POST /api/cards',
  who: 'account',
  scopes: ['cards:write'],
  orScopes: ['cards:pay'],
  effect: 'write',
  proof: 'step-up',
  ownTransactions: true,
  mcp: true,
  shownOnce: ['credential', 'embedUrl'],
  // Over MCP a key tightens them with cards_settings and cards_update, which list them.
  restOnly: ['agentId', 'channels', 'mcc', 'priority'],
  rail: 'card-payments',
  input: z
    .strictObject({
      ...controlMembers,
      agentId: boundKey('`key_…`: key to bind the card to; owners only.'),
      singleUse: singleUseInput.optional().describe('For one purchase.'),
      ...reasonMember,
    })
    .refine(
      ({ singleUse, limits, channels, mcc, agentId }) =>
        singleUse === undefined || [limits, channels, mcc, agentId].every((member) => member === undefined),
      'takes no limits, channels, mcc or agentId with singleUse',
    ),
  output: cardDetails.extend({
    credential: cardCredential
      .nullable()
      .optional()
      .describe('Of a card for one purchase, shown once; null where this gateway may not see it.'),
    embedUrl: z
      .string()
      .nullable()
      .optional()
      .describe('Page of the processor that shows the number to the owner, once.'),
  }),
  failures: [
    'provider_unavailable',
    'insufficient_scope',
    'not_found',
    'policy_denied',
    'approval_required',
    'approval_rejected',
    'insufficient_funds',
    'kyc_required',
    'conflict',
    'rates_unavailable',
  ],
  example: { nickname: 'Groceries', limits: { daily: '100' } },
  run: async (context, { agentId, singleUse, reason, ...controls }) => {
    const caller = requireCaller(context)
    const { account } = caller
    requireIssueScope(context, singleUse === undefined ? 'cards:write' : 'cards:pay')
    const actor = { accountId: account.id, keyId: caller.kind === 'key' ? caller.key.id : null }
    const keyId = await resolveBinding(context.database, actor, { wanted: agentId, before: actor.keyId })
    const blank = {
      ...newCard,
      accountId: account.id,
      keyId: null,
      cardholderName: await loadHolderName(context, account),
    }
    const wanted = withControls(bindToKey<NewCard>(blank, keyId), controls)
    if (singleUse === undefined) requireMayIssue(context, wanted)
    const wish = singleUse && parseWish(singleUse, { task: findTask(context), now: context.now })
    if (wish !== undefined) requireKyc(context.settings, account, wish.units * 10_000n)
    const requester =
      caller.kind === 'key'
        ? ({ kind: 'key', id: caller.key.id } as const)
        : ({ kind: 'person', id: account.id } as const)
    const call = { caller: requester, key: context.idempotencyKey }
    const order = await context.database.transaction(async (database) => {
      const ordered = await orderCard(
        { ...context, database },
        { wanted: wish === undefined ? wanted : forOnePurchase(wanted, wish), call, at: context.now },
      )
      await requireValidCredential(database, caller)
      return ordered
    })
    if (wish === undefined) return viewCard(await issueCard(context, order))
    const input = { ...controls, singleUse, ...(reason === undefined ? {} : { reason }) }
    await reserveCard(context, { order, units: wish.units, input })
    const card = await issueCard(context, order)
    return { ...(await viewOneCard(context.database, card)), ...(await showNumber(context, card)) }
  },
})

/** Reserves an ordered card's amount. A refused order is forgotten: a repeated call is decided again. @throws Failure. */
async function reserveCard(
  context: Context,
  { order, units, input }: { order: CardOrder; units: bigint; input: unknown },
): Promise<void> {
  const { database, now, approvedBy = null } = context
  const reserve = await reserveAmount(cardAuthorization(context, parsePolicy), order, { approvedBy, now })
  const { decisionId } = reserve
  if (decisionId !== null) {
    const accountId = requireCaller(context).account.id
    await insertNote(database, { ...parseNote(input), decisionId, accountId })
  }
  if (reserve.reason === 'approved') return
  await forgetCardOrder(database, order.id)
  throw await refuseCard(context, reserve, { units, input })
}

/** Its amount is its limit. */
function forOnePurchase(wanted: NewCard, singleUse: SingleUseWish): NewCard {
  return { ...wanted, dailyMax: null, purchaseMax: null, singleUse }
}

/** Nobody sees the number of a card that an approval has issued: its agent does not wait for the answer. */
async function showNumber(context: Context, card: Card) {
  const { cardProcessor, approvedBy, now } = context
  if (approvedBy !== undefined) return {}
  const { account, kind } = requireCaller(context)
  const { address = null, country = null } = (await verifiedApplicant(context, account.id)) ?? {}
  return readCredential(cardProcessor, card, {
    billing: { address, country },
    isForPerson: kind === 'session',
    now,
  })
}

function findTask(context: Context): string | null {
  const caller = requireCaller(context)
  return (caller.kind === 'key' ? caller.key.delegation?.task : null) ?? context.task ?? null
}

/** @throws Failure `insufficient_scope`. */
function requireIssueScope(context: Context, scope: Scope): void {
  const caller = requireCaller(context)
  if (caller.kind !== 'key' || caller.key.scopes.includes(scope)) return
  throw new Failure('insufficient_scope', `The key "${caller.key.name}" lacks ${scope}.`, {
    scopes: [scope],
    hint: 'cards:pay issues cards for one purchase, with `singleUse`; cards:write issues other cards. Only the owner can grant them.',
  })
}

/** @throws Failure `insufficient_scope` for a key. */
function requireMayIssue(context: Context, wanted: NewCard): void {
  // A person has stepped up for the call.
  if (requireCaller(context).kind === 'session') return
  const loose = listLooseParts(wanted)
  if (loose.length === 0) return
  throw new Failure(
    'insufficient_scope',
    `Only the owner can issue a card with unrestricted ${loose.join(', ')}.`,
    {
      hint: 'Set a daily limit, and leave ATM and magnetic stripe off.',
    },
  )
}
