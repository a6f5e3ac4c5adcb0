/**
 * Serves the sandbox's sellers. They are strangers to the gateway: their requests pass no authentication, because
 * `Authorization` carries payments here.
 */
import type { Hono } from 'hono'
import { timers } from '../../../core/base/timers.ts'
import { Failure } from '../../../core/failures/failure.ts'
import { toMoney } from '../../../core/money/money.ts'
import type { Services } from '../../../kernel/context.ts'
import { createChallenge } from '../../../rails/selling/x402/challenge.ts'
import { decodePayment } from '../../../rails/selling/x402/payment.ts'
import { buildTerms, type Terms, withPrice } from '../../../rails/selling/x402/terms.ts'
import {
  refundPath,
  refundSellers,
  type SandboxSeller,
  SELLERS_PATH,
  type SellerName,
  sandboxSellers,
  sellerAccount,
  sellerAddress,
  takesRefundRequests,
} from '../../../sandbox/sellers/sellers.ts'
import { type SignedTransfer, takePayment } from '../../../sandbox/sellers/take-payment.ts'
import { MAX_BODY_BYTES } from '../problem.ts'
import { refuseQueryCredentials } from '../query-credentials.ts'
import { type Env, type HttpContext, readBody, readRawTarget, requirePlainRequest } from '../request.ts'
import { readSentPayment } from '../x402.ts'
import { conducts, sellHonestly } from './conduct.ts'
import { isEscrowSeller, serveEscrow } from './escrow.ts'
import { makeGoods, orderedWords } from './goods.ts'
import { mppChallenge, mppPayment, mppReceipt } from './mpp.ts'
import { takeRefundRequest } from './refund.ts'
import { parseSignedTransfer } from './signed-transfer.ts'

type Seller = SandboxSeller & { readonly name: SellerName }

export function routeSandboxSellers(
  app: Hono<Env>,
  services: Services,
  requireOwnHost: (c: HttpContext) => void,
): void {
  app.all(`${SELLERS_PATH}/:name`, async (c) => {
    refuseQueryCredentials(readRawTarget(c))
    requirePlainRequest(c)
    requireOwnHost(c)
    const name = c.req.param('name')
    const seller: Seller | undefined = sandboxSellers.find((one) => one.name === name)
    if (seller === undefined)
      throw new Failure('not_found', 'There is no such seller.', { hint: `GET ${SELLERS_PATH} lists all.` })
    if (c.req.method !== seller.method) {
      c.set('allow', seller.method)
      throw new Failure('method_not_allowed', `${c.req.method} is not allowed here; use ${seller.method}.`)
    }
    c.set('body', await readBody(c, MAX_BODY_BYTES))
    return seller.protocol === 'free' ? makeGoods(seller.name, c) : serve(services, seller, c)
  })
  for (const name of refundSellers)
    app.post(refundPath(name), async (c) => {
      refuseQueryCredentials(readRawTarget(c))
      requirePlainRequest(c)
      requireOwnHost(c)
      return takeRefundRequest(services, name, await readBody(c, MAX_BODY_BYTES))
    })
}

function serve(services: Services, seller: Seller, c: HttpContext): Promise<Response> {
  const { chain, clock, log } = services
  // An order that cannot be filled is refused before it is paid.
  const goods = makeGoods(seller.name, c)
  const terms = { ...termsFor(services, seller, c), mimeType: readMimeType(goods) }
  if (isEscrowSeller(seller.name)) return serveEscrow(services, { name: seller.name, terms, goods, c })
  const transfer = readPayment(services, seller, c)
  return (conducts[seller.name] ?? sellHonestly)({
    terms,
    sent: transfer,
    ask: (asked, reason) => challenge(services, seller, asked, reason),
    take: async (due) =>
      transfer === null ? { refused: 'nothing was paid' } : takePayment(chain, due, transfer),
    deliver: ({ transaction }) => {
      goods.headers.set(...buildReceipt(seller, { transaction, terms, payer: transfer?.from, now: clock() }))
      return goods
    },
    hangUp: () => {
      c.env.incoming?.socket.destroy()
      return new Response(null, { status: 502 })
    },
    clientGone: c.req.raw.signal,
    later: (ms, work) => {
      const report = (err: unknown) => log.warn({ err, seller: seller.name }, 'a late settlement failed')
      timers.after(ms, () => void work().catch(report), { isIdle: true })
    },
  })
}

function readMimeType(goods: Response): string {
  return goods.headers.get('content-type')?.split(';')[0] ?? 'application/octet-stream'
}

function termsFor({ chain, settings }: Services, { name, price, about }: Seller, c: HttpContext): Terms {
  const built = buildTerms({
    chain,
    payTo: takesRefundRequests(name) ? sellerAccount(settings.dataKey, name).address : sellerAddress(name),
    price: toMoney('USDC', price),
    origin: settings.origin,
    path: `${SELLERS_PATH}/${name}`,
    description: about,
  })
  const terms = takesRefundRequests(name) ? { ...built, refundUrl: refundPath(name) } : built
  return name === 'metered' ? withPrice(terms, terms.units * BigInt(orderedWords(c))) : terms
}

/** The payment of the seller's protocol, or null. @throws Failure `invalid_request` for a malformed one. */
function readPayment(services: Services, { protocol }: Seller, c: HttpContext): SignedTransfer | null {
  if (protocol === 'mpp') return mppPayment(toMppSeller(services), c.req.header('authorization'))
  const sent = readSentPayment(c)
  if (sent === null || sent.generation !== toGeneration(protocol)) return null
  const { transfer } = decodePayment(sent)
  return transfer === null ? null : parseSignedTransfer(transfer)
}

function challenge(services: Services, { protocol }: Seller, terms: Terms, reason: string): Response {
  if (protocol === 'mpp')
    return Response.json(
      {
        type: 'https://paymentauth.org/problems/payment-required',
        title: 'Payment Required',
        status: 402,
        detail: reason,
      },
      {
        status: 402,
        headers: {
          'Content-Type': 'application/problem+json',
          'WWW-Authenticate': mppChallenge(toMppSeller(services), terms),
        },
      },
    )
  const { v1, v2 } = createChallenge([terms], {})(reason, null)
  const headers = { 'Content-Type': 'application/json' }
  if (toGeneration(protocol) === 1) return new Response(v1, { status: 402, headers })
  const required = Buffer.from(v2).toString('base64')
  return new Response('{}', { status: 402, headers: { ...headers, 'PAYMENT-REQUIRED': required } })
}

function buildReceipt(
  { protocol }: Seller,
  {
    transaction,
    terms,
    payer,
    now,
  }: { transaction: string; terms: Terms; payer: string | undefined; now: Date },
): [name: string, value: string] {
  if (protocol === 'mpp') return ['Payment-Receipt', mppReceipt(transaction, now)]
  const generation = toGeneration(protocol)
  const network = generation === 1 ? terms.network.v1 : terms.network.v2
  const receipt = JSON.stringify({ success: true, transaction, network, payer })
  const name = generation === 1 ? 'X-PAYMENT-RESPONSE' : 'PAYMENT-RESPONSE'
  return [name, Buffer.from(receipt).toString('base64')]
}

function toMppSeller({ chain, clock, settings }: Services) {
  return { key: settings.dataKey, chainId: chain.id, now: clock() }
}

function toGeneration(protocol: Seller['protocol']): 1 | 2 {
  return protocol === 'x402-v1' ? 1 : 2
}
