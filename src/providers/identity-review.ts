/** Who reviews identities: a provider is given what a person says of themselves, and says later what it makes of it. */
import type { WebhookDelivery } from './card-processor.ts'

/** What a person says of themselves. Personal data: never logged. */
export interface Applicant {
  readonly firstName: string
  readonly lastName: string
  /** ISO 8601 date. */
  readonly dateOfBirth: string
  /** ISO 3166-1 alpha-2. */
  readonly country: string
  readonly address: string
  readonly email: string | null
  readonly phone: string | null
}

/** A document by its type and where the provider finds it. */
export interface IdentityDocument {
  readonly type: string
  readonly country: string
  readonly reference: string
}

/** What is to be reviewed. @property id ours: the provider takes it once. */
export interface Application {
  readonly id: string
  readonly level: 'basic' | 'full'
  readonly applicant: Applicant
  readonly documents: readonly IdentityDocument[]
}

/** What a provider makes of it. @property labels its reasons. `retry`: the person may try again; `rejected`: for good. */
export interface Review {
  readonly status: 'pending' | 'approved' | 'retry' | 'rejected'
  readonly labels: readonly string[]
  /** Whom the provider says that it is of: its own name of the application, and ours. Absent: it says neither. */
  readonly subject?: { readonly reference: string; readonly applicationId: string | null }
}

/** What a webhook tells. @property reference the provider's name of the application; null where it is about none. */
export interface ReviewNotice {
  readonly reference: string | null
  readonly type: string
}

/** The review port. All are safe to repeat. */
export interface IdentityReview {
  /** @returns the provider's name of it. @throws Failure `provider_unavailable`. */
  submit(application: Application): Promise<{ reference: string; review: Review }>
  /** @throws Failure `provider_unavailable`. */
  read(reference: string): Promise<Review>
  /** Checks a webhook's signature. @throws Failure `signature_invalid`. */
  verify(delivery: WebhookDelivery): void
  /** That something may have changed; what it is now is {@link IdentityReview.read}. @throws Failure `invalid_request`. */
  readNotice(message: unknown): ReviewNotice
}
