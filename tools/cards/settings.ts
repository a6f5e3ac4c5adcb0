import { z } from 'zod'
import { loosenedParts } from '../../src/cards/agent-card.ts'
import { cardState } from '../../src/cards/card-state.ts'
import { cardView, controlMembers, viewCard, withControls } from '../../src/cards/card-view.ts'
import { changeCard, findCardToChange } from '../../src/cards/change-card.ts'
import { callerOf } from '../../src/kernel/context.ts'
import { requireStepUp } from '../../src/kernel/gates/step-up.ts'
import { recordChange } from '../../src/kernel/record-change.ts'
import { defineTool } from '../../src/kernel/tool.ts'

const { limits, priority, channels } = controlMembers

export default defineTool({
  name: 'cards.settings',
  title: 'Card controls',
  summary: 'Freeze or unfreeze a card, and set its limits, channels and what it is paid from.',
  description:
    'In real time: the very next purchase is decided by it, on every instance. What is absent stays. A key can change only cards that are bound to it, and only tighten them. What loosens needs a fresh second factor of the owner.',
  route: 'POST /api/cards/settings',
  who: 'account',
  scopes: ['cards:write'],
  effect: 'write',
  mcp: true,
  input: z
    .strictObject({
      cardId: z.string().max(64).describe('`card_…`'),
      freeze: z.boolean().optional().describe('true: it pays nothing until it is unfrozen.'),
      limits,
      priority,
      channels,
    })
    .refine((input) => Object.keys(input).length > 1, 'names nothing to change'),
  output: z.strictObject({
    success: z.literal(true).describe('The controls hold.'),
    card: cardView.describe('The card as it is now.'),
  }),
  failures: ['not_found', 'conflict', 'insufficient_scope', 'step_up_required', 'mfa_enrollment_required'],
  example: { cardId: 'card_01h455vb4pex5vsknk084sn02q', freeze: true },
  run: async (context, { cardId, freeze, ...controls }) => {
    const { database } = context
    const caller = callerOf(context)
    const changer = { accountId: caller.account.id, keyId: caller.kind === 'key' ? caller.key.id : null }
    const card = await findCardToChange(database, changer, cardId)
    const status = freeze === undefined ? card.status : freeze ? ('frozen' as const) : ('active' as const)
    const after = { ...withControls(card, controls), status }
    if (caller.kind === 'session' && loosenedParts(card, after).length > 0) requireStepUp(context)
    const changed = await changeCard(database, changer, { before: card, after })
    await recordChange(context, {
      action: 'card.updated',
      object: { kind: 'card', id: cardId },
      before: cardState(card),
      after: cardState(changed),
    })
    return { success: true as const, card: viewCard(changed) }
  },
})
