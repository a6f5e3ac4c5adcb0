import { z } from 'zod'
import { Failure } from '../../src/core/failures/failure.ts'
import { requireCaller } from '../../src/kernel/context.ts'
import { recordChange } from '../../src/kernel/record-change.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { describeCardChange } from '../../src/rails/cards/card-state.ts'
import { findCardToChange } from '../../src/rails/cards/change-card.ts'
import { endSingleUse, lockCards } from '../../src/rails/cards/single-use.ts'
import { updateCard } from '../../src/rails/cards/store.ts'

export default defineTool({
  name: 'cards.cancel',
  title: 'Cancel a card',
  summary: 'Cancel a card for one purchase that you issued.',
  description: 'What it has not taken returns.',
  restDescription:
    'Its owner cancels any card. An open purchase stays until it clears or is voided. `conflict`: canceled already.',
  route: 'DELETE /api/cards/{id}',
  who: 'account',
  scopes: ['cards:pay'],
  effect: 'write',
  proof: 'none',
  stops: true,
  mcp: true,
  input: z.strictObject({ id: z.string().max(64).describe('`card_…`') }),
  output: z.strictObject({ canceled: z.literal(true).describe('Always true.') }),
  failures: ['not_found', 'conflict', 'insufficient_scope'],
  example: { id: 'card_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const { database, now: at } = context
    const caller = requireCaller(context)
    const actor = { accountId: caller.account.id, keyId: caller.kind === 'key' ? caller.key.id : null }
    await lockCards(database, actor.accountId)
    const card = await findCardToChange(database, actor, id)
    const isForOne = await endSingleUse(database, { cardId: id, status: 'canceled', at })
    if (!isForOne && caller.kind === 'key')
      throw new Failure('insufficient_scope', 'With cards:pay a key cancels its cards for one purchase.', {
        scopes: ['cards:write'],
        hint: 'Cancel another card of yours with PATCH /api/cards {"status":"canceled"}, or tell the owner.',
      })
    const canceled = { ...card, status: 'canceled' as const }
    const changed = isForOne
      ? { ...canceled, version: card.version + 1 }
      : await updateCard(database, canceled)
    await recordChange(context, describeCardChange(card, changed))
    return { canceled: true as const }
  },
})
