/** The banking provider: opens virtual accounts, pays out to bank accounts, and reports deposits and payouts. */
import type { Asset, Money, Stablecoin } from '../../core/money/money.ts'
import type { WebhookDelivery } from '../card-processor/port.ts'
import type { Address } from '../chain/port.ts'
import type { BankCustomers } from './customers.ts'

/** Currencies of virtual accounts. */
export const bankCurrencies = ['USD', 'EUR', 'GBP', 'INR'] as const

export type BankCurrency = (typeof bankCurrencies)[number]

/** Instructions for payers, by currency. */
export type BankInstructions =
  | { readonly routingNumber: string; readonly accountNumber: string; readonly rails: readonly string[] }
  | { readonly iban: string; readonly bic: string; readonly rails: readonly string[] }
  | { readonly sortCode: string; readonly accountNumber: string; readonly rails: readonly string[] }
  | {
      readonly accountNumber: string
      readonly ifsc: string
      readonly vpa: string
      readonly rails: readonly string[]
    }

export interface OpenedAccount {
  readonly providerId: string
  /** Customer id at the provider; null if it has none. */
  readonly customer: string | null
  readonly status: 'pending' | 'active'
  readonly bankName: string
  readonly bankAddress: string
  readonly instructions: BankInstructions
}

/**
 * An account to open.
 * @property destination null: deposits stay cash.
 * @property customer customer id from an earlier account.
 */
export interface AccountOrder {
  readonly id: string
  readonly currency: BankCurrency
  readonly holder: { readonly accountId: string; readonly name: string; readonly customer: string | null }
  readonly destination: {
    readonly token: Stablecoin
    readonly chain: string
    readonly address: string
  } | null
}

/** An event from a webhook. @property objectId id of the deposit, payout or account. */
export interface BankingEvent {
  readonly eventId: string
  readonly type: string
  readonly kind: 'deposit' | 'payout' | 'account' | 'customer' | 'other'
  readonly objectId: string
  /** Our id of a payout, as the provider repeats it; null if absent. */
  readonly reference: string | null
  /** State, in the provider's terms. */
  readonly state: string
  /** Account id at the provider; null for events without an account. */
  readonly virtualAccount: string | null
  /** Decimal in the account's currency; null if absent. */
  readonly amount: string | null
  /** Currency of the amount, as the provider writes it; null if absent. */
  readonly currency: string | null
  /** Customer id at the provider; null if absent. */
  readonly customer: string | null
  /** Name or address of the sender of a deposit; null if absent. */
  readonly sender: string | null
  /** Text that the payer of a deposit wrote to it; null if absent. */
  readonly memo: string | null
}

/** Currencies of bank accounts that money is paid out to. */
export const payoutCurrencies = ['USD', 'EUR', 'GBP'] as const

export type PayoutCurrency = (typeof payoutCurrencies)[number]

/** Number of a bank account, by its scheme. */
export type BankAccountNumber =
  | {
      readonly scheme: 'aba'
      readonly routingNumber: string
      readonly accountNumber: string
      readonly type: 'checking' | 'savings'
    }
  | { readonly scheme: 'iban'; readonly iban: string; readonly bic: string | null }
  | { readonly scheme: 'uk'; readonly sortCode: string; readonly accountNumber: string }

/** A postal address. @property region state, as two letters in the United States. */
export interface PostalAddress {
  readonly line1: string
  readonly line2: string | null
  readonly city: string
  readonly region: string | null
  readonly postalCode: string | null
  readonly country: string
}

/**
 * A bank account to pay out to.
 * @property country ISO 3166-1 alpha-2. @property customer customer id of the payer at the provider; null if none.
 */
export interface BankRecipient {
  readonly id: string
  readonly currency: PayoutCurrency
  readonly name: string
  readonly isCompany: boolean
  readonly country: string
  readonly account: BankAccountNumber
  readonly address: PostalAddress | null
  readonly customer: string | null
}

/** A payout to quote: by the money that leaves, or by what the recipient gets, in smallest units of its currency. */
export type QuotablePayout = { readonly currency: PayoutCurrency } & (
  | { readonly money: Money }
  | { readonly asset: Asset; readonly recipientUnits: bigint }
)

/**
 * Terms of a payout.
 * @property money what leaves, with the fee. @property fee smallest units of the asset; it is part of the amount.
 * @property rate decimal: units of the recipient's currency per unit of the asset. @property recipientUnits what the
 * recipient gets, in smallest units of its currency. @property firmUntil until when a payout on these terms pays exactly
 * that; null: the provider converts at a rate of its own later.
 */
export interface PayoutQuote {
  readonly money: Money
  readonly fee: bigint
  readonly rate: string
  readonly recipientUnits: bigint
  readonly eta: Date
  readonly firmUntil: Date | null
}

/** Fee of a payout to a currency. @property fee cents of a USD. @property spreadBps of the conversion, in 1/10,000 below the reference rate. */
export interface PayoutFee {
  readonly currency: PayoutCurrency
  readonly cents: bigint
  readonly spreadBps: number
}

/** A payout to send. @property id our id: the provider sends one payout with it. @property providerRecipient recipient's id there. */
export interface PayoutOrder {
  readonly id: string
  readonly money: Money
  readonly fee: bigint
  readonly currency: PayoutCurrency
  readonly recipientUnits: bigint
  readonly recipient: BankRecipient
  readonly providerRecipient: string
  readonly reference: string | null
  /** Wallet that pays in stablecoins; null: the money is cash at the bank. */
  readonly source: { readonly chain: string; readonly address: Address } | null
}

/** A payout at the provider. @property state in the provider's terms. */
export interface PayoutReport {
  readonly providerId: string
  readonly state: string
  /** Address that stablecoins must be sent to; null: none, or not said. */
  readonly depositTo: Address | null
}

/** A deposit to simulate. @property amount decimal in the account's currency. */
export interface SimulatedDeposit {
  readonly providerId: string
  readonly amount: string
  readonly currency: BankCurrency
  /** Name or address of the sender; null: not named. */
  readonly from: string | null
  /** Text that the payer writes to it; null: none. */
  readonly memo: string | null
}

/** The banking provider port. Adapters: `sandbox` (simulates the bank) and `bridge`. */
export interface BankingProvider {
  readonly name: string
  /** True if the provider delivers stablecoins on the chain; deliveries are then booked when seen there. */
  readonly deliversOnChain: boolean
  /** The provider's own verification of persons, which its accounts need; null: it has none. */
  readonly customers: BankCustomers | null
  /** @throws Failure `signature_invalid`. */
  verify(delivery: WebhookDelivery, now: Date): void
  /** @throws Failure `invalid_request`. */
  read(message: unknown): BankingEvent
  /** @throws Failure `provider_unavailable`. */
  open(order: AccountOrder): Promise<OpenedAccount>
  /**
   * Terms of a payout now. One quoted by what arrives costs the smallest amount that pays exactly that.
   * @throws Failure `payout_rejected` when the provider does not pay out this asset or amount, or cannot promise what
   * arrives; `rates_unavailable`, `provider_unavailable`.
   */
  quotePayout(asked: QuotablePayout, now: Date): Promise<PayoutQuote>
  /** Fees by currency. */
  readonly payoutFees: readonly PayoutFee[]
  /**
   * Registers a bank account; repeated calls register one. @returns its id at the provider.
   * @throws Failure `payout_rejected` when the provider does not accept it; `provider_unavailable` when that is unknown.
   */
  registerRecipient(recipient: BankRecipient): Promise<string>
  /**
   * Sends a payout; repeated calls within a day send one.
   * @throws Failure `payout_rejected` when it will never be sent; `provider_unavailable` when that is unknown.
   */
  sendPayout(order: PayoutOrder): Promise<PayoutReport>
  /** @throws Failure `provider_unavailable`. */
  findPayout(providerId: string, now: Date): Promise<PayoutReport>
  /** Tells whether a payout in this state may still be funded on the chain. */
  awaitsFunds(state: string): boolean
  /**
   * Cancels a payout that was not funded, so that it takes no money any more. Safe to repeat.
   * @throws Failure `provider_unavailable` when it is unknown whether it is canceled, or when it is funded.
   */
  cancelPayout(providerId: string): Promise<void>
  /**
   * Asks the bank to send back what it has paid; its state tells what became of it. Safe to repeat.
   * @returns false when it refuses. Throws Failure `provider_unavailable`. Null: the provider takes no such requests.
   */
  readonly requestReturn: ((providerId: string) => Promise<boolean>) | null
  /**
   * Sandbox only: reports the outcome of a payout by webhook, as the bank would. Null for other adapters.
   */
  readonly playPayout:
    | ((payout: {
        readonly id: string
        readonly providerId: string
        readonly state: string
        readonly amount: string
        readonly currency: string
      }) => Promise<void>)
    | null
  /**
   * Sandbox only: sends the webhooks of a deposit, as the bank would.
   * @returns the deposit id. Null for other adapters.
   */
  readonly play: ((deposit: SimulatedDeposit) => Promise<string>) | null
}

/** The part of the port about payouts. */
export type BankPayouts = Pick<
  BankingProvider,
  | 'quotePayout'
  | 'payoutFees'
  | 'registerRecipient'
  | 'sendPayout'
  | 'findPayout'
  | 'awaitsFunds'
  | 'cancelPayout'
  | 'requestReturn'
>
