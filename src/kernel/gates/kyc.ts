/** Requires the identity verification level for a spend. */
import { neededLevel } from '../../../policies/kyc.ts'
import { formatUsd } from '../../../policies/usd.ts'
import type { Account } from '../../core/base/principal.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { Settings } from '../context.ts'

/**
 * Demo guests are exempt, because their money is not real. @throws Failure `kyc_required` with the level and the
 * reason.
 */
export function requireKyc(
  { kycLimits, mode }: Pick<Settings, 'kycLimits' | 'mode'>,
  account: Account,
  usdMicros: bigint,
): void {
  if (mode === 'sandbox' && account.guest) return
  const level = neededLevel(kycLimits, { level: account.kycLevel, usdMicros })
  if (level === null) return
  throw new Failure(
    'kyc_required',
    `A spend worth ${formatUsd(usdMicros)} USD requires identity verification level "${level}"; the account has "${account.kycLevel}".`,
    {
      hint: `Send POST /api/compliance/kyc {"level":"${level === 'none' ? 'basic' : level}","applicant":{…}}; the owner gives the data. Never split the spend.`,
    },
  )
}
