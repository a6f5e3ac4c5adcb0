/** The closed list of key scopes. Owner-only operations have no scope, because keys never get them. */

/** Every scope with the description shown on the consent page. */
export const scopes = {
  'wallets:read': 'See the wallet, its balances and its transfers.',
  'wallets:transfer': 'Send stablecoins from the wallet, within the spend policy.',
  'banking:read': 'See the virtual accounts.',
  'banking:write': 'Open virtual accounts.',
  'banking:pay': 'Pay out money to saved bank accounts, within the spend policy.',
  'cards:read': 'See the cards and their settings.',
  'cards:write': 'Issue cards and change their controls, within the spend policy.',
  'cards:pay': 'Issue cards for one purchase, within the spend policy.',
  'investing:read': 'See the portfolio and the orders.',
  'investing:trade': 'Place and cancel orders, within the spend policy.',
  'swaps:quote': 'Request quotes of cross-chain swaps.',
  'swaps:execute': 'Swap stablecoins of the wallet, within the spend policy.',
  'compliance:write': 'Submit Travel Rule data, and see the status of identity verification.',
  'fx:pay': 'Buy FX quotes from the wallet, within the spend policy.',
  'purchases:pay': 'Buy paid web resources from the wallet, within the spend policy.',
  'agents:delegate': 'Give other agents a part of its own budget, and take it back.',
  'requests:create': 'Ask others for money by requests of its own, and cancel them.',
  'requests:read': 'See its own requests for money.',
  'events:read': 'Follow the events of its own calls.',
} as const satisfies Record<string, string>

export type Scope = keyof typeof scopes

/** Scopes that can move money: a key with one of them must carry a spend policy. */
export const moneyScopes = [
  'wallets:transfer',
  'banking:pay',
  'cards:write',
  'cards:pay',
  'investing:trade',
  'swaps:execute',
  'fx:pay',
  'purchases:pay',
] as const satisfies readonly Scope[]

/** Scopes that change nothing. */
export const readScopes = [
  'wallets:read',
  'banking:read',
  'cards:read',
  'investing:read',
  'swaps:quote',
  'requests:read',
  'events:read',
] as const satisfies readonly Scope[]

export function isScope(text: string): text is Scope {
  return Object.hasOwn(scopes, text)
}

export function needsPolicy(held: readonly Scope[]): boolean {
  return moneyScopes.some((scope) => held.includes(scope))
}
