/**
 * Accounts of persons at a broker. Each is opened from a verified identity, holds its owner's securities, and gets the
 * cash for its purchases from the firm's account. Money in cents. Every method throws Failure `provider_unavailable`
 * when the broker does not answer.
 */

/** `action_required`: the broker needs something from the person. `closed`: it takes no more orders. */
export type BrokerageStatus = 'pending' | 'action_required' | 'active' | 'rejected' | 'closed'

/** @property id the broker's id of the account. */
export interface BrokerageAccount {
  readonly id: string
  readonly status: BrokerageStatus
}

export const fundingSources = [
  'employment_income',
  'investments',
  'inheritance',
  'business_income',
  'savings',
  'family',
] as const

/**
 * A person's application. Personal data: never logged. Countries are ISO 3166-1 alpha-2.
 * @property firstSentAt when it was first sent: an account that is older belongs to another application.
 */
export interface BrokerageApplication {
  readonly firstName: string
  readonly lastName: string
  /** ISO 8601 date. */
  readonly dateOfBirth: string
  readonly email: string
  /** E.164. */
  readonly phone: string
  readonly street: string
  readonly city: string
  readonly state: string | null
  readonly postalCode: string | null
  readonly country: string
  readonly taxId: string
  /** The broker's word for the kind of tax id, such as `USA_SSN`. */
  readonly taxIdType: string
  readonly taxResidence: string
  readonly fundingSources: readonly (typeof fundingSources)[number][]
  /** The person's own answers (FINRA rules 2090 and 4512). */
  readonly disclosures: {
    readonly isControlPerson: boolean
    readonly isAffiliatedExchangeOrFinra: boolean
    readonly isPoliticallyExposed: boolean
    readonly immediateFamilyExposed: boolean
  }
  /** Consent to the broker's agreements. */
  readonly agreedAt: string
  readonly agreedFrom: string
  readonly firstSentAt: string
}

/** Cash that moves between the firm's account and a person's. @property id our id, which the broker accepts once. */
export interface CashTransfer {
  readonly id: string
  readonly account: string
  readonly direction: 'to_person' | 'to_firm'
  readonly cents: bigint
}

/** @property id the broker's id; null when it refused the transfer outright. */
export interface CashTransferReport {
  readonly id: string | null
  readonly status: 'pending' | 'executed' | 'refused'
}

/**
 * An event in a person's account other than a trade, a fee or a transfer of ours.
 * @property day `YYYY-MM-DD`. @property net what the account received, negative when it paid; billionths of a dollar.
 * @property qty billionths of a share, and @property perShare nano-dollars; null when not stated.
 */
export interface BrokerageActivity {
  readonly id: string
  readonly kind: 'dividend' | 'other'
  /** The broker's word, such as `DIVNRA` or `SPLIT`. */
  readonly type: string
  readonly symbol: string | null
  readonly day: string
  readonly net: bigint
  readonly qty: bigint | null
  readonly perShare: bigint | null
}

export interface BrokerageAccounts {
  /**
   * Opens an account. Safe to repeat with the same application.
   * @returns null when the broker does not accept the application; nothing was opened.
   */
  open(application: BrokerageApplication): Promise<BrokerageAccount | null>
  read(id: string): Promise<BrokerageAccount>
  /** Moves cash. Safe to repeat: the same id moves it once. */
  transfer(transfer: CashTransfer): Promise<CashTransferReport>
  /** @param id the broker's id. */
  readTransfer(id: string): Promise<CashTransferReport>
  /** Settled cash in cents, rounded down, that can leave the account. */
  withdrawableCash(id: string): Promise<bigint>
  /** Billionths of a share by symbol. */
  positions(id: string): Promise<ReadonlyMap<string, bigint>>
  /** Lists activities since a day (`YYYY-MM-DD`), oldest first. */
  activities(id: string, from: string): Promise<readonly BrokerageActivity[]>
}
