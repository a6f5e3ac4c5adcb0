/** Facts of a spend that the rules evaluate. An unknown fact is null, and a rule that needs it denies. */
import type { SpendCategory } from './policy.ts'

export interface SpendFacts {
  readonly category: SpendCategory
  /** Symbol of the asset that is spent, such as `USDC`. */
  readonly asset: string
  /** Value in millionths of a US dollar, rounded up; null when it could not be priced. */
  readonly usdMicros: bigint | null
  /** Chain by name, such as `base-sepolia`; null when there is none or it is unknown. */
  readonly chain: string | null
  /** Payee: an EVM address in any letter case; null when unknown. */
  readonly counterparty: string | null
  /** Merchant category, four digits of ISO 18245; null when there is no merchant or it is unknown. */
  readonly mcc: string | null
  /** Ticker that is traded; null when there is none or it is unknown. */
  readonly symbol: string | null
}
