/** The card processor: issues cards and requests an authorization for each purchase. */

/** A webhook as received. */
export interface WebhookDelivery {
  readonly header: (name: string) => string | undefined
  readonly body: Uint8Array
}

/** An authorization request. Amounts are in cents of the card's currency, USD. */
export interface CardAuthorization {
  readonly kind: 'authorization'
  /** Transaction token of the processor. */
  readonly token: string
  /** The processor's name of the request: a new one under a known transaction asks for `units` more. Null: it has none. */
  readonly eventToken: string | null
  /** Hash of the whole message: equal fingerprints mean the same request. */
  readonly fingerprint: string
  readonly cardToken: string
  /** `credit` gives money, `inquiry` requests the balance; neither takes money. */
  readonly type: 'purchase' | 'credit' | 'inquiry'
  readonly units: bigint
  readonly merchant: {
    readonly id: string
    readonly name: string
    readonly mcc: string | null
    readonly country: string | null
  }
  readonly channel: 'ecommerce' | 'contactless' | 'atm' | 'magstripe' | 'chip' | null
  readonly allowsPartial: boolean
}

/** An event of a transaction. @property units cents, above zero. */
export interface CardEvent {
  readonly token: string
  readonly kind: 'clearing' | 'reversal' | 'refund' | 'return_reversal'
  readonly units: bigint
}

/** All events of a transaction so far. */
export interface CardTransaction {
  readonly kind: 'transaction'
  readonly token: string
  readonly cardToken: string
  readonly status: 'pending' | 'settled' | 'voided' | 'expired' | 'declined'
  readonly merchantName: string
  /** True if an authorization was requested before; if not, the transaction is force-posted. */
  readonly wasAuthorized: boolean
  readonly events: readonly CardEvent[]
}

/**
 * The state of a dispute. `won`: the processor gives money back. `lost`: it is closed without, also after it was won.
 * @property units cents that are given back; 0n unless it is won.
 */
export interface CardDispute {
  readonly kind: 'dispute'
  readonly token: string
  /** The disputed transaction. */
  readonly transactionToken: string
  readonly status: 'open' | 'won' | 'lost'
  readonly units: bigint
}

/** A dispute to open. @property units cents. @property evidence a PDF. */
export interface DisputeRequest {
  readonly transactionToken: string
  readonly units: bigint
  readonly reason:
    | 'not_delivered'
    | 'not_as_described'
    | 'duplicate'
    | 'fraudulent'
    | 'canceled'
    | 'wrong_amount'
  readonly note: string | null
  readonly filedAt: Date
  readonly evidence: { readonly filename: string; readonly content: Uint8Array }
}

/** A parsed webhook. `other`: an unsupported message, which is ignored. */
export type CardMessage =
  | CardAuthorization
  | CardTransaction
  | CardDispute
  | { readonly kind: 'other'; readonly type: string }

/** Reasons for approving or declining a purchase. */
export const cardReasons = [
  'approved',
  'insufficient_funds',
  'debt_owed',
  'card_frozen',
  'card_canceled',
  'card_used',
  'channel_off',
  'merchant_denied',
  'purchase_limit',
  'daily_limit',
  'budget_exceeded',
  'policy_denied',
  'approval_required',
  'account_locked',
  'kyc_required',
  'key_not_active',
  'rail_disabled',
  'unknown_card',
  'too_late',
  'unavailable',
] as const

export type CardReason = (typeof cardReasons)[number]

/**
 * Our answer.
 * @property approved cents; less than requested is a partial approval.
 * @property balance cents, for an inquiry.
 */
export interface CardAnswer {
  readonly token: string
  readonly reason: CardReason
  readonly asked: bigint
  readonly approved: bigint
  readonly balance?: bigint
}

/** A card issued by the processor, without its number and code. */
export interface IssuedCard {
  readonly token: string
  readonly brand: string
  readonly last4: string
  readonly expMonth: number
  readonly expYear: number
}

/** A card for one purchase. @property units cents. @property isMerchantLocked it is for one merchant. */
export interface SingleUseOrder {
  readonly units: bigint
  readonly isMerchantLocked: boolean
}

/** A card whose number is shown. @property token of the processor. */
export interface RevealedCard {
  readonly cardId: string
  readonly token: string
  readonly last4: string
}

/**
 * The number of a card, for its owner's eyes. `embedded`: a page of the processor shows it until `expiresAt`, and the
 * gateway never sees it.
 */
export type CardReveal =
  | { readonly kind: 'shown'; readonly pan: string; readonly cvc: string }
  | { readonly kind: 'embedded'; readonly url: string }

/** A purchase to simulate. @property units cents. @property cleared cents to clear after the approval; null: none. */
export interface SimulatedPurchase {
  readonly cardToken: string
  readonly units: bigint
  readonly merchant: string
  readonly mcc: string
  /** ISO 3166-1 alpha-3. */
  readonly country: string
  readonly channel: CardAuthorization['channel']
  readonly cleared: bigint | null
  /** Transaction to raise by `units`; null: a new one. */
  readonly raises: string | null
}

/** Outcome of a simulated purchase. */
export interface SimulatedPurchaseOutcome {
  readonly token: string
  readonly result: string
  readonly approved: bigint
  readonly isCleared: boolean
}

/** The card processor port. Adapters: `sandbox` (simulates the network) and `lithic`. */
export interface CardProcessor {
  readonly name: string
  /** Verifies a webhook's signature. @returns its id. @throws Failure `signature_invalid`. */
  verify(delivery: WebhookDelivery, now: Date): string
  /** Parses a webhook's body. @throws Failure `invalid_request`. */
  read(message: unknown): CardMessage
  /** Formats our decision for the processor. */
  answer(answer: CardAnswer): Record<string, unknown>
  /**
   * @throws Failure `provider_unavailable`. @param cardId our card id, which the sandbox uses as its own. @param singleUse null: for
   * any number of purchases.
   */
  issue(card: {
    cardId: string
    nickname: string | null
    at: Date
    singleUse: SingleUseOrder | null
  }): Promise<IssuedCard>
  /**
   * Reads a card's number and code, to give them to its agent once.
   * @returns null where this deployment may not see them. @throws Failure `provider_unavailable`.
   */
  readCredential(card: RevealedCard): Promise<{ readonly pan: string; readonly cvc: string } | null>
  /**
   * Tells the processor whether a card is usable, so that it declines on its own while the gateway cannot be reached.
   * Safe to repeat. Throws Failure `provider_unavailable` unless the processor confirms it. Null: it cannot be told.
   */
  readonly setStatus:
    | ((card: { readonly token: string; readonly status: 'active' | 'frozen' | 'canceled' }) => Promise<void>)
    | null
  /** @throws Failure `provider_unavailable`. */
  reveal(card: RevealedCard, expiresAt: Date): CardReveal
  /**
   * Asks the processor to give up an authorization that has not cleared. Safe to repeat; its transaction tells what became of it.
   * @returns false when the processor refuses. Throws Failure `provider_unavailable`. Null: it cannot be asked.
   */
  readonly expire:
    | ((transaction: { readonly token: string; readonly cardToken: string }) => Promise<boolean>)
    | null
  /**
   * Opens a dispute with its evidence, or finds the one that the transaction has. Safe to repeat.
   * @returns null when the processor refuses. Throws Failure `provider_unavailable`. Null: it takes none.
   */
  readonly dispute: ((request: DisputeRequest) => Promise<CardDispute | null>) | null
  /** Sandbox only: sends the webhook of a dispute. Null for other adapters. */
  readonly playDispute: ((dispute: Omit<CardDispute, 'kind'>) => Promise<void>) | null
  /** Sandbox only: sends the webhooks of a purchase, as the network would. Null for other adapters. */
  readonly play: ((purchase: SimulatedPurchase) => Promise<SimulatedPurchaseOutcome>) | null
}
