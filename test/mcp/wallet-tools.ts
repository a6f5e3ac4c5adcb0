/** Tools that a key with the scopes `wallets:read` and `wallets:transfer` is offered, by name. */
export const walletTools = [
  'activity_list',
  'agents_decisions',
  'approvals_get',
  'approvals_request',
  'approvals_withdraw',
  'context',
  'policy_simulate',
  'rails_list',
  'transfers_gasless',
  'wallets_get',
  'wallets_transfer',
  'wallets_transfers_get',
  'wallets_transfers_list',
  'x402_payments_get',
]
