/**
 * The table of all failures. Codes are a public promise; HTTP statuses appear here and otherwise only in the
 * transports. @see https://www.rfc-editor.org/rfc/rfc9457
 */

/** @property retry the same request may succeed later without a change. */
export const failures = {
  invalid_request: { status: 400, title: 'The request is not valid', retry: false },
  ambiguous_credentials: { status: 400, title: 'More than one credential', retry: false },
  credential_in_query: { status: 400, title: 'Credential in the query string', retry: false },
  url_not_allowed: { status: 400, title: 'The URL is not allowed', retry: false },
  chain_not_supported: { status: 400, title: 'Chain not supported', retry: false },
  unauthenticated: { status: 401, title: 'Not authenticated', retry: false },
  signature_invalid: { status: 401, title: 'The signature does not verify', retry: false },
  signature_expired: { status: 401, title: 'The signature is not valid at this time', retry: false },
  signature_replayed: { status: 401, title: 'The signature was already used', retry: false },
  digest_mismatch: { status: 401, title: 'The body does not match its digest', retry: false },
  unknown_key: { status: 401, title: 'Unknown key', retry: false },
  delegation_invalid: { status: 401, title: 'The delegation does not verify', retry: false },
  step_up_required: { status: 401, title: 'A recent second factor is required', retry: false },
  insufficient_scope: { status: 403, title: 'Insufficient scope', retry: false },
  insufficient_role: { status: 403, title: 'Insufficient role', retry: false },
  policy_denied: { status: 403, title: 'The spend policy denies this', retry: false },
  approval_required: { status: 403, title: 'The owner must approve this', retry: true },
  approval_rejected: { status: 403, title: 'The owner said no', retry: false },
  payee_changed: { status: 403, title: 'The seller names another payee', retry: false },
  price_changed: { status: 403, title: 'The seller asks for more than before', retry: false },
  aml_blocked: { status: 403, title: 'Blocked by the AML policy', retry: false },
  rail_disabled: { status: 403, title: 'The rail is switched off', retry: false },
  signature_rejected: { status: 403, title: 'The authorization does not verify', retry: false },
  kyc_required: { status: 403, title: 'Identity verification is required', retry: false },
  cross_site_request: { status: 403, title: 'Cross-site request', retry: false },
  mfa_enrollment_required: { status: 403, title: 'A second factor must be enrolled', retry: false },
  not_found: { status: 404, title: 'Not found', retry: false },
  pair_not_supported: { status: 404, title: 'Currency pair not supported', retry: false },
  method_not_allowed: { status: 405, title: 'Method not allowed', retry: false },
  request_timeout: { status: 408, title: 'The request took too long to arrive', retry: true },
  idempotency_in_progress: { status: 409, title: 'The first call is still running', retry: true },
  payment_reused: { status: 409, title: 'The payment was used for a different request', retry: false },
  wallet_busy: { status: 409, title: 'The wallet is busy', retry: true },
  conflict: { status: 409, title: 'Conflict', retry: false },
  body_too_large: { status: 413, title: 'Body too large', retry: false },
  unsupported_media_type: { status: 415, title: 'Unsupported media type', retry: false },
  idempotency_key_reused: {
    status: 422,
    title: 'Idempotency key used with a different request',
    retry: false,
  },
  insufficient_funds: { status: 422, title: 'Insufficient funds', retry: false },
  terms_not_payable: { status: 422, title: 'The terms cannot be paid', retry: false },
  payout_rejected: { status: 422, title: 'Payout rejected', retry: false },
  swap_rejected: { status: 422, title: 'Swap rejected', retry: false },
  recourse_impossible: { status: 422, title: 'Recourse impossible', retry: false },
  order_rejected: { status: 422, title: 'Order rejected', retry: false },
  authorization_rejected: { status: 422, title: 'Authorization rejected', retry: false },
  account_locked: { status: 423, title: 'The account is locked', retry: false },
  rate_limited: { status: 429, title: 'Too many requests', retry: true },
  headers_too_large: { status: 431, title: 'Headers too large', retry: false },
  internal: { status: 500, title: 'Internal error', retry: true },
  seller_failed: { status: 502, title: 'The seller failed', retry: true },
  controls_unavailable: { status: 503, title: 'Rail controls unavailable', retry: true },
  settlement_pending: { status: 503, title: 'Settlement pending', retry: true },
  screening_unavailable: { status: 503, title: 'Screening unavailable', retry: true },
  provider_unavailable: { status: 503, title: 'Provider unavailable', retry: true },
  facilitator_unavailable: { status: 503, title: 'Facilitator unavailable', retry: true },
  rates_unavailable: { status: 503, title: 'Rates unavailable', retry: true },
  no_route: { status: 503, title: 'No route', retry: true },
} as const satisfies Record<string, { status: number; title: string; retry: boolean }>

export type FailureCode = keyof typeof failures

/** All codes, ordered by status. */
export const failureCodes = Object.keys(failures).filter(isFailureCode)

export function isFailureCode(text: string): text is FailureCode {
  return Object.hasOwn(failures, text)
}

/** A violated rule of the spend policy. Amounts are decimal strings in the policy's currency. */
export interface Violation {
  readonly rule: string
  readonly limit: string | null
  readonly used: string | null
  readonly requested: string | null
  readonly remaining: string | null
  readonly resetsAt: string | null
  /** Key whose policy it is, where keys are judged together with those above them. */
  readonly agentId?: string | undefined
}

/** Problem members in addition to `detail`. @property retryAfter whole seconds. */
export interface FailureMembers {
  readonly hint?: string | undefined
  /**
   * The failure is replayed from an earlier call with the same idempotency key. Sent as a header, not in the problem.
   */
  readonly isReplayed?: boolean | undefined
  /** The call's writes are committed despite the failure, for example a failed attempt counter. */
  readonly isCommitted?: boolean | undefined
  /** The same call can never succeed, although its code is retryable. */
  readonly isFinal?: boolean | undefined
  readonly reason?: string | undefined
  readonly retryAfter?: number | undefined
  readonly violations?: readonly Violation[] | undefined
  readonly decisionId?: string | undefined
  readonly transferId?: string | undefined
  readonly paymentId?: string | undefined
  readonly transaction?: string | undefined
  /** URL of the outcome, sent as the Location header, not in the problem. */
  readonly location?: string | undefined
  readonly approvalId?: string | undefined
  readonly approvalUrl?: string | undefined
  /** The owner's words to the agent. */
  readonly note?: string | undefined
  readonly issues?: readonly { readonly path: string; readonly message: string }[] | undefined
  readonly scopes?: readonly string[] | undefined
  readonly purchaseId?: string | undefined
  readonly offers?: readonly unknown[] | undefined
  /** The missing asset, its chain (null for cash and shares) and the amount available. */
  readonly asset?: string | undefined
  readonly chain?: string | null | undefined
  readonly available?: string | undefined
  /** Other money of the account. */
  readonly elsewhere?:
    | readonly { readonly chain: string | null; readonly asset: string; readonly available: string }[]
    | undefined
  readonly screening?: { readonly result: string; readonly lists: readonly string[] } | undefined
}

/** An expected failure. The message says what happened, `hint` what to do; neither contains a secret. */
export class Failure extends Error {
  readonly code: FailureCode
  readonly members: FailureMembers

  constructor(code: FailureCode, detail: string, members: FailureMembers = {}, options?: ErrorOptions) {
    super(detail, options)
    this.name = 'Failure'
    this.code = code
    this.members = members
  }

  get status(): number {
    return failures[this.code].status
  }

  /** The RFC 9457 problem object, without the transport's members (`instance`, `requestId`). */
  toProblem(): Record<string, unknown> {
    const { status, title } = failures[this.code]
    const {
      isReplayed: _replayed,
      isCommitted: _committed,
      isFinal: _final,
      location: _location,
      ...members
    } = this.members
    return {
      type: `/errors/${this.code}`,
      title,
      status,
      detail: this.message,
      code: this.code,
      ...members,
    }
  }
}
