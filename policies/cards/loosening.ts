/** Detects changes of a card that let it pay more than before, which a key may not make to its own card. */
import { type Directions, looserMembers } from '../directions.ts'
import type { CardControls } from './controls.ts'

/** Controls that can be loosened. @property priority assets that may fund purchases. */
export interface LoosenableControls extends CardControls {
  readonly dailyMax: bigint | null
  readonly priority: readonly string[]
}

/** The direction in which each control loosens. */
export const controlDirections = {
  status: (before: unknown, after: unknown) => before !== 'active' && after === 'active',
  dailyMax: 'higher',
  purchaseMax: 'higher',
  channels: 'wider',
  mccAllow: 'wider',
  mccDeny: 'narrower',
  priority: 'wider',
} as const satisfies Directions<LoosenableControls>

/** Names that callers know. */
const names: Readonly<Record<keyof LoosenableControls, string>> = {
  status: 'freeze',
  dailyMax: 'limits.daily',
  purchaseMax: 'limits.perPurchase',
  channels: 'channels',
  mccAllow: 'mcc.allow',
  mccDeny: 'mcc.deny',
  priority: 'priority',
}

/** Lists the controls that are looser after a change, by name. */
export function loosenedControls(before: LoosenableControls, after: LoosenableControls): readonly string[] {
  const loosened = looserMembers(controlDirections, before, after)
  return Object.entries(names).flatMap(([member, name]) => (loosened.includes(member) ? [name] : []))
}
