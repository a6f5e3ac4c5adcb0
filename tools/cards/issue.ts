import { z } from 'zod'
import { cardView, controlMembers, viewCard, withControls } from '../../src/cards/card-view.ts'
import { bindingOf } from '../../src/cards/change-card.ts'
import { issueCard, newCard } from '../../src/cards/issue-card.ts'
import { callerOf } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'

export default defineTool({
  name: 'cards.issue',
  title: 'Issue a card',
  summary: 'Issue a virtual card, paid from the wallet and from cash at the moment of each purchase.',
  description:
    'A card that a key issues is bound to that key: every purchase then needs room in the key’s spend policy (category `card`). Without limits everything that is available can be spent.',
  route: 'POST /api/cards',
  who: 'account',
  scopes: ['cards:write'],
  effect: 'write',
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
    return viewCard(await issueCard(context, withControls(wanted, controls), context.now))
  },
})
