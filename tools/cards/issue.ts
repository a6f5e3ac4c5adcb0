import { z } from 'zod'
import { cardView, controlMembers, viewCard, withControls } from '../../src/cards/card-view.ts'
import { bindingOf } from '../../src/cards/change-card.ts'
import { issueCard, newCard } from '../../src/cards/issue-card.ts'
import { orderCard } from '../../src/cards/order-card.ts'
import { callerOf } from '../../src/kernel/context.ts'
import { idempotencyOwner } from '../../src/kernel/fingerprint.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import type { AccountPrincipal } from '../../src/principal.ts'

export default defineTool({
  name: 'cards.issue',
  title: 'Issue a card',
  summary: 'Issue a virtual card, paid from the wallet and from cash at the moment of each purchase.',
  description:
    'A card that a key issues is bound to that key: every purchase then needs room in the key’s spend policy (category `card`). Without limits everything that is available can be spent. `provider_unavailable`: the card may still come; repeat the call with the same idempotency key, or look at the list.',
  route: 'POST /api/cards',
  who: 'account',
  scopes: ['cards:write'],
  effect: 'write',
  ownTransactions: true,
  mcp: true,
  rail: 'card-payments',
  input: z.strictObject({
    ...controlMembers,
    agentId: z
      .string()
      .max(64)
      .nullable()
      .optional()
      .describe('`key_…`: bind the card to this key; only the owner may say so.'),
  }),
  output: cardView,
  failures: ['provider_unavailable', 'insufficient_scope', 'not_found'],
  example: { nickname: 'Groceries', limits: { daily: '100' } },
  run: async (context, { agentId, ...controls }) => {
    const caller = callerOf(context)
    const { account } = caller
    const changer = { accountId: account.id, keyId: caller.kind === 'key' ? caller.key.id : null }
    const keyId = await bindingOf(context.database, changer, { wanted: agentId, before: changer.keyId })
    const wanted = { ...newCard, accountId: account.id, keyId, cardholderName: account.displayName }
    const order = await context.database.transaction((database) =>
      orderCard(
        { ...context, database },
        {
          wanted: withControls(wanted, controls),
          call: callOf(caller, context.idempotencyKey),
          at: context.now,
        },
      ),
    )
    return viewCard(await issueCard(context, order))
  },
})

function callOf(caller: AccountPrincipal, key: string | null) {
  return key === null ? null : { caller: idempotencyOwner(caller), key }
}
