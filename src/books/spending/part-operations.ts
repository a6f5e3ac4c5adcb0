/**
 * Operations whose transfers on the chain are a part of something else: a purse is filled for purchases, a payout is sent to the
 * bank, a card purchase is settled, and escrow is pulled or returned. Lists of what was spent leave these transfers out.
 */
export const partOperations = [
  'purchases.buy',
  'banking.payouts.create',
  'cards.settle',
  'cards.pull',
  'cards.return',
] as const
