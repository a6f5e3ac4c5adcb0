/** Detects changes of a card that let it pay more than before, which a key may not make to its own card. */
import type { CardControls } from './controls.ts'

/** Controls that can be loosened. @property priority assets that may fund purchases. */
export interface LoosenableControls extends CardControls {
  readonly dailyMax: bigint | null
  readonly priority: readonly string[]
}

/** Lists the controls that are looser after a change, by name. */
export function loosenedControls(before: LoosenableControls, after: LoosenableControls): readonly string[] {
  const isRaised = (from: bigint | null, to: bigint | null) => from !== null && (to === null || to > from)
  const isLonger = (from: readonly string[], to: readonly string[]) => to.some((each) => !from.includes(each))
  const loosened = {
    freeze: before.status !== 'active' && after.status === 'active',
    'limits.daily': isRaised(before.dailyMax, after.dailyMax),
    'limits.perPurchase': isRaised(before.purchaseMax, after.purchaseMax),
    channels: isLonger(before.channels, after.channels),
    'mcc.allow':
      before.mccAllow !== null && (after.mccAllow === null || isLonger(before.mccAllow, after.mccAllow)),
    'mcc.deny': isLonger(after.mccDeny, before.mccDeny),
    priority: isLonger(before.priority, after.priority),
  }
  return Object.entries(loosened).flatMap(([name, isLoosened]) => (isLoosened ? [name] : []))
}
