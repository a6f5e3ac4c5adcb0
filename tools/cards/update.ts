import { z } from 'zod'
import { isHeldByKey, loosenedParts } from '../../src/cards/agent-card.ts'
import { cardState } from '../../src/cards/card-state.ts'
import { cardView, controlMembers, viewCard, withControls } from '../../src/cards/card-view.ts'
import { bindingOf, changeCard, findCardToChange } from '../../src/cards/change-card.ts'
import { callerOf } from '../../src/kernel/context.ts'
import { requireStepUp } from '../../src/kernel/gates/step-up.ts'
import { recordChange } from '../../src/kernel/record-change.ts'
import { defineTool } from '../../src/kernel/tool.ts'

export default defineTool({
  name: 'cards.update',
  title: 'Change a card',
  summary: 'Change a card’s name, limits, channels, merchants or key, or cancel it for good.',
  description:
    'Binds the very next purchase, on every instance. What is absent stays. A key can change only cards that are bound to it, and only tighten them. What loosens (a higher limit, a longer list, another key or none) needs a fresh second factor of the owner. A card that is bound to a key gets a daily limit of 100 USD where it has none, and loses ATM and magnetic stripe.',
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
  failures: ['not_found', 'conflict', 'insufficient_scope', 'step_up_required', 'mfa_enrollment_required'],
  example: { cardId: 'card_01h455vb4pex5vsknk084sn02q', nickname: 'Travel' },
  run: async (context, { cardId, status, agentId, ...controls }) => {
    const { database } = context
    const caller = callerOf(context)
    const changer = { accountId: caller.account.id, keyId: caller.kind === 'key' ? caller.key.id : null }
    const card = await findCardToChange(database, changer, cardId)
    const keyId = await bindingOf(database, changer, { wanted: agentId, before: card.keyId })
    const after = { ...withControls(isHeldByKey(card, keyId), controls), status: status ?? card.status }
    if (caller.kind === 'session' && loosenedParts(card, after).length > 0) requireStepUp(context)
    const changed = await changeCard(database, changer, { before: card, after })
    await recordChange(context, {
      action: 'card.updated',
      object: { kind: 'card', id: cardId },
      before: cardState(card),
      after: cardState(changed),
    })
    return viewCard(changed)
  },
})
