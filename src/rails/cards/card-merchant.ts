/** The only merchant of a card for one purchase. */
import { z } from 'zod'
import { toAlpha3 } from '../../core/base/alpha-3.ts'
import type { CardAuthorization } from '../../providers/card-processor/port.ts'

/** What a purchase has to show. Null members allow any. @property country ISO 3166-1 alpha-2. */
export const cardMerchant = z.object({
  mcc: z.string().nullable(),
  name: z.string().nullable(),
  country: z.string().nullable(),
})

export type CardMerchant = z.output<typeof cardMerchant>

/**
 * Compares each member that is given. Networks shorten names and add a branch or an order number, so a name has to begin
 * with the words of the given one, in any letter case.
 */
export function isSameMerchant(
  only: CardMerchant,
  { mcc, name, country }: Pick<CardAuthorization['merchant'], 'mcc' | 'name' | 'country'>,
): boolean {
  const words = splitWords(only.name ?? '')
  const found = splitWords(name)
  return (
    (only.mcc === null || only.mcc === mcc) &&
    (only.country === null || toAlpha3(only.country) === country?.toUpperCase()) &&
    words.every((word, place) => word === found[place])
  )
}

export function splitWords(name: string): readonly string[] {
  return (
    name
      .normalize('NFKC')
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? []
  )
}
