/** Rail controls: whether a way to move money is switched on. Where they cannot be read, nothing may move. */

import type { Connection } from '../storage/database.ts'

/** The rails of this deployment; every money operation names the one it runs on. */
export const railIds = [
  'wallet-transfer',
  'wallet-gasless',
  'x402-fx',
  'investing',
  'card-payments',
  'bank-deposit',
] as const

/** One rail. */
export type RailId = (typeof railIds)[number]

/** What the control plane says of a rail. */
export interface RailControl {
  readonly rail: RailId
  readonly enabled: boolean
  /** Why it is off, for people. */
  readonly reason: string | null
}

/** The rail controls port. Adapters: `database` (the default) and `remote` (`RAIL_CONTROLS_URL`). */
export interface RailControls {
  /** @throws Failure `controls_unavailable` with `reason` and `retryAfter` where the answer is not known. */
  read(rail: RailId): Promise<RailControl>
  /**
   * Switches a rail. @param also what is written in the same transaction.
   * @throws Failure `conflict` where the controls are kept elsewhere, `controls_unavailable`.
   */
  write(control: RailControl, at: Date, also?: (transaction: Connection) => Promise<void>): Promise<void>
}
