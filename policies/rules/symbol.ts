import { type Violation, violationOf } from '../decision.ts'
import type { Policy } from '../policy.ts'
import type { SpendFacts } from '../spend.ts'

/** Investments in an allowed symbol, and in none that is denied. Deny beats allow. An unknown symbol violates either list. */
export function symbol({ symbols }: Policy, spend: SpendFacts): Violation | undefined {
  if (spend.category !== 'invest' || symbols === undefined) return undefined
  const { allow, deny = [] } = symbols
  const asked = spend.symbol?.trim().toUpperCase() ?? null
  const denied = asked === null ? deny.length > 0 : deny.includes(asked)
  if (!denied && (allow === undefined || (asked !== null && allow.includes(asked)))) return undefined
  const limit = asked !== null && denied ? `not ${asked}` : (allow?.join(',') ?? null)
  return violationOf('symbol', { limit, requested: asked })
}
