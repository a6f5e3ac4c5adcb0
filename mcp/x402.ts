/**
 * x402 over MCP: a caller who has a wallet of their own pays for one call in `_meta["x402/payment"]`, and gets the receipt in
 * `_meta["x402/payment-response"]`. The same sale as over REST: one payment buys one answer, whichever way it is sent.
 * @see https://github.com/coinbase/x402/blob/main/specs/transports-v2/mcp.md
 */
import { Failure } from '../src/failure.ts'
import { writeJson } from '../src/json.ts'
import type { ToolResult } from './result.ts'

/** Sells one delivery to anybody who pays. A payment travels in the headers of the request, base64 of JSON. */
export interface Seller {
  sell(request: SaleRequest, deliver: () => Promise<Record<string, unknown>>): Promise<Response>
}

interface SaleRequest {
  readonly req: {
    readonly method: string
    readonly url: string
    readonly path: string
    header(name: string): string | undefined
  }
}

/** What is bought: the route that sells the same over REST, the arguments as its query, and how it is made. */
export interface Purchase {
  readonly route: string
  readonly given: Record<string, unknown>
  readonly deliver: () => Promise<Record<string, unknown>>
}

const PAYMENT = 'x402/payment'
const RECEIPT = 'x402/payment-response'

/** The payment that a call came with; undefined: it came with none. */
export function paymentIn(meta: Readonly<Record<string, unknown>> | undefined): unknown {
  return meta?.[PAYMENT]
}

/** Answers a call by what is bought, with its receipt, or by what has to be paid. @throws Failure as selling over REST does. */
export async function sellFor(seller: Seller, payment: unknown, purchase: Purchase): Promise<ToolResult> {
  const response = await seller.sell(requestFor(purchase, headersOf(payment)), purchase.deliver)
  const body: Record<string, unknown> = JSON.parse(await response.text())
  if (response.status === 402) return paymentRequired(termsIn(response, isV1(payment) ? body : null))
  const receipt = response.headers.get('payment-response') ?? response.headers.get('x-payment-response')
  return {
    content: [{ type: 'text', text: JSON.stringify(body) }],
    structuredContent: body,
    _meta: { [RECEIPT]: receipt === null ? null : decoded(receipt) },
  }
}

/** What has to be paid for a purchase. */
export async function termsFor(seller: Seller, purchase: Purchase): Promise<Record<string, unknown>> {
  return termsIn(await seller.sell(requestFor(purchase, new Map()), purchase.deliver), null)
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
    throw new Failure('invalid_request', `_meta["${PAYMENT}"]: ${message}`, {
      issues: [{ path: `_meta.${PAYMENT}`, message }],
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

function requestFor({ route, given }: Purchase, headers: ReadonlyMap<string, string>): SaleRequest {
  const [method = '', path = ''] = route.split(' ')
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(given)) query.append(name, String(value))
  const header = (name: string) => headers.get(name.toLowerCase())
  return { req: { method, url: `${path}?${query}`, path, header } }
}

function decoded(encoded: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(encoded, 'base64').toString('utf8'))
}
