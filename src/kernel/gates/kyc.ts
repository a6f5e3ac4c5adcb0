/** Whether an account is known well enough for a spend. */
import { neededLevel } from '../../../policies/kyc.ts'
import { usdOfMicros } from '../../../policies/usd.ts'
import type { Account } from '../../base/principal.ts'
import { Failure } from '../../failures/failure.ts'
import type { Settings } from '../context.ts'

/** Demo guests are nobody, and have nothing of worth. @throws Failure `kyc_required` that says which level and why. */
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
    `A spend worth ${usdOfMicros(usdMicros)} USD needs identity verification of level "${level}"; the account has "${account.kycLevel}".`,
    {
      hint: `Send POST /api/compliance/kyc {"level":"${level === 'none' ? 'basic' : level}","applicant":{…}}, or spend less at once.`,
    },
  )
}
