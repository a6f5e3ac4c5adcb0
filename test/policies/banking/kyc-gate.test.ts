import { expect, it } from 'vitest'
import { canOpenVirtualAccounts } from '../../../policies/banking/kyc-gate.ts'

it('admits every level in the sandbox, and identified persons in production', () => {
  const levels = ['none', 'basic', 'full']
  expect(levels.map((kycLevel) => canOpenVirtualAccounts({ mode: 'sandbox', kycLevel }))).toEqual([
    true,
    true,
    true,
  ])
  expect(levels.map((kycLevel) => canOpenVirtualAccounts({ mode: 'production', kycLevel }))).toEqual([
    false,
    true,
    true,
  ])
})
