/** Whether a change of a card lets it pay more than before: what no key may do to a card that it spends with. */
import type { CardControls } from './controls.ts'

/** The controls that can be loosened. @property priority the assets that it may be paid from. */
export interface LoosenableControls extends CardControls {
  readonly dailyMax: bigint | null
  readonly priority: readonly string[]
}

/** The controls that are looser after a change than before it, by name; empty where none is. */
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
