import { buildViolation, type Violation } from '../decision.ts'
import type { Policy } from '../policy.ts'
import type { SpendFacts } from '../spend.ts'
import { usdMicrosOf, usdOfMicros } from '../usd.ts'

/** A single spend must not exceed the policy's cap. A spend without a price violates it. */
export function perTransaction(policy: Policy, { usdMicros }: SpendFacts): Violation | undefined {
  const limit = usdMicrosOf(policy.perTransaction.max)
  if (usdMicros !== null && usdMicros >= 0n && usdMicros <= limit) return undefined
  return buildViolation('per_transaction', {
    limit: usdOfMicros(limit),
    requested: usdMicros === null ? null : usdOfMicros(usdMicros),
    remaining: usdOfMicros(limit),
  })
}
