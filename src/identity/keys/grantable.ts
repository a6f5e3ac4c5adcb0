/** What an owner can grant, as a consent page tells it: scopes in words, those that move money, and limits to begin with. */
export { policyPresets } from '../../../policies/presets.ts'
export { isScope, moneyScopes, readScopes, type Scope, scopes } from '../../../policies/scopes.ts'
