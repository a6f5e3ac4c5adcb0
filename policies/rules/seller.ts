import type { Violation } from '../decision.ts'
import type { Policy } from '../policy.ts'
import { deniesSeller, namesSeller } from '../seller-names.ts'
import type { SpendFacts } from '../spend.ts'
import { checkLists } from './lists.ts'

/** Purchases are limited to allowed sellers, excluding denied ones. A wildcard names every host below its domain, and
 * a denied name without a port every port. */
export function seller({ sellers }: Policy, spend: SpendFacts): Violation | undefined {
  if (spend.seller === undefined || spend.seller === null || sellers === undefined) return undefined
  const { origin } = spend.seller
  const { allow, deny } = sellers
  const lists = {
    allow: allow?.map((entry) => (namesSeller(entry, origin) ? origin : entry)),
    deny: deny?.map((entry) => (deniesSeller(entry, origin) ? origin : entry)),
  }
  return checkLists('seller', lists, origin)
}
