/** Identity reviews: a provider gets a person's data and returns a verdict later. */
import type { WebhookDelivery } from '../card-processor/port.ts'

/** Data of an applicant. Personal data: never logged. */
export interface Applicant {
  readonly firstName: string
  readonly lastName: string
  /** ISO 8601 date. */
  readonly dateOfBirth: string
  /** ISO 3166-1 alpha-2. */
  readonly country: string
  /** The whole address in one line. */
  readonly address: string
  /** The address by its parts, as far as the person gave them. */
  readonly residence: {
    readonly street?: string | undefined
    readonly city?: string | undefined
    readonly postalCode?: string | undefined
    readonly state?: string | undefined
  }
  readonly email: string | null
  readonly phone: string | null
}

/** A document by its type and the provider's reference. */
export interface IdentityDocument {
  readonly type: string
  readonly country: string
  readonly reference: string
}

/** An application for review. @property id our id, which the provider accepts once. */
export interface Application {
  readonly id: string
  readonly level: 'basic' | 'full'
  readonly applicant: Applicant
  readonly documents: readonly IdentityDocument[]
}

/**
 * The provider's verdict.
 * @property labels its reasons. `retry`: the person may apply again; `rejected`: permanent.
 */
export interface Review {
  readonly status: 'pending' | 'approved' | 'retry' | 'rejected'
  readonly labels: readonly string[]
  /** Application of the review, by the provider's reference and our id. Absent if the provider states neither. */
  readonly subject?: { readonly reference: string; readonly applicationId: string | null }
}

/**
 * Content of a webhook.
 * @property reference the provider's reference of the application; null if it concerns none.
 */
export interface ReviewNotice {
  readonly reference: string | null
  readonly type: string
}

/** The review port. All methods are safe to repeat. */
export interface IdentityReview {
  /** @returns the provider's reference and the current review. @throws Failure `provider_unavailable`. */
  submit(application: Application): Promise<{ reference: string; review: Review }>
  /** @throws Failure `provider_unavailable`. */
  read(reference: string): Promise<Review>
  /**
   * A page of the provider where the applicant shows documents and takes a selfie: a secret of the applicant. Throws
   * Failure `provider_unavailable`. Null: the provider has none.
   */
  readonly page:
    | ((
        application: Pick<Application, 'id' | 'level'>,
        now: Date,
      ) => Promise<{ url: string; expiresAt: Date }>)
    | null
  /** Verifies a webhook's signature. @throws Failure `signature_invalid`. */
  verify(delivery: WebhookDelivery): void
  /**
   * Parses a notice of a possible change; {@link IdentityReview.read} returns the new state.
   * @throws Failure `invalid_request`.
   */
  readNotice(message: unknown): ReviewNotice
}
