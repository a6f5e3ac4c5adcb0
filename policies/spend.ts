/** Facts of a spend that the rules evaluate. An unknown fact is null, and a rule that needs it denies. */
import type { SpendCategory } from './policy.ts'

/**
 * Seller of a purchase, and what the account remembers of it. Payees are EVM addresses in lower case, prices are in smallest
 * units of the asset.
 */
export interface SellerFacts {
  readonly origin: string
  readonly payTo: string
  readonly price: string
  /** Payees that the account has paid for purchases from this seller. */
  readonly knownPayees: readonly string[]
  /** Price of its latest purchase of the same resource in the same asset; null: none. */
  readonly knownPrice: string | null
  /**
   * Whether its latest paid purchases were delivered, newest first: `1` or `0` each. Null: not read, so that its record is not
   * judged: before it was asked, and in old records.
   */
  readonly outcomes: string | null
}

export interface SpendFacts {
  readonly category: SpendCategory
  /** Symbol of the asset that is spent, such as `USDC`. */
  readonly asset: string
  /** Value in millionths of a US dollar, rounded up; null when it could not be priced. */
  readonly usdMicros: bigint | null
  /** Chain by name, such as `base-sepolia`; null when there is none or it is unknown. */
  readonly chain: string | null
  /** Payee: an EVM address in any letter case, or the id of a recipient of payouts; null when unknown. */
  readonly counterparty: string | null
  /** Merchant category, four digits of ISO 18245; null when there is no merchant or it is unknown. */
  readonly mcc: string | null
  /** Ticker that is traded; null when there is none or it is unknown. */
  readonly symbol: string | null
  /** Seller of a purchase; null or absent for other spends. */
  readonly seller?: SellerFacts | null
}
