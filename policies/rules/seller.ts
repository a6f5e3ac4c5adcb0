import type { Violation } from '../decision.ts'
import type { Policy } from '../policy.ts'
import type { SpendFacts } from '../spend.ts'
import { listed } from './lists.ts'

/** Purchases are limited to allowed sellers, excluding denied ones. A wildcard names every host below its domain. */
export function seller({ sellers }: Policy, spend: SpendFacts): Violation | undefined {
  if (spend.seller === undefined || spend.seller === null || sellers === undefined) return undefined
  const { origin } = spend.seller
  const named = (entries: readonly string[] | undefined) =>
    entries?.map((entry) => (isNamed(entry, origin) ? origin : entry))
  return listed('seller', { allow: named(sellers.allow), deny: named(sellers.deny) }, origin)
}

function isNamed(entry: string, origin: string): boolean {
  if (!entry.startsWith('*.')) return entry === origin
  const host = /^https:\/\/([^/:]+)(:\d+)?$/.exec(origin)?.[1]
  return host?.endsWith(entry.slice(1)) === true
}
