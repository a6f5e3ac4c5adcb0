import { buildViolation, type RuleName, type Violation } from '../decision.ts'

/** Allow and deny lists; without `allow`, everything that is not denied is allowed. */
interface Lists {
  readonly allow?: readonly string[] | undefined
  readonly deny?: readonly string[] | undefined
}

/**
 * Evaluates the lists for one value. Deny beats allow. An unknown value violates either list, because it may be
 * denied and may not be allowed.
 */
export function checkLists(
  rule: RuleName,
  { allow, deny = [] }: Lists,
  requested: string | null,
): Violation | undefined {
  const isNamed = deny.some((entry) => entry === requested)
  const isDenied = isNamed || (requested === null && deny.length > 0)
  if (!isDenied && (allow === undefined || allow.some((entry) => entry === requested))) return undefined
  const limit = isNamed ? `not ${requested}` : (allow?.join(',') ?? null)
  return buildViolation(rule, { limit, requested })
}
