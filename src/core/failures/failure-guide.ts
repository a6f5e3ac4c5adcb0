/**
 * Meaning, remedy and example of each failure code, for the error pages and the OpenAPI examples. The type requires
 * an entry for every code.
 */
import type { FailureCode, FailureMembers } from './failure.ts'

/** @property example sample `detail`. @property members sample values of the members that the problem can carry. */
export interface FailureGuideEntry {
  readonly meaning: string
  readonly remedy: string
  readonly example: string
  readonly members: FailureMembers
}

const DECISION = 'dec_01kag5x0n0e8tr7v3m2c4q6w8y'
const TRANSACTION = `0x${'5f'.repeat(32)}`
const entry = (meaning: string, remedy: string, example: string): FailureGuideEntry => ({
  meaning,
  remedy,
  example,
  members: {},
})
const retryableEntry = (
  meaning: string,
  remedy: string,
  example: string,
  retryAfter = 2,
): FailureGuideEntry => ({
  ...entry(meaning, remedy, example),
  members: { retryAfter },
})

export const failureGuide: Readonly<Record<FailureCode, FailureGuideEntry>> = {
  invalid_request: {
    meaning: 'A member is missing, unknown or invalid. The request had no effect.',
    remedy: 'Correct the members listed in "issues" (path and message), then send the request again.',
    example: 'amount: must have at most 6 decimals',
    members: { issues: [{ path: 'amount', message: 'must have at most 6 decimals' }] },
  },
  ambiguous_credentials: entry(
    'The request carries more than one credential, such as a cookie and an API key.',
    'Send exactly one: a session token, an API key or a signature.',
    'The request carries cookie and api-key.',
  ),
  credential_in_query: entry(
    'The query string contains a credential, or a parameter named like one. Query strings end up in logs and histories.',
    'Send it in a header. If it is a real credential, revoke it and create a new one.',
    'The query parameter "token" looks like a credential; it was rejected.',
  ),
  url_not_allowed: entry(
    'The URL to buy from is not a public https URL: it has another scheme, names a private or reserved address, has an odd form, or contains a user or password. Nothing was sent.',
    'Use the https URL of a public host. "reason" says which part was refused.',
    '10.0.0.1 is not on the public internet.',
  ),
  chain_not_supported: entry(
    'This deployment does not support the requested chain.',
    'Omit "chain" for the default, or use one that GET /api/rails lists.',
    'Transfers on solana are not supported here.',
  ),
  unauthenticated: entry(
    'The operation requires a credential, and the request has none or an invalid one (expired, revoked, unknown).',
    'Sign in again, use another API key, or sign the request as an agent. The WWW-Authenticate and Accept-Signature headers describe how.',
    'This operation requires a credential.',
  ),
  signature_invalid: entry(
    'The signature of an agent or a provider does not verify, or does not cover all required components.',
    'Sign @method, @authority, @path, @query and, with a body, content-digest, over the public origin; "bursar agent sign" creates the headers.',
    'The signature does not verify.',
  ),
  signature_expired: entry(
    'The signature is too old, expires too late, or the clocks differ by more than 30 seconds.',
    'Correct the clock, and sign each request with "created" and an "expires" at most 300 seconds later.',
    'The signature expired at 2026-11-20T12:00:00.000Z.',
  ),
  signature_replayed: entry(
    'The nonce of the signature was already used. The first request may have been executed.',
    'Sign again with a new nonce; keep the Idempotency-Key, so that the request is executed only once.',
    'This nonce was already used.',
  ),
  digest_mismatch: entry(
    'Content-Digest does not match the received body.',
    'Compute sha-256 over exactly the bytes that are sent.',
    'The body does not match its Content-Digest.',
  ),
  unknown_key: entry(
    'No active key has this id: it was never registered, or it was revoked.',
    'Ask the owner to register the key (POST /api/agents/keys), or use an active key.',
    'No key has this id.',
  ),
  delegation_invalid: {
    ...entry(
      'The chain of delegations in Bursar-Delegation does not verify. Nothing was written. "reason" says why: signature, expired, audience, depth, wider, revoked, unknown_parent or replayed.',
      'Ask the parent for a new delegation that is no wider than its own key, and send the whole chain, root first. After its first use the child may leave the chain out.',
      'Delegation 1 of the chain has ended.',
    ),
    members: { reason: 'expired' },
  },
  step_up_required: entry(
    'The operation is privileged and requires a second factor from the last five minutes.',
    'POST /api/security/mfa {"action":"verify","code":"…"}, then send the request again.',
    'This operation requires a second factor from the last five minutes.',
  ),
  insufficient_scope: {
    meaning:
      'The credential is valid but does not allow this operation: a scope is missing, or only a person may call it.',
    remedy: 'Ask the owner for the scopes in "scopes". A key cannot extend its own scopes.',
    example: 'This operation requires the scope wallets:transfer.',
    members: { scopes: ['wallets:transfer'] },
  },
  insufficient_role: entry(
    'The account has several people, and this is more than the role of the one who is signed in allows: an accountant reads money and statements, a viewer reads everything, an approver decides on approvals too, an owner does everything.',
    'Ask an owner of the account to do it, or to change the role: GET /api/people lists them.',
    'This requires an owner of the account, and you are a viewer.',
  ),
  policy_denied: {
    meaning:
      'The spend policy of the key, or the owner’s cap, denies this spend. No money moved, and no budget was used.',
    remedy:
      'Tell the owner, or ask for exactly this call once: POST /api/approvals with "operation", "input" and "reason". "violations" lists every failed rule. Never split the spend, and never change its amount or payee to stay within a limit.',
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
    meaning:
      'The policy allows this spend only with the owner’s approval, which has been requested. No money moved.',
    remedy:
      'The owner decides at "approvalUrl". Poll GET /api/approvals/{id} with "approvalId", or repeat the call with the same Idempotency-Key after the approval.',
    example: 'A spend of 50 USDC requires the owner’s approval.',
    members: {
      decisionId: DECISION,
      approvalId: 'appr_01kag5x0n0e8tr7v3m2c4q6w8y',
      approvalUrl: 'https://bursar.example/approvals/appr_01kag5x0n0e8tr7v3m2c4q6w8y',
    },
  },
  approval_rejected: {
    meaning: 'The owner rejected exactly this call. No money moved.',
    remedy:
      'Do what "note" says, if there is one, and do not repeat the call. Only if the owner asks for it: send it with a new Idempotency-Key.',
    example: 'The owner rejected a spend of 50 USDC: “Not before June.”',
    members: { approvalId: 'appr_01kag5x0n0e8tr7v3m2c4q6w8y', note: 'Not before June.' },
  },
  payee_changed: entry(
    'The seller asks for a payment to an address that the account has not paid at this seller before, and the policy has no approvals. Nothing was paid.',
    'Tell the owner. The address may have been replaced by an attacker.',
    'The spend policy denies this: payee_changed.',
  ),
  price_changed: entry(
    'The seller asks for over a tenth more than the last time, and the policy has no approvals. Nothing was paid.',
    'Tell the owner what the seller asks for.',
    'The spend policy denies this: price_changed.',
  ),
  aml_blocked: {
    meaning:
      'The AML policy blocks the transfer: a sanctions list, the owner’s block list, velocity, structuring, or the Travel Rule.',
    remedy:
      '"screening" names the match, and "decisionId" the recorded denial. Do not split the amount; for travel_rule send POST /api/compliance/travel-rule first. With result "review" an administrator reviews the transfer: once released, exactly this request passes once within 24 hours.',
    example: 'The destination is on a sanctions list.',
    members: { decisionId: DECISION, screening: { result: 'blocked', lists: ['ofac'] } },
  },
  rail_disabled: {
    meaning: 'The rail for this operation is switched off. No money moved.',
    remedy: 'GET /api/rails shows its state and reason. Tell the owner, and wait until it is switched on.',
    example: 'The rail wallet-transfer is switched off.',
    members: { reason: 'maintenance' },
  },
  signature_rejected: entry(
    'The signature does not authorize this transfer: it covers a different amount, destination or wallet, was already used, or has expired.',
    'A person gets an intent from POST /api/wallets/transfer/intent, signs it, and sends the signature within five minutes with the same members. A key sends no signature; if its allowance on chain is exhausted, it tells the owner.',
    'The signature does not authorize this transfer.',
  ),
  kyc_required: entry(
    'A spend of this value requires a level of identity verification that the account does not have.',
    'POST /api/compliance/kyc for the level named in "detail". Never split the spend.',
    'This spend requires the level basic; the account has none.',
  ),
  cross_site_request: entry(
    'A page of another origin sent the request with the session cookie, or its Host or Origin header does not name this gateway.',
    'Send the request from the gateway’s own origin with "Content-Type: application/json", or use a bearer token instead of the cookie.',
    'The Host header does not name this gateway.',
  ),
  mfa_enrollment_required: entry(
    'In production this operation requires a second factor, and the account has none.',
    'POST /api/security/mfa {"action":"enroll"}, then "activate".',
    'This operation requires a second factor; none is enrolled.',
  ),
  not_found: entry(
    'The object does not exist or belongs to another account; the response is the same in both cases.',
    'Check the path and the id; GET /api/openapi.json lists every route.',
    'No transfer has this id.',
  ),
  pair_not_supported: entry(
    'There is no rate for this currency pair, or no route between the two chains. Nothing was charged.',
    'Request another pair.',
    'There is no rate from USD to XYZ.',
  ),
  method_not_allowed: entry(
    'The path exists, but not with this method.',
    'Use a method from the Allow header.',
    'DELETE is not allowed here; use GET.',
  ),
  idempotency_in_progress: retryableEntry(
    'The first call with this Idempotency-Key is still running.',
    'Wait for Retry-After and repeat the same request: it returns the first call’s response and has no second effect.',
    'The first call with this idempotency key is still running.',
    1,
  ),
  payment_reused: entry(
    'This signed payment was already used for another request. It is not charged again.',
    'Send the original request, or sign a new payment for this one.',
    'The payment was already used for a different request.',
  ),
  wallet_busy: retryableEntry(
    'The gateway has promised money of this wallet, or the account owes a debt: until that is paid or secured, the wallet does not change hands, allows no new spending on chain and pays nothing out.',
    'Wait for "retryAfter" seconds and send the request again. Money that cards hold is secured within seconds; a debt is paid from the next money that arrives.',
    'The wallet cannot change hands yet: card purchases hold money in it.',
    5,
  ),
  conflict: {
    meaning:
      'The object changed during the request, or its state no longer allows the operation. The request had no effect.',
    remedy: 'Read the object again ("reason" may name its state), then decide whether to send a new request.',
    example: 'The order is filled; it cannot be canceled.',
    members: { reason: 'filled' },
  },
  body_too_large: entry(
    'The body is over 64 KiB. It was not processed.',
    'Send a smaller body.',
    'The body is over 65536 bytes.',
  ),
  headers_too_large: entry(
    'The headers are over 16 KiB in total. The request was not processed.',
    'Send fewer or shorter headers and cookies, or a shorter target.',
    'The headers are over 16 KiB.',
  ),
  request_timeout: entry(
    'The request did not arrive in time: headers within 10 seconds, the whole request within 30. It had no effect.',
    'Send it again over a new connection.',
    'The request did not arrive in time and was not processed.',
  ),
  unsupported_media_type: entry(
    'The Content-Type is not application/json, or the body has a Content-Encoding.',
    'Send "Content-Type: application/json", without Content-Encoding.',
    'The Content-Type is not application/json.',
  ),
  idempotency_key_reused: entry(
    'This Idempotency-Key was already used with a different request.',
    'Use a new key for a new request, and an existing key only to repeat its request.',
    'This idempotency key was used with a different request.',
  ),
  insufficient_funds: {
    meaning:
      'The available balance, without held funds, is lower than needed. No money moved. "elsewhere" lists other money of the account; its "chain" is null for cash.',
    remedy: 'Add funds, or choose another asset or chain, and use a new Idempotency-Key.',
    example: 'The wallet has 3 USDC on base-sepolia available; 12.5 needed.',
    members: {
      decisionId: DECISION,
      asset: 'USDC',
      chain: 'base-sepolia',
      available: '3',
      elsewhere: [{ chain: 'base-sepolia', asset: 'EURC', available: '500' }],
    },
  },
  terms_not_payable: entry(
    'None of the seller’s offers can be paid: another asset, network or scheme, a higher price than "maxAmount", or terms that changed. Nothing was paid. "offers" lists them.',
    'Tell the owner what the seller asks for. Do not raise "maxAmount" without being asked to.',
    'The seller asks for more than maxAmount (0.05 USDC). Nothing was paid.',
  ),
  payout_rejected: {
    meaning:
      'The banking provider does not pay this out: the amount, the asset or the bank account is not accepted. Nothing was sent.',
    remedy:
      '"reason" is amount_too_small, amount_too_large, asset_not_supported, recipient_rejected, not_funded or never_sent, among others: change the payout. intent_ended: ask for a new intent. quote_expired, quote_used, quote_mismatch or quote_unknown: ask for a new quote. amount_not_firm: send the amount that leaves.',
    example: '0.5 USD is less than the minimum of 1. Nothing was sent.',
    members: { reason: 'amount_too_small' },
  },
  swap_rejected: {
    meaning: 'The swap is not made: its quote or its route does not keep what was agreed. Nothing was sent.',
    remedy:
      '"reason" is quote_expired, quote_used, quote_unknown or not_executable: ask for a new quote. below_minimum or price: lower minReceived, raise maxSlippageBps, or wait. route_refused: the route would do something else with the money; use another quote.',
    example: 'The quote has expired. Nothing was sent.',
    members: { reason: 'quote_expired' },
  },
  recourse_impossible: {
    meaning: 'There is no money of this payment to get back. Nothing was opened.',
    remedy:
      '"reason" is nothing_paid (it was never paid, and its money is available), already_back (all of it has come back) or not_sent_yet (a swap that is not on the chain yet: read it again).',
    example: 'Nothing was paid: the money is available.',
    members: { reason: 'nothing_paid' },
  },
  order_rejected: {
    meaning:
      'The broker does not accept this order: the symbol is not traded, or the amount is outside its limits.',
    remedy:
      '"reason" is unknown_symbol, not_tradable, notional_too_small, notional_too_large, no_quote or never_placed: change the order.',
    example: 'VTI is not traded at the moment.',
    members: { reason: 'not_tradable' },
  },
  authorization_rejected: {
    meaning: 'The token contract would reject this signed authorization. No gas was spent.',
    remedy:
      '"reason" is expired, not_yet_valid, nonce_used, signature, domain or balance: sign a new authorization.',
    example: 'The authorization has expired.',
    members: { reason: 'expired' },
  },
  account_locked: entry(
    'The account was locked after ten failed factors within an hour, by an administrator, or by its owner. Its keys and agents are blocked too.',
    'Unlock it through POST /api/auth/recovery/start.',
    'The account is locked.',
  ),
  rate_limited: retryableEntry(
    'The request exceeds the rate limit of its window.',
    'Wait for Retry-After, in whole seconds. An earlier request restarts the wait.',
    'More than 150 requests in 60 s.',
    42,
  ),
  internal: entry(
    'An unexpected server error occurred. The request may have had an effect.',
    'Repeat with the same Idempotency-Key; if it fails again, report the request id.',
    'An unexpected error occurred. The server log has the details under the request id.',
  ),
  seller_failed: entry(
    'The seller did not answer, redirected, or did not deliver. Nothing was paid.',
    'Try it later with a new idempotency key, or tell the owner.',
    'The seller answered 500. Nothing was paid.',
  ),
  controls_unavailable: {
    meaning: 'The state of the rail is unknown, so no money moves and nothing is charged.',
    remedy: 'Wait for Retry-After and send the same request again.',
    example: 'The state of the rail x402-fx is temporarily unavailable.',
    members: { reason: 'plan_limit', retryAfter: 30 },
  },
  settlement_pending: {
    meaning:
      'The payment was sent and is not confirmed yet. It may still succeed and must not be paid again.',
    remedy:
      'Poll the Location header, or send the same request with the same payment or Idempotency-Key after Retry-After. Never sign a new payment.',
    example: 'The payment is not settled yet.',
    members: {
      retryAfter: 3,
      paymentId: 'pay_01kag5x0n0e8tr7v3m2c4q6w8y',
      transaction: TRANSACTION,
      transferId: 'tx_01kag5x0n0e8tr7v3m2c4q6w8y',
    },
  },
  screening_unavailable: retryableEntry(
    'The destination cannot be screened at the moment. Unscreened transfers are not sent.',
    'Wait for Retry-After and send the same request again.',
    'The screening provider does not respond.',
  ),
  provider_unavailable: retryableEntry(
    'A required dependency (database, chain, rate limits, a provider) does not respond, or the gateway is starting. The request had no effect.',
    'Wait for Retry-After and send the same request again, with the same Idempotency-Key.',
    'The database does not respond.',
    1,
  ),
  facilitator_unavailable: retryableEntry(
    'The payment facilitator is unreachable. Nothing was charged.',
    'Send the same payment again after Retry-After.',
    'The payment could not be checked or sent; nothing was charged.',
  ),
  rates_unavailable: retryableEntry(
    'The latest exchange rates are too old to quote. Nothing was charged.',
    'Wait for Retry-After and send the request again.',
    'The exchange rates are too old to quote.',
    60,
  ),
  no_route: retryableEntry(
    'No aggregator offers a route for this swap, or none responded.',
    'The hint says whether to wait for Retry-After and retry, or to use another amount, token or chain.',
    'No aggregator returned a route.',
  ),
}
