import { z } from 'zod'
import { requireCaller } from '../../src/kernel/context.ts'
import { requireProofToLoosen } from '../../src/kernel/gates/step-up.ts'
import { recordChange } from '../../src/kernel/record-change.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { listLoosenedParts } from '../../src/rails/cards/agent-card.ts'
import { describeCardChange } from '../../src/rails/cards/card-state.ts'
import {
  cardView,
  controlMembers,
  memberDirections,
  viewCard,
  withControls,
} from '../../src/rails/cards/card-view.ts'
import { changeCard, findCardToChange } from '../../src/rails/cards/change-card.ts'

const { limits, priority, channels } = controlMembers

export default defineTool({
  name: 'cards.settings',
  title: 'Card controls',
  summary: 'Freeze or unfreeze a card, and set its limits, channels and funding order.',
  description:
    'Use it at once when a card may be misused: `freeze: true` declines every purchase. For names, merchants or canceling use PATCH /api/cards. Absent members stay. A key only tightens cards bound to it, and cannot unfreeze: ask the owner.',
  restDescription:
    'An owner’s loosening needs a fresh second factor. `conflict`: the card changed meanwhile or is canceled.',
  route: 'POST /api/cards/settings',
  who: 'account',
  scopes: ['cards:write'],
  effect: 'write',
  proof: 'loosening',
  mcp: true,
  stops: true,
  input: z.strictObject({
    cardId: z.string().max(64).describe('`card_…`'),
    freeze: z.boolean().optional().describe('True declines every purchase, false allows them again.'),
    limits,
    priority,
    channels,
  }),
  loosens: {
    cardId: 'never',
    freeze: 'off',
    limits: memberDirections.limits,
    priority: memberDirections.priority,
    channels: memberDirections.channels,
  },
  output: z.strictObject({
    success: z.literal(true).describe('Always true.'),
    card: cardView.describe('Card after the change.'),
  }),
  failures: ['not_found', 'conflict', 'insufficient_scope', 'step_up_required', 'mfa_enrollment_required'],
  example: { cardId: 'card_01h455vb4pex5vsknk084sn02q', freeze: true },
  run: async (context, { cardId, freeze, ...controls }) => {
    const { database } = context
    const caller = requireCaller(context)
    const actor = { accountId: caller.account.id, keyId: caller.kind === 'key' ? caller.key.id : null }
    const card = await findCardToChange(database, actor, cardId)
    const status = freeze === undefined ? card.status : freeze ? ('frozen' as const) : ('active' as const)
    const after = { ...withControls(card, controls), status }
    requireProofToLoosen(context, listLoosenedParts(card, after))
    const changed = await changeCard(database, actor, { before: card, after })
    await recordChange(context, describeCardChange(card, changed))
    return { success: true as const, card: viewCard(changed) }
  },
})
