/** Buys at the gateway what an origin asks to be paid for, once for each answer that a program gets. */
import { timers } from '../../core/base/timers.ts'
import { rootCause } from '../../core/failures/root-cause.ts'
import { type GatewayAnswer, type GatewayClient, type Json, toRecord } from './gateway.ts'
import { formatMicros, parseMicros } from './micros.ts'
import type { HeldPurchase, PurchaseBook, Wanted } from './open-purchases.ts'
import type { Problem } from './problem.ts'

/**
 * The end of a purchase for one request.
 * - `unpaid`: nothing was paid for it, and the origin's own answer is the best there is.
 * - `bought`: there is an answer. `held` is null where nothing was asked for.
 * - `missing`: it was paid, or may have been, and there is no answer yet. Its repeat goes on with the same purchase.
 */
export type Outcome =
  | { readonly status: 'unpaid'; readonly code: string }
  | { readonly status: 'bought'; readonly purchase: Bought; readonly held: HeldPurchase }
  | { readonly status: 'missing'; readonly problem: Problem }

/** @property id null: it was free. */
export interface Bought {
  readonly id: string | null
  readonly charged: string
  readonly asset: string | null
  readonly response: Json
}

/** The program that waits. @property gone settles when it no longer does. */
export interface Waiting {
  readonly isGone: () => boolean
  readonly gone: Promise<null>
}

export type Buy = (wanted: Wanted, waiting: Waiting) => Promise<Outcome>

/** What the gateway's answers come to. @property isKept the entry stays: the gateway may still pay for it. */
type Verdict =
  | { readonly kind: 'bought'; readonly purchase: Bought }
  | { readonly kind: 'unpaid'; readonly code: string; readonly isKept: boolean }
  | { readonly kind: 'missing'; readonly problem: Problem }

/** Longest that a purchase is tried for one request of a program. */
const TRY_MS = 120_000
/** Calls that the gateway refuses for the moment, one after the other. */
const MAX_REFUSALS = 4
const FIRST_PAUSE_MS = 250
const MAX_PAUSE_MS = 5_000
/** Refusals of a caller, before the gateway looks for an earlier purchase. */
const UNSEEN = ['insufficient_scope', 'account_locked']
const REPEAT = 'Send the same request again: it goes on with the same purchase and does not pay again.'

export function createBuyer({
  gateway,
  book,
  maxMicros,
}: {
  readonly gateway: GatewayClient
  readonly book: PurchaseBook
  readonly maxMicros: bigint
}): Buy {
  const calls = new Map<HeldPurchase, Promise<Verdict>>()
  const startCall = async (held: HeldPurchase, wanted: Wanted): Promise<Verdict> => {
    try {
      const verdict = await callGateway({ gateway, book, maxMicros }, held, wanted)
      if (verdict.kind === 'unpaid' && !verdict.isKept) book.cancel(held)
      return verdict
    } catch (error) {
      // A defect of ours: it may have been paid.
      return loseGateway(rootCause(error))
    } finally {
      calls.delete(held)
    }
  }
  return async (wanted, { isGone, gone }) => {
    const held = await book.hold(wanted, isGone)
    if (typeof held === 'string') return { status: 'unpaid', code: held }
    if (isGone() && held.isNew && held.holders === 1) {
      book.cancel(held)
      return GONE
    }
    // A request that takes over a purchase, or names the same key, waits for the call that is under way. A call whose program
    // has gone goes on, and the purchase is then there for the program's repeat.
    const call = calls.get(held) ?? startCall(held, wanted)
    calls.set(held, call)
    const verdict = await Promise.race([call, gone])
    if (verdict?.kind === 'bought') return { status: 'bought', purchase: verdict.purchase, held }
    book.release(held)
    if (verdict === null) return GONE
    return verdict.kind === 'unpaid'
      ? { status: 'unpaid', code: verdict.code }
      : { status: 'missing', problem: verdict.problem }
  }
}

const GONE = { status: 'unpaid', code: 'gone' } as const

interface Buying {
  readonly gateway: GatewayClient
  readonly book: PurchaseBook
  readonly maxMicros: bigint
}

/** Calls until the end is known or time is up. Every call has the same key, so that repeats are safe. */
async function callGateway(buying: Buying, held: HeldPurchase, wanted: Wanted): Promise<Verdict> {
  const until = timers.monotonic() + TRY_MS
  let mayBePaid = !held.isNew
  let refusals = 0
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
    let isSent = false
    const answer = await buying.gateway
      .post('/api/purchases', writeBody(held, wanted), {
        idempotencyKey: held.purchase.key,
        onSent: () => {
          isSent = true
          held.isNew = false
        },
      })
      .catch((error: unknown) => rootCause(error))
    if (typeof answer === 'string') {
      if (!mayBePaid && !isSent) return { kind: 'unpaid', code: 'gateway_unreachable', isKept: false }
      mayBePaid = true
      if (timers.monotonic() + pauseMs > until || !isSent) return loseGateway(answer)
    } else {
      const verdict = judge(buying, held, answer, mayBePaid)
      if (verdict !== 'again') return verdict
      // A call that did not end may pay later.
      if (answer.status >= 500) mayBePaid = true
      refusals += answer.status === 409 ? 0 : 1
      const isOver = refusals >= MAX_REFUSALS || timers.monotonic() + pauseMs > until
      if (isOver)
        return mayBePaid ? describeRefusal(answer) : { kind: 'unpaid', code: readCode(answer), isKept: false }
      await timers.sleep(Math.min((answer.retryAfter ?? 0) * 1_000, MAX_PAUSE_MS))
    }
    await timers.sleep(pauseMs)
  }
}

function writeBody({ purchase, secrets }: HeldPurchase, { method, url, body, secrets: own }: Wanted): Json {
  const { fields, bearer } = secrets ?? own
  return {
    url,
    method,
    maxAmount: formatMicros(purchase.maxMicros),
    headers: { ...purchase.fields, ...fields },
    ...(bearer === null ? {} : { authorization: { type: 'bearer', token: bearer } }),
    ...(body === null || body.length === 0 ? {} : writeContent(body)),
  }
}

function writeContent(body: Buffer): Json {
  try {
    return { body: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body) }
  } catch {
    return { bodyBase64: body.toString('base64') }
  }
}

function judge(
  { book, maxMicros }: Buying,
  held: HeldPurchase,
  { status, body }: Pick<GatewayAnswer, 'status' | 'body'>,
  mayBePaid: boolean,
): Verdict | 'again' {
  if (status === 200) return judgePurchase(book, held, body)
  const code = readCode({ status, body })
  switch (code) {
    case 'idempotency_in_progress':
      return 'again'
    case 'idempotency_key_reused':
      return { kind: 'unpaid', code, isKept: true }
    // The gateway itself runs the call once the owner has approved it.
    case 'approval_required':
      return { kind: 'unpaid', code, isKept: true }
    // Found before anything is reserved.
    case 'rates_unavailable':
    case 'screening_unavailable':
      return { kind: 'unpaid', code, isKept: mayBePaid }
    case 'terms_not_payable':
      return { kind: 'unpaid', code: explainTerms(body, held, maxMicros), isKept: false }
  }
  if (status === 429 || status === 503 || (status >= 500 && body.code === undefined)) return 'again'
  if (code === 'internal') return { kind: 'unpaid', code, isKept: true }
  // A key that lost its right meanwhile cannot ask for what was paid before.
  const isRefusedUnseen = status === 401 || UNSEEN.includes(code)
  return { kind: 'unpaid', code, isKept: isRefusedUnseen && mayBePaid }
}

function judgePurchase(book: PurchaseBook, held: HeldPurchase, body: Json): Verdict {
  const { status, purchaseId, asset, response } = body
  const charged = typeof body.charged === 'string' ? body.charged : '0'
  const id = typeof purchaseId === 'string' ? purchaseId : null
  const chargedMicros = parseMicros(charged)
  const isKnown = status !== 'settlement_pending' && chargedMicros !== null
  if (isKnown && held.purchase.chargedMicros !== chargedMicros) book.update(held, { chargedMicros })
  // It was free for the gateway, which has not kept all of it.
  if (status === 'free' && toRecord(response).truncated === true)
    return { kind: 'unpaid', code: 'answer_too_long', isKept: false }
  const hasAnswer = (status === 'delivered' || status === 'free') && typeof response === 'object'
  if (hasAnswer && response !== null)
    return {
      kind: 'bought',
      purchase: {
        id,
        charged,
        asset: typeof asset === 'string' ? asset : null,
        response: toRecord(response),
      },
    }
  const isPending = status === 'settlement_pending'
  return {
    kind: 'missing',
    problem: {
      code: isPending ? 'settlement_pending' : 'undelivered',
      detail: isPending
        ? 'The payment was presented to the seller and is not settled yet.'
        : `${charged} ${String(asset)} was paid, and the seller has not delivered.`,
      hint:
        status === 'delivered'
          ? 'The answer is no longer kept. For another one, send the request with a new Bursar-Idempotency-Key; that pays again.'
          : REPEAT,
      purchaseId: id,
      charged,
      asset: asset ?? null,
      lastFailure: body.lastFailure ?? null,
      expiresAt: body.expiresAt ?? null,
    },
  }
}

/** Tells apart which of both limits a price exceeds. */
function explainTerms(body: Json, { purchase }: HeldPurchase, maxMicros: bigint): string {
  const prices = (Array.isArray(body.offers) ? body.offers : []).flatMap((offer) => {
    const { asset, amount, reason, payable } = toRecord(offer)
    // An offer that only its price excludes has no reason of its own.
    const isDear = asset === 'USDC' && (payable === true || reason === 'over_max_amount')
    const price = isDear && typeof amount === 'string' ? parseMicros(amount) : null
    return price === null ? [] : [price]
  })
  const isOver = prices.length > 0 && prices.every((price) => price > purchase.maxMicros)
  if (!isOver) return 'terms_not_payable'
  return prices.some((price) => price <= maxMicros) ? 'budget' : 'max_price'
}

function loseGateway(reason: string): Verdict {
  return {
    kind: 'missing',
    problem: {
      code: 'gateway_unreachable',
      detail: `The gateway did not say how the purchase ended: ${reason}.`,
      hint: REPEAT,
    },
  }
}

function readCode({ status, body }: Pick<GatewayAnswer, 'status' | 'body'>): string {
  return typeof body.code === 'string' ? body.code : `http_${status}`
}

function describeRefusal({ status, body }: GatewayAnswer): Verdict {
  return {
    kind: 'missing',
    problem: {
      code: readCode({ status, body }),
      detail: typeof body.detail === 'string' ? body.detail : `The gateway answered ${status}.`,
      hint: REPEAT,
    },
  }
}
