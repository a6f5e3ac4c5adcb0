/**
 * What each code means and what to do about it: the text of the errors page and of the examples, for every code of the table
 * in `failure.ts`. A code without its words does not compile.
 */
import type { FailureCode, FailureMembers } from './failure.ts'

/** One code in words. @property example a `detail` as it may read. @property members that such a problem may carry, with values. */
export interface FailureWords {
  readonly meaning: string
  readonly remedy: string
  readonly example: string
  readonly members: FailureMembers
}

const DECISION = 'dec_01kag5x0n0e8tr7v3m2c4q6w8y'
const TRANSACTION = `0x${'5f'.repeat(32)}`
const inWords = (meaning: string, remedy: string, example: string): FailureWords => ({
  meaning,
  remedy,
  example,
  members: {},
})
const laterOn = (meaning: string, remedy: string, example: string, retryAfter = 2): FailureWords => ({
  ...inWords(meaning, remedy, example),
  members: { retryAfter },
})

/** The words of every code. */
export const failureGuide: Readonly<Record<FailureCode, FailureWords>> = {
  invalid_request: {
    meaning: 'A member is missing, unknown or not what it must be. Nothing was done.',
    remedy: 'Correct what "issues" names (path and message), and send the request again.',
    example: 'amount: must have at most 6 decimals',
    members: { issues: [{ path: 'amount', message: 'must have at most 6 decimals' }] },
  },
  ambiguous_credentials: inWords(
    'The request carries more than one credential, such as a cookie and an API key, and nobody may guess which counts.',
    'Send exactly one: a session, an API key or a signature.',
    'The request carries cookie and api-key.',
  ),
  credential_in_query: inWords(
    'A credential, or a parameter named like one, stands in the query string, where logs and histories would keep it.',
    'Send it as a header. If it was a real one, revoke it and make a new one.',
    'The query holds a credential (token).',
  ),
  chain_not_supported: inWords(
    'This deployment has no adapter for the chain that was named.',
    'Leave "chain" out for the default, or name one that GET /api/rails lists.',
    'Transfers on solana are not possible here.',
  ),
  unauthenticated: inWords(
    'The operation needs a credential, and there is none, or the one that came does not hold (expired, revoked, unknown).',
    'Sign in again, use another API key, or sign the request as an agent. WWW-Authenticate and Accept-Signature say how.',
    'This operation needs a credential.',
  ),
  signature_invalid: inWords(
    'The signature of an agent or of a provider does not verify, or does not cover what it must.',
    'Sign @method, @authority, @path, @query and, with a body, content-digest, over the public origin; "bursar agent sign" does it.',
    'The signature does not verify.',
  ),
  signature_expired: inWords(
    'The signature was made too long ago, expires too late, or the clocks differ by more than 30 seconds.',
    'Set the clock, and sign each request anew with "created" and an "expires" of at most 300 seconds later.',
    'The signature expired at 2026-11-20T12:00:00.000Z.',
  ),
  signature_replayed: inWords(
    'The nonce of the signature was used before. The first request may have been carried out.',
    'Sign again with a new nonce; keep the Idempotency-Key, so that nothing happens twice.',
    'This nonce was used before.',
  ),
  digest_mismatch: inWords(
    'Content-Digest is not the digest of the body that arrived.',
    'Compute sha-256 over the very bytes that are sent.',
    'The body does not match its Content-Digest.',
  ),
  unknown_key: inWords(
    'No active key has this id: it was never registered, or it was revoked.',
    'Have the owner register the key (POST /api/agents/keys), or use one that is active.',
    'There is no key of this id.',
  ),
  step_up_required: inWords(
    'What is asked for is privileged, and no second factor was shown in the last five minutes.',
    'POST /api/security/mfa {"action":"verify","code":"…"}, then send the request again.',
    'This needs a second factor of the last five minutes.',
  ),
  insufficient_scope: {
    meaning: 'The credential holds, but it does not allow this: a scope is missing, or only a person may.',
    remedy: 'Ask the owner for the scopes that "scopes" names. No key can raise its own.',
    example: 'This needs the scope wallets:transfer.',
    members: { scopes: ['wallets:transfer'] },
  },
  policy_denied: {
    meaning:
      'The spend policy of the key, or the owner’s cap, denies this spend. Nothing moved, and nothing was counted.',
    remedy:
      'Change what "violations" names (all failed rules are there), wait until "resetsAt", or ask the owner for a wider policy.',
    example: 'The spend policy denies this: per_transaction, requested 26, limit 25, remaining 25.',
    members: {
      decisionId: DECISION,
      violations: [
        {
          rule: 'per_transaction',
          limit: '25',
          used: null,
          requested: '26',
          remaining: '25',
          resetsAt: null,
        },
      ],
    },
  },
  approval_required: {
    meaning: 'The policy allows this only with the owner’s approval, which was asked for. Nothing moved.',
    remedy:
      'The owner decides at "approvalUrl". Ask GET /api/approvals/{id} with "approvalId", or repeat the call with the same Idempotency-Key once the owner has approved.',
    example: 'A spend of 50 USDC needs the owner’s approval.',
    members: {
      decisionId: DECISION,
      approvalId: 'appr_01kag5x0n0e8tr7v3m2c4q6w8y',
      approvalUrl: 'https://bursar.example/approvals/appr_01kag5x0n0e8tr7v3m2c4q6w8y',
    },
  },
  aml_blocked: {
    meaning:
      'The AML policy blocks the transfer: a sanctions list, the owner’s block list, velocity, structuring, or the Travel Rule.',
    remedy:
      '"screening" names what hit, "decisionId" the denial on record. Do not split the amount; for travel_rule send POST /api/compliance/travel-rule first. With result "review" an administrator looks at it: once released, exactly this request passes once within 24 hours.',
    example: 'The destination is on a sanctions list.',
    members: { decisionId: DECISION, screening: { result: 'blocked', lists: ['ofac'] } },
  },
  rail_disabled: {
    meaning: 'The rail that would move the money is switched off. Nothing moved.',
    remedy: 'See GET /api/rails for its state and reason; use another rail, or wait until it is on.',
    example: 'The rail wallet-transfer is switched off.',
    members: { reason: 'maintenance' },
  },
  signature_rejected: inWords(
    'The signature does not authorize this very transfer: another amount, destination or wallet was signed, or it was used or is too old.',
    'POST /api/wallets/transfer/intent, sign what it answers, and send it within five minutes with the same members.',
    'The signature does not authorize this transfer.',
  ),
  kyc_required: inWords(
    'A spend of this worth needs a level of identity verification that the holder does not have.',
    'POST /api/compliance/kyc for the level that the detail names.',
    'This needs the level basic; the account has none.',
  ),
  cross_site_request: inWords(
    'A page of another origin sent this with the session’s cookie, or Host or Origin are not ours.',
    'Call from our own origin with "Content-Type: application/json", or use a bearer token instead of the cookie.',
    'The Origin of this request is not ours.',
  ),
  mfa_enrollment_required: inWords(
    'In production this needs a second factor, and the account has none.',
    'POST /api/security/mfa {"action":"enroll"}, then "activate".',
    'This needs a second factor; none is enrolled.',
  ),
  not_found: inWords(
    'There is nothing here, or it is somebody else’s: both are told alike.',
    'Check the path and the id; GET /api/openapi.json lists every route.',
    'There is no transfer of this id.',
  ),
  pair_not_supported: inWords(
    'There is no rate for this pair of currencies, or no way between the two chains. Nothing was charged.',
    'Ask for another pair.',
    'There is no rate from USD to XYZ.',
  ),
  method_not_allowed: inWords(
    'The path is there, but not with this method.',
    'Use one that the Allow header names.',
    'DELETE is not possible here; GET is.',
  ),
  idempotency_in_progress: laterOn(
    'The first call with this Idempotency-Key is still running.',
    'Wait for Retry-After and repeat the same request: you get the first call’s answer, never a second effect.',
    'The first call with this idempotency key is still running.',
    1,
  ),
  payment_reused: inWords(
    'This signed payment has bought something else already. It is not charged again.',
    'Send the request it was made for, or sign a new payment for this one.',
    'This payment was made for another request.',
  ),
  conflict: {
    meaning:
      'Something changed while the request was under way, or its state does not allow this any more. Nothing was done.',
    remedy: 'Read the object again ("reason" may name its state), and decide anew.',
    example: 'The order is filled; it cannot be canceled.',
    members: { reason: 'filled' },
  },
  body_too_large: inWords(
    'The body is over 64 KiB. It was not read.',
    'Send less.',
    'The body is over 65536 bytes.',
  ),
  headers_too_large: inWords(
    'The headers are over 16 KiB in all. The request was not read any further.',
    'Send fewer or shorter headers and cookies, or a shorter target.',
    'The headers are over 16 KiB.',
  ),
  request_timeout: inWords(
    'The request did not arrive in time: its headers within 10 seconds, all of it within 30. Nothing was done.',
    'Send it again over a new connection.',
    'The request did not arrive in time; nothing was done.',
  ),
  unsupported_media_type: inWords(
    'The body is not JSON by its Content-Type, or it is encoded.',
    'Send "Content-Type: application/json", without Content-Encoding.',
    'The body is not JSON.',
  ),
  idempotency_key_reused: inWords(
    'This Idempotency-Key belongs to another request: the same key with another body.',
    'Use a new key for a new request, and the old one only to repeat the old request.',
    'This idempotency key was used with another request.',
  ),
  insufficient_funds: {
    meaning: 'Less is available than is needed. Money that is held for others does not count. Nothing moved.',
    remedy: 'Ask for a smaller amount, or add funds and use a new Idempotency-Key.',
    example: 'The wallet has 3 USDC available; 12.5 needed.',
    members: { decisionId: DECISION },
  },
  order_rejected: {
    meaning:
      'The broker does not take this order: the symbol is not traded, or the amount is outside its limits.',
    remedy:
      '"reason" is unknown_symbol, not_tradable, notional_too_small, notional_too_large, no_quote or never_placed: change the order.',
    example: 'VTI is not traded at the moment.',
    members: { reason: 'not_tradable' },
  },
  authorization_rejected: {
    meaning: 'The token would refuse what somebody has signed for it. No gas was spent.',
    remedy:
      '"reason" is expired, not_yet_valid, nonce_used, signature, domain or balance: sign a new authorization.',
    example: 'The authorization has expired.',
    members: { reason: 'expired' },
  },
  account_locked: inWords(
    'The account is locked: after ten failed factors in an hour, by an administrator, or by the person. Its keys and agents are stopped too.',
    'Unlock it through POST /api/auth/recovery/start.',
    'The account is locked.',
  ),
  rate_limited: laterOn(
    'More requests than the window allows.',
    'Wait for Retry-After, whole seconds. A request made earlier starts the wait anew.',
    'More than 150 requests in 60 s.',
    42,
  ),
  internal: inWords(
    'Something went wrong on our side. It may have happened before or after the effect.',
    'Repeat with the same Idempotency-Key; if it fails again, report the request id.',
    'Something went wrong on our side. The request id names it in our log.',
  ),
  controls_unavailable: {
    meaning: 'It is not known whether the rail is switched on, so nothing moves and nothing is charged.',
    remedy: 'Wait for Retry-After and send the same request again.',
    example: 'Whether the rail x402-fx is on cannot be read at the moment.',
    members: { reason: 'plan_limit', retryAfter: 30 },
  },
  settlement_pending: {
    meaning:
      'The payment was sent and is not confirmed yet. It may still succeed: it is not lost, and it must not be paid again.',
    remedy:
      'Ask where Location points, or send the same request with the same payment or Idempotency-Key after Retry-After. Never sign a new one.',
    example: 'The payment is not settled yet.',
    members: {
      retryAfter: 3,
      paymentId: 'pay_01kag5x0n0e8tr7v3m2c4q6w8y',
      transaction: TRANSACTION,
      transferId: 'tx_01kag5x0n0e8tr7v3m2c4q6w8y',
    },
  },
  screening_unavailable: laterOn(
    'The destination cannot be screened at the moment, and what is not screened is not sent.',
    'Wait for Retry-After and send the same request again.',
    'The screening provider does not answer.',
  ),
  provider_unavailable: laterOn(
    'A part that is needed (database, chain, limits, a provider) does not answer, or the gateway is just starting. Nothing was done.',
    'Wait for Retry-After and send the same request again, with the same Idempotency-Key.',
    'The database does not answer.',
    1,
  ),
  facilitator_unavailable: laterOn(
    'Whoever settles payments cannot be reached. Nothing was charged.',
    'Send the same payment again after Retry-After.',
    'The facilitator cannot be reached.',
  ),
  rates_unavailable: laterOn(
    'There are no rates that are fresh enough to sell. Nothing was charged.',
    'Wait for Retry-After and ask again.',
    'The rates are too old to be sold.',
    60,
  ),
  no_route: laterOn(
    'No aggregator offers a route for this swap, or none answered.',
    'The hint says whether to wait for Retry-After and ask again, or to name another amount, token or chain.',
    'No aggregator answered with a route.',
  ),
}
