import { z } from 'zod'
import { requirePerson } from '../../src/kernel/context.ts'
import { recordChange } from '../../src/kernel/record-change.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { findCardToChange } from '../../src/rails/cards/change-card.ts'

/** The number is shown that long, in seconds. */
const SHOWN_SECONDS = 60

const once = 'Null in a replayed answer, because it is shown once.'

export default defineTool({
  name: 'cards.reveal',
  title: 'Show a card’s number',
  summary: 'Show the number and code of a card to its owner for 60 seconds.',
  description:
    'In the sandbox the answer has a test number; with a live card processor it has `embedUrl`, the page of the processor for an iframe, so that the number passes no server of ours. Hide it at `expiresAt`. Each reveal is journalled, without the number. `conflict`: the card is canceled.',
  route: 'POST /api/cards/{id}/reveal',
  who: 'person',
  effect: 'write',
  proof: 'step-up',
  rate: 'reveals',
  shownOnce: ['pan', 'cvc', 'embedUrl'],
  input: z.strictObject({ id: z.string().max(64).describe('`card_…`') }),
  output: z.strictObject({
    pan: z.string().nullable().optional().describe(`Card number, 16 digits; sandbox only. ${once}`),
    cvc: z.string().nullable().optional().describe(`Card verification code; sandbox only. ${once}`),
    expMonth: z.int().optional().describe('Month of expiry, 1 to 12; sandbox only.'),
    expYear: z.int().optional().describe('Year of expiry; sandbox only.'),
    embedUrl: z
      .string()
      .nullable()
      .optional()
      .describe(`Page of the card processor that shows the number; live only. ${once}`),
    expiresAt: z.string().describe('When to hide it, ISO 8601 UTC.'),
  }),
  failures: ['not_found', 'conflict', 'provider_unavailable', 'rate_limited'],
  example: { id: 'card_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const actor = { accountId: requirePerson(context).account.id, keyId: null }
    const { token, last4, expMonth, expYear } = await findCardToChange(context.database, actor, id)
    const expiresAt = new Date(context.now.getTime() + SHOWN_SECONDS * 1000)
    const reveal = context.cardProcessor.reveal({ cardId: id, token, last4 }, expiresAt)
    await recordChange(context, { action: 'card.revealed', object: { kind: 'card', id } })
    if (reveal.kind === 'embedded') return { embedUrl: reveal.url, expiresAt: expiresAt.toISOString() }
    const { pan, cvc } = reveal
    return { pan, cvc, expMonth, expYear, expiresAt: expiresAt.toISOString() }
  },
})
