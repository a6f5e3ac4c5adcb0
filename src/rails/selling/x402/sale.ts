import type { StoredPurchase } from '../payments/purchases.ts'

/** x402 protocol version of a payment. */
export type Generation = 1 | 2

/** A payment as a transport received it, not validated. */
export interface SentPayment {
  readonly generation: Generation
  /** The decoded JSON; undefined where it could not be decoded. */
  readonly payload: unknown
  /** Location of the payment, for error messages: `X-PAYMENT header` or `_meta["x402/payment"]`. */
  readonly place: string
  /** The expected form, for error messages. */
  readonly form: string
}

/** A request for what is sold. */
export interface SaleRequest {
  /** Method and path, such as `GET /api/x402/fx`. */
  readonly route: string
  /** The decoded input. Member order and number spelling do not matter. */
  readonly input: unknown
  /** Null: the client did not pay yet. */
  readonly payment: SentPayment | null
  /** Location of payments in this transport, for the challenge. */
  readonly paymentPlace: string
  /** Produces the response; runs before any challenge and any settlement. */
  readonly deliver: () => Promise<Record<string, unknown>>
  /** The purchase's idempotency key. */
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
   * Returns a challenge, or the purchased response.
   * @throws Failure `invalid_request`, `payment_reused`, `facilitator_unavailable`, `settlement_pending`,
   * `idempotency_key_reused`, `idempotency_in_progress`, and what `deliver` throws.
   */
  sell(request: SaleRequest): Promise<PaidOutcome | ChallengeOutcome>
  /** Returns the earlier purchase of an idempotency key, or null. @throws Failure `settlement_pending`, `idempotency_key_reused`. */
  recall(purchase: StoredPurchase): Promise<PaidOutcome | null>
}

/** A seller with the document at `/.well-known/x402`. */
export interface ListedSeller extends Seller {
  readonly discovery: Readonly<Record<string, unknown>>
}
