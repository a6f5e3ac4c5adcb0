/**
 * x402: strangers pay for one delivery, without an account. The only folder that knows `x402-hono` and `@x402/*`; imports
 * the base and the chain port besides. Both generations are challenged at once, each is served by its stock middleware,
 * and both settle over one facilitator. What is sold is delivered before it is settled, so nobody pays for an error; what
 * may have been paid is never asked for again. Payment headers are never logged.
 */
import { getAddress } from 'viem'
import type { Clock } from '../../clock.ts'
import { Failure } from '../../failure.ts'
import type { NewId } from '../../ids.ts'
import type { Log } from '../../log.ts'
import type { Chain } from '../../providers/chain.ts'
import { createAttempts } from './attempt.ts'
import { challengeResponse } from './challenge.ts'
import { createFacilitator } from './facilitator.ts'
import { misfitOf, type PayableRequest, type Payment, paymentOf } from './payment.ts'
import { servePrivately } from './private-facilitator.ts'
import { mountStockMiddlewares } from './stock.ts'
import { type Sale, type Terms, termsOf } from './terms.ts'
import { type Taken, takenOf } from './till.ts'

/** Sells deliveries for payments. */
export interface Paywall {
  /**
   * Answers a request for what is sold: the challenge, or what was bought with `payment` beside it.
   * @param deliver makes what is sold; runs before settlement, and only for a payment that verified.
   * @throws Failure `ambiguous_credentials`, `invalid_request`, `facilitator_unavailable`, `settlement_pending`, and what `deliver` throws.
   */
  sell(context: PayableRequest, deliver: () => Promise<Record<string, unknown>>): Promise<Response>
  close(): Promise<void>
}

/** What a paywall is made of. @property facilitatorUrl null: payments settle over this process's own chain. */
export interface PaywallParts extends Sale {
  readonly chain: Chain
  readonly facilitatorUrl: string | null
  readonly clock: Clock
  readonly newId: NewId
  readonly log: Log
}

/** Opens a paywall for one path. @throws Error where the configuration cannot be sold on. */
export async function createPaywall(parts: PaywallParts): Promise<Paywall> {
  const { chain, facilitatorUrl, clock, newId, log } = parts
  const terms = termsOf(parts)
  const attempts = createAttempts()
  const facilitator = createFacilitator({ signer: chain.signer, terms, url: facilitatorUrl, attempts })
  const listener = await servePrivately(facilitator, attempts)
  const stock = mountStockMiddlewares({ terms, facilitator, listener, attempts })

  const take = async (payment: Payment, deliver: () => Promise<Record<string, unknown>>) => {
    const id = newId('pay', clock())
    const { attempt, response } = await attempts.begin({ id, deliver }, () => stock(payment))
    return { id, taken: takenOf(attempt, payment, response) }
  }
  return {
    sell: async (context, deliver) => {
      const payment = paymentOf(context)
      if (payment === null)
        return challengeResponse(terms, 'X-PAYMENT or PAYMENT-SIGNATURE header is required')
      const misfit = misfitOf(payment, terms)
      if (misfit !== undefined) return challengeResponse(terms, misfit)
      const { id, taken } = await take(payment, deliver)
      const { generation } = payment
      log.info({ paymentId: id, generation, status: taken.status }, 'x402 payment')
      return answerTo(id, taken, terms)
    },
    close: () => listener.close(),
  }
}

function answerTo(id: string, taken: Taken, terms: Terms): Response {
  if (taken.status === 'refused') return challengeResponse(terms, taken.reason)
  if (taken.status === 'pending') throw settlementPending(taken.transaction)
  const { delivered, transaction, network, payer, receipt } = taken
  const payment = { id, transaction, network, amount: terms.price, asset: 'USDC', payer: getAddress(payer) }
  const headers = { [receipt.name]: receipt.value, 'Cache-Control': 'no-store' }
  return Response.json({ ...delivered, payment }, { headers })
}

function settlementPending(transaction: string | null): Failure {
  const where = transaction === null ? 'Whether it was sent is not known' : `It was sent as ${transaction}`
  return new Failure('settlement_pending', `The payment is not settled yet. ${where}.`, {
    retryAfter: 3,
    hint: 'Send the same payment again after Retry-After seconds. Do not sign a new one.',
  })
}
