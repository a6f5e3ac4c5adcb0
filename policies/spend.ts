/** What the rules are told about a spend. A fact that is not known is null, and a rule that needs it then denies. */
import type { SpendCategory } from './policy.ts'

/** One spend as the policies see it. */
export interface SpendFacts {
  readonly category: SpendCategory
  /** Symbol of the asset that leaves, such as `USDC`. */
  readonly asset: string
  /** Worth in millionths of a US dollar, rounded up; null where it could not be priced. */
  readonly usdMicros: bigint | null
  /** Chain by name, such as `base-sepolia`; null where the spend is on none or it is not known. */
  readonly chain: string | null
  /** Who is paid: an EVM address in any case; null where nobody is known. */
  readonly counterparty: string | null
  /** The merchant's category, four digits of ISO 18245; null where there is no merchant or it is not known. */
  readonly mcc: string | null
  /** Ticker of what is bought or sold; null where nothing is or it is not known. */
  readonly symbol: string | null
}
