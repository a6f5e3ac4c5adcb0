/**
 * Mounts the stock middlewares, each on its own app with one static path and one payment header, so that the client's
 * Host, User-Agent or path cannot influence them.
 */
import type { FacilitatorClient } from '@x402/core/server'
import type { SchemeNetworkServer } from '@x402/core/types'
import { ExactEvmScheme } from '@x402/evm/exact/server'
import { UptoEvmScheme } from '@x402/evm/upto/server'
import {
  paymentMiddleware as paymentMiddlewareV2,
  setSettlementOverrides,
  x402ResourceServer,
} from '@x402/hono'
import { type Handler, Hono } from 'hono'
import { paymentMiddleware as paymentMiddlewareV1 } from 'x402-hono'
import { assetDecimals } from '../../../core/money/money.ts'
import type { Attempt, Attempts } from './attempt.ts'
import { readChannelAnswer } from './channels.ts'
import { encodePayment, type Payment } from './payment.ts'
import type { PrivateFacilitator } from './private-facilitator.ts'
import { requirementV1, requirementV2, type Terms, withPrice } from './terms.ts'

/** Runs a payment through its generation's middleware: verify, deliver, settle. */
export type StockMiddlewares = (payment: Payment) => Promise<Response>

/** Mounts both middlewares around the delivery of the current attempt. */
export function mountStockMiddlewares(parts: {
  readonly terms: Terms
  readonly facilitator: FacilitatorClient
  readonly listener: PrivateFacilitator
  readonly attempts: Attempts
  /** Null: no vouchers are taken. */
  readonly channels: SchemeNetworkServer | null
}): StockMiddlewares {
  const { terms, attempts } = parts
  const deliver = createDelivery(attempts)
  const first = requirementV1(terms)
  const apps = {
    // Payments of version 1 do not match the terms of a chain without it, so they never come here.
    1:
      first === null ? null : new Hono().use(terms.path, middlewareV1(parts, first)).get(terms.path, deliver),
    2: new Hono().use(terms.path, middlewareV2(parts)).get(terms.path, deliver),
  }
  const metered =
    terms.uptoFacilitator === null
      ? null
      : new Hono().use(terms.path, middlewareUpto(parts)).get(terms.path, createMeteredDelivery(attempts))
  const byChannel =
    parts.channels === null
      ? null
      : new Hono().use(terms.path, middlewareChannels(parts, parts.channels)).get(terms.path, deliver)
  return async (payment) => {
    const { agreed } = attempts.current()
    const encoded = encodePayment(payment, withPrice(terms, agreed))
    const app =
      payment.channel !== null ? byChannel : payment.permit === null ? apps[payment.generation] : metered
    if (app === null) throw new Error('A payment came in by a form that its chain does not have.')
    const response = await app.fetch(new Request(terms.resource, { headers: { [payment.header]: encoded } }))
    if (payment.channel !== null) noteChannelAnswer(attempts.current(), response)
    return response
  }
}

function middlewareV1(
  { terms, listener }: { readonly terms: Terms; readonly listener: PrivateFacilitator },
  { network, description, maxTimeoutSeconds, mimeType }: NonNullable<ReturnType<typeof requirementV1>>,
) {
  const price = {
    amount: terms.units.toString(),
    asset: { address: terms.asset, decimals: assetDecimals.USDC, eip712: terms.network.domain },
  }
  const config = { description, maxTimeoutSeconds, mimeType, resource: terms.resource }
  return paymentMiddlewareV1(
    terms.payTo,
    { [`GET ${terms.path}`]: { price, network, config } },
    {
      url: listener.url,
      createAuthHeaders: async () => {
        const headers = listener.headers()
        return { verify: headers, settle: headers, supported: headers }
      },
    },
  )
}

function middlewareV2({
  terms,
  facilitator,
  attempts,
}: {
  readonly terms: Terms
  readonly facilitator: FacilitatorClient
  readonly attempts: Attempts
}) {
  const { scheme, network, asset, payTo, maxTimeoutSeconds, extra } = requirementV2(terms)
  const server = new x402ResourceServer(facilitator).register(network, new ExactEvmScheme())
  // The attempt's price may come from a quote lock.
  const price = () => ({ asset, amount: attempts.current().units.toString(), extra })
  const accepts = { scheme, network, payTo, maxTimeoutSeconds, price }
  const { resource, description, mimeType } = terms
  const route = { accepts, resource, description, mimeType }
  return paymentMiddlewareV2({ [`GET ${terms.path}`]: route }, server)
}

function middlewareUpto({
  terms,
  facilitator,
  attempts,
}: {
  readonly terms: Terms
  readonly facilitator: FacilitatorClient
  readonly attempts: Attempts
}) {
  const { network, asset, payTo, maxTimeoutSeconds, extra } = requirementV2(terms)
  const server = new x402ResourceServer(facilitator).register(network, new UptoEvmScheme())
  // The maximum may come from a quote lock.
  const price = () => ({ asset, amount: attempts.current().agreed.toString(), extra })
  const accepts = { scheme: 'upto', network, payTo, maxTimeoutSeconds, price }
  const { resource, description, mimeType } = terms
  return paymentMiddlewareV2({ [`GET ${terms.path}`]: { accepts, resource, description, mimeType } }, server)
}

function middlewareChannels(
  {
    terms,
    facilitator,
    attempts,
  }: { readonly terms: Terms; readonly facilitator: FacilitatorClient; readonly attempts: Attempts },
  scheme: SchemeNetworkServer,
) {
  const { network, asset, payTo, maxTimeoutSeconds, extra } = requirementV2(terms)
  const server = new x402ResourceServer(facilitator).register(network, scheme)
  // The price may come from a quote lock.
  const price = () => ({ asset, amount: attempts.current().units.toString(), extra })
  const accepts = { scheme: 'batch-settlement', network, payTo, maxTimeoutSeconds, price }
  const { resource, description, mimeType } = terms
  return paymentMiddlewareV2({ [`GET ${terms.path}`]: { accepts, resource, description, mimeType } }, server)
}

/** A voucher is verified and charged without the facilitator, which records the attempts by other schemes. */
function noteChannelAnswer(attempt: Attempt, response: Response): void {
  const answer = readChannelAnswer(response)
  if (answer.status === 'paid') {
    attempt.settlement ??= answer.settlement
    return
  }
  const { reason, correction } = answer
  attempt.correction = correction
  if (reason !== undefined) attempt.verification = { isValid: false, invalidReason: reason }
}

/** Delivers, and says how much of the maximum is taken. */
function createMeteredDelivery(attempts: Attempts): Handler {
  const deliver = createDelivery(attempts)
  return (c, next) => {
    setSettlementOverrides(c, { amount: attempts.current().units.toString() })
    return deliver(c, next)
  }
}

/** The middlewares settle only if this responds with a status below 400. */
function createDelivery(attempts: Attempts): Handler {
  return async (c) => {
    const attempt = attempts.current()
    try {
      attempt.delivered = await attempt.deliver()
      return c.json({})
    } catch (thrown) {
      attempt.deliveryError = { thrown }
      return c.json({}, 500)
    }
  }
}
