import { expect, it } from 'vitest'
import { canOpenVirtualAccounts } from '../../../policies/banking/kyc-gate.ts'

it('lets anybody bank in the sandbox, and in production whoever is identified', () => {
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
