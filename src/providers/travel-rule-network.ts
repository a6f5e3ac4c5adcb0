/** How institutions tell each other who pays whom (FATF Recommendation 16): one is told of a transfer, and says whether it takes it. */

/** What the beneficiary's institution is told. @property id ours: the network takes it once. @property amount a decimal of the token. */
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

/** What it says. `sent`: nothing yet. @property reason its own words; null where it gives none. */
export interface TravelRuleAnswer {
  readonly status: 'sent' | 'accepted' | 'declined'
  readonly reason: string | null
}

/** The network port. Both are safe to repeat. Adapters: `sandbox` and `http`. */
export interface TravelRuleNetwork {
  /** @returns the network's name of the message. @throws Failure `provider_unavailable`. */
  send(message: TravelRuleMessage): Promise<TravelRuleAnswer & { readonly reference: string }>
  /** @returns also the name of the message that it answers. @throws Failure `provider_unavailable`. */
  read(reference: string): Promise<TravelRuleAnswer & { readonly reference: string }>
}
