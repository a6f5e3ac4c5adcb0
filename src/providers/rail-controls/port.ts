/** Rail controls: whether a rail is enabled. While they cannot be read, no money moves. */

import type { Connection } from '../../storage/database.ts'

/** Rails of this deployment; every money operation names its rail. */
export const railIds = [
  'wallet-transfer',
  'wallet-gasless',
  'x402-fx',
  'x402-purchases',
  'investing',
  'card-payments',
  'bank-deposit',
  'bank-payout',
] as const

export type RailId = (typeof railIds)[number]

/** State of a rail, according to the control plane. */
export interface RailControl {
  readonly rail: RailId
  readonly enabled: boolean
  /** Human-readable reason why it is off. */
  readonly reason: string | null
}

/** The rail controls port. Adapters: `database` (the default) and `remote` (`RAIL_CONTROLS_URL`). */
export interface RailControls {
  /** @throws Failure `controls_unavailable` with `reason` and `retryAfter` when the state is unknown. */
  read(rail: RailId): Promise<RailControl>
  /**
   * Switches a rail.
   * @param also writes in the same transaction.
   * @throws Failure `conflict` when an external control plane owns the controls; `controls_unavailable`.
   */
  write(control: RailControl, at: Date, also?: (transaction: Connection) => Promise<void>): Promise<void>
}
