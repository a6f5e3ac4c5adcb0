/**
 * What looks like one transfer cut into several that each stay under the Travel Rule's threshold.
 * @property count from how many such transfers on. @property fromPercent of the threshold: where "just under" begins.
 */
export interface Structuring {
  readonly count: number
  readonly seconds: number
  readonly fromPercent: number
}

/** Three transfers of 80 % of the threshold or more within 24 hours. */
export const defaultStructuring: Structuring = { count: 3, seconds: 86_400, fromPercent: 80 }

/** Amounts from `from` to below `below`, in millionths of the threshold's currency. */
export interface Band {
  readonly from: bigint
  readonly below: bigint
}

/** The amounts just under a threshold. Empty where there is none to stay under. */
export function bandBelow(threshold: bigint, { fromPercent }: Structuring): Band {
  return { from: (threshold * BigInt(fromPercent) + 99n) / 100n, below: threshold }
}

/** Whether an amount is just under the threshold. */
export function isInBand(amount: bigint, { from, below }: Band): boolean {
  return amount >= from && amount < below
}
