/** Who may have a bank account: whoever is identified; in the sandbox anybody, because no money there is real. */

/** Whether an account may open virtual accounts. */
export function canOpenVirtualAccounts({
  mode,
  kycLevel,
}: {
  readonly mode: 'sandbox' | 'production'
  readonly kycLevel: string
}): boolean {
  return mode === 'sandbox' || kycLevel !== 'none'
}
