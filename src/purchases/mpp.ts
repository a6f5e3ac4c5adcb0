import type { Chain } from '../providers/chain.ts'
import type { PublicAnswer } from '../providers/public-fetch.ts'
import type { ReadOffer } from './terms.ts'

export function readMppChallenges(
  _chain: Pick<Chain, 'id'>,
  _answer: Pick<PublicAnswer, 'headers'>,
  _now: Date,
): readonly ReadOffer[] {
  return []
}
