/** Listings of sellers. Anybody can be listed: a listing tells that a URL may sell something, and never what it asks. */

/** What a listing says of one way to pay. @property amount smallest units, as text. */
export interface ListedOffer {
  readonly protocol: 'x402-v1' | 'x402-v2'
  readonly network: string
  /** Contract address of the asset, as listed. */
  readonly token: string
  readonly amount: string
}

/** A listed resource. Its texts were written by a stranger. */
export interface Listing {
  readonly url: URL
  readonly name: string | null
  readonly about: string | null
  readonly offers: readonly ListedOffer[]
}

export interface Discovery {
  /** Lists resources; those that were known before while a service does not answer. Never fails. */
  list(): Promise<readonly Listing[]>
}
