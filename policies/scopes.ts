/** The closed list of what a key can be allowed to do. No key ever holds an owner's scope, so there is none here. */

/** Every scope with what it allows, in the words of a consent page. */
export const scopes = {
  'wallets:read': 'See the wallet, its balances and its transfers.',
  'wallets:transfer': 'Send stablecoins from the wallet, within the spend policy.',
  'banking:read': 'See the virtual accounts.',
  'banking:write': 'Open virtual accounts.',
  'cards:read': 'See the cards and their settings.',
  'cards:write': 'Issue cards and change their controls, within the spend policy.',
  'investing:read': 'See the portfolio and the orders.',
  'investing:trade': 'Place and cancel orders, within the spend policy.',
  'swaps:quote': 'Ask for quotes of cross-chain swaps.',
  'compliance:write': 'Submit Travel Rule data, and see where identity verification stands.',
  'fx:pay': 'Buy FX quotes from the wallet, within the spend policy.',
} as const satisfies Record<string, string>

/** One scope. */
export type Scope = keyof typeof scopes

/** The scopes that can move money: a key that holds one of them must carry a spend policy. */
export const moneyScopes = [
  'wallets:transfer',
  'cards:write',
  'investing:trade',
  'fx:pay',
] as const satisfies readonly Scope[]

/** The scopes that change nothing. */
export const readScopes = [
  'wallets:read',
  'banking:read',
  'cards:read',
  'investing:read',
  'swaps:quote',
] as const satisfies readonly Scope[]

/** Whether a text names a scope. */
export function isScope(text: string): text is Scope {
  return Object.hasOwn(scopes, text)
}

/** Whether a key with these scopes can spend and therefore needs a spend policy. */
export function needsPolicy(held: readonly Scope[]): boolean {
  return moneyScopes.some((scope) => held.includes(scope))
}
