import { z } from 'zod'
import { cardView, controlMembers, viewCard, withControls } from '../../src/cards/card-view.ts'
import { bindingOf, changeCard, findCardToChange } from '../../src/cards/change-card.ts'
import { callerOf } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'

export default defineTool({
  name: 'cards.update',
  title: 'Change a card',
  summary: 'Change a card’s name, limits, channels, merchants or key, or cancel it for good.',
  description:
    'Binds the very next purchase, on every instance. What is absent stays. A key can change only cards that are bound to it, and only tighten them.',
  route: 'PATCH /api/cards',
  who: 'account',
  scopes: ['cards:write'],
  effect: 'write',
  mcp: true,
  input: z
    .strictObject({
      cardId: z.string().max(64).describe('`card_…`'),
      status: z.literal('canceled').optional().describe('`canceled`: it never pays again.'),
      ...controlMembers,
      agentId: z
        .string()
        .max(64)
        .nullable()
        .optional()
        .describe('`key_…`: bind the card to this key; null: to none. Only the owner may say so.'),
    })
    .refine((input) => Object.keys(input).length > 1, 'names nothing to change'),
  output: cardView,
  failures: ['not_found', 'conflict', 'insufficient_scope'],
  example: { cardId: 'card_01h455vb4pex5vsknk084sn02q', nickname: 'Travel' },
  run: async (context, { cardId, status, agentId, ...controls }) => {
    const { database } = context
    const caller = callerOf(context)
    const changer = { accountId: caller.account.id, keyId: caller.kind === 'key' ? caller.key.id : null }
    const card = await findCardToChange(database, changer, cardId)
    const keyId = await bindingOf(database, changer, { wanted: agentId, before: card.keyId })
    const changed = { ...withControls(card, controls), keyId, status: status ?? card.status }
    return viewCard(await changeCard(database, changer, { before: card, after: changed }))
  },
})
