import type { StoredPurchase } from '../payments/purchases.ts'

/** x402 protocol version of a payment. */
export type Generation = 1 | 2

/** A payment as a transport received it, not validated. */
export interface SentPayment {
  readonly generation: Generation
  /** The decoded JSON; undefined where it could not be decoded. */
  readonly payload: unknown
  /** Where the client put it, for error messages: `X-PAYMENT header` or `_meta["x402/payment"]`. */
  readonly place: string
  /** What has to be there, for error messages. */
  readonly form: string
}

/** A request for what is sold. */
export interface SaleRequest {
  /** Method and path, such as `GET /api/x402/fx`. */
  readonly route: string
  /** The decoded input. A payment buys one input, however its members are ordered or spelled. */
  readonly input: unknown
  /** Null: the client did not pay yet. */
  readonly payment: SentPayment | null
  /** Where a client of this transport puts a payment, for the challenge. */
  readonly paymentPlace: string
  /** Makes what is sold; runs before any challenge and before any settlement. */
  readonly deliver: () => Promise<Record<string, unknown>>
  /** The idempotency key that it is bought under. */
  readonly purchase?: StoredPurchase
}

/** Paid: the delivered answer with its payment beside it, and the receipt (base64 JSON) in the payment's own generation. */
export interface PaidOutcome {
  readonly status: 'paid'
  readonly answer: Record<string, unknown>
  /** True if an earlier call has bought it. */
  readonly replayed: boolean
  readonly receipt: string
  /** The HTTP header that receipts of the payment's generation use. */
  readonly receiptHeader: string
}

/** A challenge of both generations, each as JSON text. */
export interface ChallengeOutcome {
  readonly status: 'payment_required'
  readonly v1: string
  readonly v2: string
}

/** Sells deliveries for x402 payments, over any transport. */
export interface Seller {
  /**
   * Answers with a challenge, or with what was bought.
   * @throws Failure `invalid_request`, `payment_reused`, `facilitator_unavailable`, `settlement_pending`,
   * `idempotency_key_reused`, `idempotency_in_progress`, and what `deliver` throws.
   */
  sell(request: SaleRequest): Promise<PaidOutcome | ChallengeOutcome>
  /** What was bought under an idempotency key before, or null. @throws Failure `settlement_pending`, `idempotency_key_reused`. */
  recall(purchase: StoredPurchase): Promise<PaidOutcome | null>
}

/** A seller with the document at `/.well-known/x402`. */
export interface ListedSeller extends Seller {
  readonly discovery: Readonly<Record<string, unknown>>
}
