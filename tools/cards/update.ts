import { z } from 'zod'
import { Failure } from '../../src/core/failures/failure.ts'
import { requireCaller } from '../../src/kernel/context.ts'
import { requireProofToLoosen } from '../../src/kernel/gates/step-up.ts'
import { recordChange } from '../../src/kernel/record-change.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { bindToKey, listLoosenedParts } from '../../src/rails/cards/agent-card.ts'
import { describeCardChange } from '../../src/rails/cards/card-state.ts'
import {
  boundKey,
  cardView,
  controlMembers,
  memberDirections,
  viewCard,
  withControls,
} from '../../src/rails/cards/card-view.ts'
import { changeCard, findCardToChange, resolveBinding } from '../../src/rails/cards/change-card.ts'
import { endStoppedCards, isForOnePurchase } from '../../src/rails/cards/single-use.ts'

export default defineTool({
  name: 'cards.update',
  title: 'Change a card',
  summary: 'Change a card’s name, limits, channels or merchants, or cancel it for good.',
  description:
    'To stop one for now use POST /api/cards/settings. Absent members stay. A key only tightens cards bound to it; for more ask with POST /api/approvals.',
  restDescription:
    'An owner’s loosening (a higher limit, a longer list, another key or none) needs a fresh second factor. A card bound to a key gets a daily limit of 100 USD if it has none, and no ATM or magnetic stripe. `conflict`: the card changed meanwhile or is canceled.',
  route: 'PATCH /api/cards',
  who: 'account',
  scopes: ['cards:write'],
  effect: 'write',
  proof: 'loosening',
  mcp: true,
  stops: true,
  restOnly: ['agentId'],
  input: z
    .strictObject({
      cardId: z.string().max(64).describe('`card_…`'),
      status: z.literal('canceled').optional().describe('`canceled` cancels the card permanently.'),
      ...controlMembers,
      agentId: boundKey('`key_…`: key to bind the card to; null unbinds it. Owners only.'),
    })
    .refine((input) => Object.keys(input).length > 1, 'must name a member to change'),
  loosens: {
    cardId: 'never',
    // It can only be canceled.
    status: 'never',
    ...memberDirections,
    // The policy of another key, or none, replaces the one that bound it.
    agentId: (before, after) => typeof before === 'string' && after !== before,
  },
  output: cardView,
  failures: ['not_found', 'conflict', 'insufficient_scope', 'step_up_required', 'mfa_enrollment_required'],
  example: { cardId: 'card_01h455vb4pex5vsknk084sn02q', nickname: 'Travel' },
  run: async (context, { cardId, status, agentId, ...controls }) => {
    const { database } = context
    const caller = requireCaller(context)
    const actor = { accountId: caller.account.id, keyId: caller.kind === 'key' ? caller.key.id : null }
    const card = await findCardToChange(database, actor, cardId)
    const keyId = await resolveBinding(database, actor, { wanted: agentId, before: card.keyId })
    if (keyId !== card.keyId && (await isForOnePurchase(database, cardId)))
      throw new Failure('conflict', 'A card for one purchase stays with the key that issued it.')
    const after = { ...withControls(bindToKey(card, keyId), controls), status: status ?? card.status }
    requireProofToLoosen(context, listLoosenedParts(card, after))
    const changed = await changeCard(database, actor, { before: card, after })
    await recordChange(context, describeCardChange(card, changed))
    if (changed.status === 'canceled')
      context.afterCommit((pool) => endStoppedCards(pool, { accountId: actor.accountId, at: context.now }))
    return viewCard(changed)
  },
})
