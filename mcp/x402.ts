/**
 * x402 over MCP: a caller who has a wallet of their own pays for one call in `_meta["x402/payment"]`, and gets the receipt in
 * `_meta["x402/payment-response"]`. The same sale as over REST: one payment buys one answer, whichever way it is sent.
 * @see https://github.com/coinbase/x402/blob/main/specs/transports-v2/mcp.md
 */

import { writeJson } from '../src/base/json.ts'
import { Failure } from '../src/failures/failure.ts'
import type { ToolResult } from './result.ts'

/** Sells to anybody who pays. A payment travels in the headers of the request, base64 of JSON. */
export interface Seller {
  sell(request: SaleRequest, wanted: Wanted): Promise<Response>
  /** What was bought under an idempotency key before; null: nothing was. */
  recall(named: Purchase): Promise<Response | null>
}

interface SaleRequest {
  readonly req: {
    readonly method: string
    readonly path: string
    header(name: string): string | undefined
  }
}

/** What an idempotency key names: whose it is, and a hash of operation and input. */
export interface Purchase {
  readonly principal: string
  readonly key: string
  readonly fingerprint: string
}

interface Wanted {
  readonly input: unknown
  readonly deliver: () => Promise<Record<string, unknown>>
  readonly purchase: Purchase
  readonly paymentPlace: string
}

/** What is bought: the route that sells the same over REST, the decoded input, how it is made, and what names it. */
export interface McpPurchase extends Omit<Wanted, 'paymentPlace'> {
  readonly route: string
}

const PAYMENT = 'x402/payment'
const RECEIPT = 'x402/payment-response'
const PLACE = `_meta["${PAYMENT}"]`

/** The payment that a call came with; undefined: it came with none. */
export function paymentIn(meta: Readonly<Record<string, unknown>> | undefined): unknown {
  return meta?.[PAYMENT]
}

/** Answers a call by what is bought, with its receipt, or by what has to be paid. @throws Failure as selling over REST does. */
export async function sellThroughMcp(
  seller: Seller,
  payment: unknown,
  buying: McpPurchase,
): Promise<ToolResult> {
  const response = await sale(seller, buying, headersOf(payment))
  if (response.status !== 402) return boughtIn(response)
  const body: Record<string, unknown> = JSON.parse(await response.text())
  return paymentRequired(termsIn(response, isV1(payment) ? body : null))
}

/** What was bought under an idempotency key before; null: nothing was. @throws Failure `settlement_pending`, `idempotency_key_reused`. */
export async function findEarlierPurchase(seller: Seller, purchase: Purchase): Promise<ToolResult | null> {
  const response = await seller.recall(purchase)
  return response === null ? null : boughtIn(response)
}

/** What has to be paid for a purchase. */
export async function requiredPayment(seller: Seller, buying: McpPurchase): Promise<Record<string, unknown>> {
  return termsIn(await sale(seller, buying, new Map()), null)
}

function sale(
  seller: Seller,
  { route, ...wanted }: McpPurchase,
  headers: ReadonlyMap<string, string>,
): Promise<Response> {
  const [method = '', path = ''] = route.split(' ')
  const header = (name: string) => headers.get(name.toLowerCase())
  return seller.sell({ req: { method, path, header } }, { ...wanted, paymentPlace: PLACE })
}

async function boughtIn(response: Response): Promise<ToolResult> {
  const body: Record<string, unknown> = JSON.parse(await response.text())
  const receipt = response.headers.get('payment-response') ?? response.headers.get('x-payment-response')
  return {
    content: [{ type: 'text', text: JSON.stringify(body) }],
    structuredContent: body,
    _meta: { [RECEIPT]: receipt === null ? null : decoded(receipt) },
  }
}

function paymentRequired(terms: Record<string, unknown>): ToolResult {
  return {
    content: [{ type: 'text', text: JSON.stringify(terms) }],
    structuredContent: terms,
    isError: true,
  }
}

/** @param body the terms of the first generation, which has them there; null: the second, which has them in a header. */
function termsIn(response: Response, body: Record<string, unknown> | null): Record<string, unknown> {
  return body ?? decoded(response.headers.get('payment-required') ?? '')
}

function headersOf(payment: unknown): ReadonlyMap<string, string> {
  if (typeof payment !== 'object' || payment === null || Array.isArray(payment)) {
    const message = 'must be an x402 payment: an object'
    throw new Failure('invalid_request', `${PLACE}: ${message}`, {
      issues: [{ path: PLACE, message }],
    })
  }
  const encoded = Buffer.from(writeJson(payment)).toString('base64')
  return new Map([[isV1(payment) ? 'x-payment' : 'payment-signature', encoded]])
}

function isV1(payment: unknown): boolean {
  return (
    typeof payment === 'object' && payment !== null && 'x402Version' in payment && payment.x402Version === 1
  )
}

function decoded(encoded: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(encoded, 'base64').toString('utf8'))
}
