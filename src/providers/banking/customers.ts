/**
 * Customers of a banking provider that verifies persons itself: on its own page a person proves the identity, on another
 * accepts the terms. Every method throws Failure `provider_unavailable` when the provider does not answer.
 */

/** `open`: the person, or the provider's review, is not done. `paused`: accounts and payouts are stopped. */
export type BankCustomerStatus = 'open' | 'approved' | 'rejected' | 'paused'

/**
 * A person's verification.
 * @property linkId the provider's id of it. @property customer customer id; null before it is known.
 * @property kycUrl page for the identity, @property termsUrl page for the terms: secrets of the person, never stored.
 * @property isKycDone and @property isTermsAccepted what the person no longer has to do.
 */
export interface BankCustomer {
  readonly linkId: string
  readonly customer: string | null
  readonly status: BankCustomerStatus
  readonly kycUrl: string
  readonly termsUrl: string
  readonly isKycDone: boolean
  readonly isTermsAccepted: boolean
}

export interface BankCustomers {
  /**
   * Starts a verification; repeated calls with the same id within a day start one.
   * @param person id: our account; name and e-mail address of the person.
   * @returns null when the provider does not accept it, such as an address that another customer has.
   */
  start(person: {
    readonly id: string
    readonly name: string
    readonly email: string
  }): Promise<BankCustomer | null>
  read(linkId: string): Promise<BankCustomer>
}
