import { z } from 'zod'
import { listLoosenedParts } from '../../src/cards/agent-card.ts'
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
  summary: 'Freeze or unfreeze a card, and set its limits, channels and funding order.',
  description:
    'Use it at once when a card may be misused: `freeze: true` declines every purchase. For names, merchants or canceling use PATCH /api/cards. Free. Absent members stay unchanged; it applies from the next purchase. A key can only tighten cards bound to it, so it cannot unfreeze; `insufficient_scope`: ask the owner. Loosening needs the owner’s fresh second factor. `conflict`: the card changed meanwhile or is canceled: read it again.',
  route: 'POST /api/cards/settings',
  who: 'account',
  scopes: ['cards:write'],
  effect: 'write',
  mcp: true,
  input: z
    .strictObject({
      cardId: z.string().max(64).describe('`card_…`'),
      freeze: z
        .boolean()
        .optional()
        .describe('True declines every purchase until the card is unfrozen with false.'),
      limits,
      priority,
      channels,
    })
    .refine((input) => Object.keys(input).length > 1, 'must name a member to change'),
  output: z.strictObject({
    success: z.literal(true).describe('Always true.'),
    card: cardView.describe('Card after the change.'),
  }),
  failures: ['not_found', 'conflict', 'insufficient_scope', 'step_up_required', 'mfa_enrollment_required'],
  example: { cardId: 'card_01h455vb4pex5vsknk084sn02q', freeze: true },
  run: async (context, { cardId, freeze, ...controls }) => {
    const { database } = context
    const caller = callerOf(context)
    const actor = { accountId: caller.account.id, keyId: caller.kind === 'key' ? caller.key.id : null }
    const card = await findCardToChange(database, actor, cardId)
    const status = freeze === undefined ? card.status : freeze ? ('frozen' as const) : ('active' as const)
    const after = { ...withControls(card, controls), status }
    if (caller.kind === 'session' && listLoosenedParts(card, after).length > 0) requireStepUp(context)
    const changed = await changeCard(database, actor, { before: card, after })
    await recordChange(context, {
      action: 'card.updated',
      object: { kind: 'card', id: cardId },
      before: cardState(card),
      after: cardState(changed),
    })
    return { success: true as const, card: viewCard(changed) }
  },
})
