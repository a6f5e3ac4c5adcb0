import { type RuleName, type Violation, violationOf } from '../decision.ts'

/** What may and what must not be: without `allow` anything that is not denied. */
interface Lists {
  readonly allow?: readonly string[] | undefined
  readonly deny?: readonly string[] | undefined
}

/**
 * What two lists say of one thing. Deny beats allow. A thing that is not known violates either list, because it may be on
 * the one and may not be on the other.
 */
export function listed(
  rule: RuleName,
  { allow, deny = [] }: Lists,
  requested: string | null,
): Violation | undefined {
  const isNamed = deny.some((entry) => entry === requested)
  const isDenied = isNamed || (requested === null && deny.length > 0)
  if (!isDenied && (allow === undefined || allow.some((entry) => entry === requested))) return undefined
  const limit = isNamed ? `not ${requested}` : (allow?.join(',') ?? null)
  return violationOf(rule, { limit, requested })
}
