/** The banking provider: opens virtual accounts and reports deposits and payouts. */
import type { Stablecoin } from '../money/money.ts'
import type { WebhookDelivery } from './card-processor.ts'

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
  readonly kind: 'deposit' | 'payout' | 'account' | 'other'
  readonly objectId: string
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
}

/** A deposit to simulate. @property amount decimal in the account's currency. */
export interface SimulatedDeposit {
  readonly providerId: string
  readonly amount: string
  readonly currency: BankCurrency
}

/** The banking provider port. Adapters: `sandbox` (simulates the bank) and `bridge`. */
export interface BankingProvider {
  readonly name: string
  /** True if the provider delivers stablecoins on the chain; deliveries are then booked when seen there. */
  readonly deliversOnChain: boolean
  /** @throws Failure `signature_invalid`. */
  verify(delivery: WebhookDelivery, now: Date): void
  /** @throws Failure `invalid_request`. */
  read(message: unknown): BankingEvent
  /** @throws Failure `provider_unavailable`. */
  open(order: AccountOrder): Promise<OpenedAccount>
  /**
   * Sandbox only: sends the webhooks of a deposit, as the bank would.
   * @returns the deposit id. Null for other adapters.
   */
  readonly play: ((deposit: SimulatedDeposit) => Promise<string>) | null
}
