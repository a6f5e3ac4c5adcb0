/**
 * x402 over MCP: a caller with a wallet of its own pays for one call in `_meta["x402/payment"]` and gets the receipt in
 * `_meta["x402/payment-response"]`.
 * @see https://github.com/coinbase/x402/blob/main/specs/transports-v2/mcp.md
 */
import { Failure } from '../src/core/failures/failure.ts'
import type {
  ChallengeOutcome,
  PaidOutcome,
  SaleRequest,
  Seller,
  SentPayment,
} from '../src/rails/selling/x402/sale.ts'
import { type ToolResult, toResult } from './result.ts'

/** A purchase by an MCP caller, without its payment. */
export type McpPurchase = Omit<SaleRequest, 'payment' | 'paymentPlace'> &
  Required<Pick<SaleRequest, 'purchase'>>

const PAYMENT = 'x402/payment'
const RECEIPT = 'x402/payment-response'
const PLACE = `_meta["${PAYMENT}"]`

/** The payment that a call carries; undefined: none. */
export function paymentIn(meta: Readonly<Record<string, unknown>> | undefined): unknown {
  return meta?.[PAYMENT]
}

/** Answers a call with what is bought and its receipt, or with the challenge. @throws Failure as selling over REST. */
export async function sellThroughMcp(
  seller: Seller,
  payment: unknown,
  purchase: McpPurchase,
): Promise<ToolResult> {
  const sent = sentPayment(payment)
  const outcome = await seller.sell({ ...purchase, payment: sent, paymentPlace: PLACE })
  if (outcome.status === 'paid') return paidResult(outcome)
  const terms = parseTerms(outcome, sent.generation)
  return { content: [{ type: 'text', text: JSON.stringify(terms) }], structuredContent: terms, isError: true }
}

/** Returns the earlier purchase of an idempotency key, or null. @throws Failure `settlement_pending`, `idempotency_key_reused`. */
export async function findEarlierPurchase(
  seller: Seller,
  purchase: McpPurchase['purchase'],
): Promise<ToolResult | null> {
  const outcome = await seller.recall(purchase)
  return outcome === null ? null : paidResult(outcome)
}

/** The v2 challenge for a purchase. */
export async function requiredPayment(
  seller: Seller,
  purchase: McpPurchase,
): Promise<Record<string, unknown>> {
  const outcome = await seller.sell({ ...purchase, payment: null, paymentPlace: PLACE })
  if (outcome.status === 'paid') throw new Error('a purchase without a payment was not challenged')
  return parseTerms(outcome, 2)
}

function paidResult({ answer, receipt, replayed }: PaidOutcome): ToolResult {
  const result = toResult(answer, { replayed })
  const parsed: unknown = JSON.parse(Buffer.from(receipt, 'base64').toString('utf8') || 'null')
  return { ...result, _meta: { ...result._meta, [RECEIPT]: parsed } }
}

function parseTerms(
  { v1, v2 }: ChallengeOutcome,
  generation: SentPayment['generation'],
): Record<string, unknown> {
  return JSON.parse(generation === 1 ? v1 : v2)
}

function sentPayment(payment: unknown): SentPayment {
  if (typeof payment !== 'object' || payment === null || Array.isArray(payment)) {
    const message = 'must be an x402 payment object'
    throw new Failure('invalid_request', `${PLACE}: ${message}`, { issues: [{ path: PLACE, message }] })
  }
  const generation = 'x402Version' in payment && payment.x402Version === 1 ? 1 : 2
  return { generation, payload: payment, place: PLACE, form: 'a payment' }
}
