/** How the sandbox's sellers treat a request: honestly, or with one of the tricks that buyers must survive. */
import { timers } from '../../../core/base/timers.ts'
import { type Terms, withPrice } from '../../../rails/selling/x402/terms.ts'
import { type SellerName, sellerAddress } from '../../../sandbox/sellers/sellers.ts'
import type { TakenPayment } from '../../../sandbox/sellers/take-payment.ts'

type Paid = Extract<TakenPayment, { readonly transaction: string }>

/** A request to a seller. @property sent the signed payment's payee and amount; null: nothing was paid. */
export interface Visit {
  readonly terms: Terms
  readonly sent: { readonly to: string; readonly units: bigint } | null
  /** A 402 that asks for these terms. */
  ask(terms: Terms, reason: string): Response
  take(terms: Terms): Promise<TakenPayment>
  deliver(paid: Paid): Response
  /** Closes the connection without an answer. */
  hangUp(): Response
  /** Ends when the client has gone. */
  readonly clientGone: AbortSignal
  /** Runs work after the answer. */
  later(ms: number, work: () => Promise<unknown>): void
}

export type Conduct = (visit: Visit) => Promise<Response>

const REQUIRED = 'payment required'
/** Longer than buyers wait. */
const SILENCE_MS = 45_000
const LATE_MS = 3_000
const CHUNK = new Uint8Array(64 * 1024).fill(0x2e)
/** A limit all the same, for clients that never stop reading. */
const MAX_CHUNKS = 4_096

/** Takes the payment, then answers. */
const sell =
  (
    answer: (visit: Visit, paid: Paid) => Response | Promise<Response>,
    change: (terms: Terms) => Terms = (terms) => terms,
  ): Conduct =>
  async (visit) => {
    const terms = change(visit.terms)
    if (visit.sent === null) return visit.ask(terms, REQUIRED)
    const taken = await visit.take(terms)
    return 'refused' in taken ? visit.ask(terms, taken.refused) : answer(visit, taken)
  }

export const sellHonestly = sell((visit, paid) => visit.deliver(paid))

/** Asks for other terms as soon as a payment for the first ones was signed. */
const switchTo =
  (change: (terms: Terms) => Terms): Conduct =>
  async (visit) => {
    const second = change(visit.terms)
    const isSecond =
      visit.sent?.units === second.units && visit.sent.to.toLowerCase() === second.payTo.toLowerCase()
    if (isSecond) return sellHonestly({ ...visit, terms: second })
    return visit.ask(visit.sent === null ? visit.terms : second, REQUIRED)
  }

/** The sellers that are not simply honest. */
export const conducts: Partial<Record<SellerName, Conduct>> = {
  stumbling: sell((visit, paid) => (paid.isRepeated ? visit.deliver(paid) : buildFailedResponse(504))),
  'times-out': sell(() => buildFailedResponse(504)),
  'charges-again': sell((visit) => visit.ask(visit.terms, REQUIRED)),
  'never-delivers': sell(async ({ clientGone, hangUp }) => {
    await timers.sleep(SILENCE_MS, { signal: clientGone, isIdle: true }).catch(() => {})
    return hangUp()
  }),
  'raises-price': switchTo((terms) => withPrice(terms, terms.units * 5n)),
  'changes-payee': switchTo((terms) => ({ ...terms, payTo: sellerAddress('a second payee') })),
  'redirects-inward': async (visit) =>
    visit.sent === null
      ? visit.ask(visit.terms, REQUIRED)
      : new Response(null, {
          status: 302,
          headers: { Location: 'http://169.254.169.254/latest/meta-data/' },
        }),
  endless: sell(() => new Response(endlessBytes())),
  // The token is no contract, so nothing could be settled.
  'fake-usdc': async ({ terms, ask }) => ask({ ...terms, asset: sellerAddress('a token') }, REQUIRED),
  'settles-late': async (visit) => {
    if (visit.sent === null) return visit.ask(visit.terms, REQUIRED)
    visit.later(LATE_MS, () => visit.take(visit.terms))
    return buildFailedResponse(504)
  },
  refunds: sell(() => buildFailedResponse(500)),
  'refuses-refund': sell(() => buildFailedResponse(500)),
  'hangs-up': sell(({ hangUp }) => hangUp()),
  'other-resource': sell(
    (visit, paid) => visit.deliver(paid),
    (terms) => ({ ...terms, resource: 'https://api.example.com/premium' }),
  ),
}

function buildFailedResponse(status: number): Response {
  return Response.json({ error: 'try again' }, { status })
}

function endlessBytes(): ReadableStream<Uint8Array> {
  let chunks = 0
  return new ReadableStream({
    pull(stream) {
      chunks += 1
      if (chunks > MAX_CHUNKS) stream.close()
      else stream.enqueue(CHUNK)
    },
  })
}
