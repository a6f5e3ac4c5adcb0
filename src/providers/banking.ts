/** The banking provider: opens virtual accounts and tells of what comes in and goes out through them. */
import type { Stablecoin } from '../money/money.ts'
import type { WebhookDelivery } from './card-processor.ts'

/** What accounts can be opened in. */
export const bankCurrencies = ['USD', 'EUR', 'GBP', 'INR'] as const

/** One of them. */
export type BankCurrency = (typeof bankCurrencies)[number]

/** Where a payer sends money, by currency. */
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

/** An account that the provider has opened. */
export interface OpenedAccount {
  readonly providerId: string
  /** The provider's name of the holder; null where it keeps none. */
  readonly customer: string | null
  readonly status: 'pending' | 'active'
  readonly bankName: string
  readonly bankAddress: string
  readonly instructions: BankInstructions
}

/** What is to be opened. @property destination null: deposits stay cash. @property customer from an earlier account. */
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

/** What a webhook says. @property objectId the deposit, the payout or the account that it is about. */
export interface BankingEvent {
  readonly eventId: string
  readonly type: string
  readonly kind: 'deposit' | 'payout' | 'account' | 'other'
  readonly objectId: string
  /** The provider's word for where it stands. */
  readonly state: string
  /** The provider's name of the virtual account; null where it is about none. */
  readonly virtualAccount: string | null
  /** A decimal of the account's currency; null where none is said. */
  readonly amount: string | null
  /** What the amount is said to be in, as the provider writes it; null where it does not say. */
  readonly currency: string | null
  /** The provider's name of the customer whose account it is; null where none is said. */
  readonly customer: string | null
}

/** A deposit to play through. @property amount a decimal of the account's currency. */
export interface SimulatedDeposit {
  readonly providerId: string
  readonly amount: string
  readonly currency: BankCurrency
}

/** The banking provider port. Adapters: `sandbox` (plays the bank itself) and `bridge`. */
export interface BankingProvider {
  readonly name: string
  /** Whether it delivers stablecoins on the chain itself: then they are booked when they are seen there. */
  readonly deliversOnChain: boolean
  /** @throws Failure `signature_invalid`. */
  verify(delivery: WebhookDelivery, now: Date): void
  /** @throws Failure `invalid_request`. */
  read(message: unknown): BankingEvent
  /** @throws Failure `provider_unavailable`. */
  open(order: AccountOrder): Promise<OpenedAccount>
  /** Sandbox: sends the webhooks of a deposit, as the bank would. @returns the deposit's name. Null elsewhere. */
  readonly play: ((deposit: SimulatedDeposit) => Promise<string>) | null
}
