/** Grantable scopes and policy presets for the consent page. */
export { policyPresets, presetRepeats } from '../../../../policies/presets.ts'
export { isScope, moneyScopes, readScopes, type Scope, scopes } from '../../../../policies/scopes.ts'
