/**
 * Structuring: one transfer split into several that each stay under the Travel Rule threshold.
 * @property count number of such transfers that triggers the rule.
 * @property fromPercent lower end of "just under", in percent of the threshold.
 */
export interface Structuring {
  readonly count: number
  readonly seconds: number
  readonly fromPercent: number
}

/** Three transfers of 80 % of the threshold or more within 24 hours. */
export const defaultStructuring: Structuring = { count: 3, seconds: 86_400, fromPercent: 80 }

/** Amounts from `from` up to but excluding `below`, in millionths of the threshold's currency. */
export interface Band {
  readonly from: bigint
  readonly below: bigint
}

/** Computes the amounts just under a threshold; empty for a threshold of zero. */
export function bandBelow(threshold: bigint, { fromPercent }: Structuring): Band {
  return { from: (threshold * BigInt(fromPercent) + 99n) / 100n, below: threshold }
}

export function isInBand(amount: bigint, { from, below }: Band): boolean {
  return amount >= from && amount < below
}
