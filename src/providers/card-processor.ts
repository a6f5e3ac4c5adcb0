/** The card processor: who issues cards and asks us, purchase by purchase, whether one may be paid. */

/** A webhook as it arrived. */
export interface WebhookDelivery {
  readonly header: (name: string) => string | undefined
  readonly body: Uint8Array
}

/** A purchase that waits for our decision. Amounts are in cents of the card's currency, which is the US dollar. */
export interface CardAuthorization {
  readonly kind: 'authorization'
  /** The processor's name of the transaction. */
  readonly token: string
  /** Of the whole message: two requests with the same one are the same request. */
  readonly fingerprint: string
  readonly cardToken: string
  /** `credit` gives money, `inquiry` asks for the balance; neither takes any. */
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

/** One thing that happened to a transaction. @property units cents, above zero. */
export interface CardEvent {
  readonly token: string
  readonly kind: 'clearing' | 'reversal' | 'refund' | 'return_reversal'
  readonly units: bigint
}

/** All that has happened to a transaction so far. */
export interface CardTransaction {
  readonly kind: 'transaction'
  readonly token: string
  readonly cardToken: string
  readonly status: 'pending' | 'settled' | 'voided' | 'expired' | 'declined'
  readonly merchantName: string
  /** Whether anybody was asked before: where not, it is taken as it is. */
  readonly wasAuthorized: boolean
  readonly events: readonly CardEvent[]
}

/** What a webhook says. `other` is known to nobody here. */
export type CardMessage =
  | CardAuthorization
  | CardTransaction
  | { readonly kind: 'other'; readonly type: string }

/** Why a purchase was approved or declined, in words of our own. */
export const cardReasons = [
  'approved',
  'insufficient_funds',
  'debt_owed',
  'card_frozen',
  'card_canceled',
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

/** One reason. */
export type CardReason = (typeof cardReasons)[number]

/** Our answer. @property approved cents; less than was asked for is a partial approval. @property balance of an inquiry, cents. */
export interface CardAnswer {
  readonly token: string
  readonly reason: CardReason
  readonly asked: bigint
  readonly approved: bigint
  readonly balance?: bigint
}

/** A card that the processor has issued. Never its number or code. */
export interface IssuedCard {
  readonly token: string
  readonly brand: string
  readonly last4: string
  readonly expMonth: number
  readonly expYear: number
}

/** A purchase to play through. @property units cents. @property cleared cents that are cleared after an approval; null: none yet. */
export interface SimulatedPurchase {
  readonly cardToken: string
  readonly units: bigint
  readonly merchant: string
  readonly mcc: string
  readonly channel: CardAuthorization['channel']
  readonly cleared: bigint | null
}

/** What came of a played purchase. */
export interface SimulatedPurchaseOutcome {
  readonly token: string
  readonly result: string
  readonly approved: bigint
  readonly isCleared: boolean
}

/** The card processor port. Adapters: `sandbox` (plays the network itself) and `lithic`. */
export interface CardProcessor {
  readonly name: string
  /** Checks a webhook's signature. @returns its id. @throws Failure `signature_invalid`. */
  verify(delivery: WebhookDelivery, now: Date): string
  /** Reads a webhook's body. @throws Failure `invalid_request`. */
  read(message: unknown): CardMessage
  /** Our decision in the processor's own words. */
  answer(answer: CardAnswer): Record<string, unknown>
  /** @throws Failure `provider_unavailable`. @param cardId what the sandbox calls it too. */
  issue(card: { cardId: string; nickname: string | null; at: Date }): Promise<IssuedCard>
  /** Sandbox: sends the webhooks of a purchase, as the network would. Null elsewhere. */
  readonly play: ((purchase: SimulatedPurchase) => Promise<SimulatedPurchaseOutcome>) | null
}
