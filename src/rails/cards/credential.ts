/** The number and code of a card for one purchase, given to its issuer once. Stored nowhere and in no log. */
import { z } from 'zod'
import type { CardProcessor } from '../../providers/card-processor/port.ts'
import type { Card } from './store.ts'

/** How long the page with the number works. */
const SHOWN_MS = 10 * 60_000

export const cardCredential = z
  .strictObject({
    pan: z.string().describe('Card number.'),
    cvc: z.string().describe('Verification code.'),
    expMonth: z.int().describe('1 to 12.'),
    expYear: z.int().describe('Four digits.'),
    billing: z
      .strictObject({
        name: z.string().describe('Name on the card.'),
        address: z.string().nullable().describe('In one line; null if unknown.'),
        country: z.string().nullable().describe('ISO 3166-1 alpha-2; null if unknown.'),
      })
      .describe('What a shop asks for.'),
  })
  .meta({ id: 'CardCredential' })

type Billing = Pick<z.output<typeof cardCredential>['billing'], 'address' | 'country'>

/**
 * Reads what the issuer of a card is shown: its number, or where the gateway may not see it, a page of the processor for a person.
 * @throws Failure `provider_unavailable`.
 */
export async function readCredential(
  cardProcessor: Pick<CardProcessor, 'readCredential' | 'reveal'>,
  { id: cardId, token, last4, expMonth, expYear, cardholderName: name }: Card,
  { billing, isForPerson, now }: { billing: Billing; isForPerson: boolean; now: Date },
): Promise<{ credential: z.output<typeof cardCredential> | null } | { embedUrl: string }> {
  const card = { cardId, token, last4 }
  const found = await cardProcessor.readCredential(card)
  if (found !== null) return { credential: { ...found, expMonth, expYear, billing: { name, ...billing } } }
  if (!isForPerson) return { credential: null }
  const reveal = cardProcessor.reveal(card, new Date(now.getTime() + SHOWN_MS))
  return reveal.kind === 'embedded' ? { embedUrl: reveal.url } : { credential: null }
}
