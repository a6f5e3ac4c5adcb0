/** Access to bank accounts: requires identity verification, except in the sandbox, where no money is real. */

export function canOpenVirtualAccounts({
  mode,
  kycLevel,
}: {
  readonly mode: 'sandbox' | 'production'
  readonly kycLevel: string
}): boolean {
  return mode === 'sandbox' || kycLevel !== 'none'
}
