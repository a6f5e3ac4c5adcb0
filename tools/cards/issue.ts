import { z } from 'zod'
import { Failure } from '../../src/core/failures/failure.ts'
import { type Context, requireCaller } from '../../src/kernel/context.ts'
import { requireValidCredential } from '../../src/kernel/standing.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { loadHolderName } from '../../src/people/compliance/verified-person.ts'
import { bindToKey, listLooseParts } from '../../src/rails/cards/agent-card.ts'
import {
  boundKey,
  cardView,
  controlMembers,
  viewCard,
  withControls,
} from '../../src/rails/cards/card-view.ts'
import { resolveBinding } from '../../src/rails/cards/change-card.ts'
import { issueCard, newCard } from '../../src/rails/cards/issue-card.ts'
import { type NewCard, orderCard } from '../../src/rails/cards/order-card.ts'

export default defineTool({
  name: 'cards.issue',
  title: 'Issue a card',
  summary: 'Issue a virtual card that is paid from the wallet and from cash at each purchase.',
  description:
    'Use it when a card is needed and GET /api/cards shows none. Only the owner sees number and code. Default: 100 USD a purchase, 250 a day, no ATM or magnetic stripe. A key’s card is bound to it: each purchase must also fit the key’s policy (category `card`) and 100 USD a day. `insufficient_scope`: ask for tighter controls.',
  restDescription:
    'Only the owner changes what a key’s card is bound to. An owner’s card needs a fresh second factor. `provider_unavailable`: it may still be issued; repeat with the same idempotency key.',
  route: 'POST /api/cards',
  who: 'account',
  scopes: ['cards:write'],
  effect: 'write',
  proof: 'step-up',
  ownTransactions: true,
  mcp: true,
  restOnly: ['agentId'],
  rail: 'card-payments',
  input: z.strictObject({
    ...controlMembers,
    agentId: boundKey('`key_…`: key to bind the card to; owners only.'),
  }),
  output: cardView,
  failures: ['provider_unavailable', 'insufficient_scope', 'not_found'],
  example: { nickname: 'Groceries', limits: { daily: '100' } },
  run: async (context, { agentId, ...controls }) => {
    const caller = requireCaller(context)
    const { account } = caller
    const actor = { accountId: account.id, keyId: caller.kind === 'key' ? caller.key.id : null }
    const keyId = await resolveBinding(context.database, actor, { wanted: agentId, before: actor.keyId })
    const blank = {
      ...newCard,
      accountId: account.id,
      keyId: null,
      cardholderName: await loadHolderName(context, account),
    }
    const wanted = withControls(bindToKey<NewCard>(blank, keyId), controls)
    requireMayIssue(context, wanted)
    const requester =
      caller.kind === 'key'
        ? ({ kind: 'key', id: caller.key.id } as const)
        : ({ kind: 'person', id: account.id } as const)
    const call = { caller: requester, key: context.idempotencyKey }
    const order = await context.database.transaction(async (database) => {
      const ordered = await orderCard({ ...context, database }, { wanted, call, at: context.now })
      await requireValidCredential(database, caller)
      return ordered
    })
    return viewCard(await issueCard(context, order))
  },
})

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
