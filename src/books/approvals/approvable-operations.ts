/** Operations that a key can ask its owner for: every spend, and changes that only the owner makes. */
export const approvableOperations = [
  'wallets.transfer',
  'transfers.gasless',
  'banking.payouts.create',
  'purchases.buy',
  'swaps.execute',
  'x402.fx',
  'investing.order',
  'cards.update',
  'agents.policy',
] as const

export type ApprovableOperation = (typeof approvableOperations)[number]
