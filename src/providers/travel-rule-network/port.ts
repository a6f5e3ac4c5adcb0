/**
 * Travel Rule messages between institutions (FATF Recommendation 16): the beneficiary's institution is notified of a
 * transfer and accepts or declines it.
 */

/**
 * A message to the beneficiary's institution.
 * @property id our id, which the network accepts once.
 * @property amount decimal in the token.
 */
export interface TravelRuleMessage {
  readonly id: string
  readonly institution: { readonly name: string; readonly lei: string | null }
  readonly token: string
  readonly amount: string
  readonly chain: string
  readonly destination: string
  /** IVMS101.2023. Personal data: never logged. */
  readonly payload: unknown
}

/** The institution's answer. `sent`: no answer yet. @property reason its explanation; null if none. */
export interface TravelRuleAnswer {
  readonly status: 'sent' | 'accepted' | 'declined'
  readonly reason: string | null
}

/** The network port. Both methods are safe to repeat. Adapters: `sandbox` and `http`. */
export interface TravelRuleNetwork {
  /** @returns the answer with the network's reference of the message. @throws Failure `provider_unavailable`. */
  send(message: TravelRuleMessage): Promise<TravelRuleAnswer & { readonly reference: string }>
  /** @returns the answer with the reference of its message. @throws Failure `provider_unavailable`. */
  read(reference: string): Promise<TravelRuleAnswer & { readonly reference: string }>
}
