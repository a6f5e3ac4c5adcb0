/**
 * Pays a purchase: signs its one authorization, keeps it, and presents it until the seller delivers or it is clear that it does
 * not. Whatever the seller says, the outcome is the chain's.
 */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { type PurchaseOutcome, purchaseOutcome } from '../../books/evidence/purchase-outcome.ts'
import type { Clock } from '../../core/base/clock.ts'
import { toJson } from '../../core/base/json.ts'
import type { Log } from '../../core/base/log.ts'
import { seal, unseal } from '../../core/base/seal.ts'
import { timers } from '../../core/base/timers.ts'
import type { Chain, Hex } from '../../providers/chain/port.ts'
import type { PublicAnswer, PublicFetch } from '../../providers/public-fetch.ts'
import type { Database } from '../../storage/database.ts'
import { createAnswerWriter, MAX_ANSWER_BYTES } from './answer.ts'
import { credentialHeader, derivePurchaseNonce, purseKey, signPayment } from './authorization.ts'
import { cancelPayment } from './cancel-payment.ts'
import { sealAnswer } from './delivery.ts'
import { failPurchase, settlePurchase } from './end-purchase.ts'
import { findCaptureEnd, signEscrow } from './escrow.ts'
import { buildGivenUpFailure } from './fund-purchase.ts'
import { readChallengeEnd } from './mpp.ts'
import { type ChannelLimits, type Offer, type OfferChain, readOffers, toOfferChain } from './offers.ts'
import { type Asked, ask, type PurchaseRequest, repeatedChallenge, SELLER_MS } from './request.ts'
import {
  countAttempts,
  findPurchase,
  keepDelivered,
  keepSigned,
  markUndelivered,
  type Purchase,
  type SignedCredential,
  signedPurchase,
  toHex,
} from './store.ts'
import { parseStrangersJson } from './stranger-json.ts'
import { headerValues, type PurchaseTerms } from './terms.ts'
import { allowPermit2, signUpto } from './upto.ts'

export interface PayingParts {
  readonly database: Database
  readonly chain: Chain
  readonly clock: Clock
  readonly log: Log
  readonly fetchPublic: PublicFetch
  readonly settings: {
    readonly mode: 'sandbox' | 'production'
    readonly dataKey: Uint8Array
    readonly channels: ChannelLimits
    readonly answerRoomBytes: number
  }
}

/** How often the same payment is presented in one call. */
export const ATTEMPTS = 3
export const PAUSE_MS = 150
/** Pause before a payment is presented again to a seller whose node does not show the permission yet. */
const PERMISSION_PAUSE_MS = 1_000
/** How long a body may take, once its answer has begun. */
export const BODY_MS = 90_000
/** How long an answer waits for the chain after a delivery. */
const EVIDENCE_MS = 3_000
/** Pauses between two looks at the chain: the first, and the longest. */
const EVIDENCE_POLL_MS = { first: 5, longest: 80 }
/** Outcomes after which it is of no use to present a payment. */
const OVER: ReadonlySet<string> = new Set(['expired', 'canceling', 'canceled'])

const credential = z.object({ name: z.string(), value: z.string() })
export const SEAL = 'purchase credential'

/** The header that pays a purchase. */
export function unsealCredential(
  dataKey: Uint8Array,
  id: string,
  sealed: Uint8Array,
): z.output<typeof credential> {
  return credential.parse(JSON.parse(unseal(dataKey, { purpose: SEAL, owner: id }, sealed)))
}

/** Signs the authorization of decided terms. It must be kept before it leaves the process. */
export async function signTerms(
  { chain, clock, settings }: Pick<PayingParts, 'chain' | 'clock' | 'settings'>,
  terms: PurchaseTerms,
): Promise<SignedCredential> {
  const { purchaseId, sinceBlock } = terms
  const sign = {
    upto: signMaximum,
    'auth-capture': signForEscrow,
    exact: signPrice,
    'batch-settlement': signPrice,
  }
  const { header, validBefore, escrow } = await sign[terms.scheme]({ chain, clock, settings }, terms)
  const text = JSON.stringify(header)
  return {
    validBefore: new Date(validBefore * 1000),
    sinceBlock: BigInt(sinceBlock),
    credential: seal(settings.dataKey, { purpose: SEAL, owner: purchaseId }, text),
    credentialHash: createHash('sha256').update(text).digest('hex'),
    ...(escrow === undefined ? {} : { escrow }),
  }
}

type SigningParts = Pick<PayingParts, 'chain' | 'clock' | 'settings'>

/** A credential. @property validBefore first second in which it is no longer taken, since 1970. */
interface Signed {
  readonly header: z.output<typeof credential>
  readonly validBefore: number
  readonly escrow?: SignedCredential['escrow']
}

/** The terms prescribe the nonce. */
async function signForEscrow(
  { chain, clock, settings }: SigningParts,
  terms: PurchaseTerms,
): Promise<Signed> {
  const { purchaseId, asset, token, payTo, units, offer, seconds } = terms
  const { escrowStore: store, ...signed } = await signEscrow(
    chain,
    purseKey(settings.dataKey, terms.purseId),
    {
      ...{ purchaseId, asset, token, payTo, offer, units: BigInt(units) },
      validBefore: Math.floor(clock().getTime() / 1000) + seconds,
    },
  )
  return { header: signed.header, validBefore: signed.validBefore, escrow: { store, nonce: signed.nonce } }
}

async function signMaximum({ chain, clock, settings }: SigningParts, terms: PurchaseTerms): Promise<Signed> {
  const { token, payTo: to, units, offer, seconds } = terms
  const deadline = Math.floor(clock().getTime() / 1000) + seconds
  const payment = {
    token,
    to,
    maximum: BigInt(units),
    nonce: derivePurchaseNonce(terms),
    deadline: BigInt(deadline),
  }
  const account = purseKey(settings.dataKey, terms.purseId)
  // Permit2 still takes it in the second of its deadline.
  return {
    header: await signUpto(account, payment, { chainId: chain.id, offer }),
    validBefore: deadline + 1,
  }
}

async function signPrice({ chain, clock, settings }: SigningParts, terms: PurchaseTerms): Promise<Signed> {
  const { asset, protocol, offer, seconds } = terms
  const account = purseKey(settings.dataKey, terms.purseId)
  const endOfOffer = protocol === 'mpp' ? readChallengeEnd(offer) : null
  const validBefore = Math.min(
    Math.floor(clock().getTime() / 1000) + seconds,
    Math.floor((endOfOffer?.getTime() ?? Number.POSITIVE_INFINITY) / 1000),
  )
  const message = {
    from: account.address,
    to: terms.payTo,
    value: BigInt(terms.units),
    validAfter: 0n,
    validBefore: BigInt(validBefore),
    nonce: derivePurchaseNonce(terms),
  }
  const signature = await signPayment(chain, account, { asset, message })
  return { header: credentialHeader({ protocol, offer, chainId: chain.id }, message, signature), validBefore }
}

/**
 * Signs the authorization of a purchase whose money is in its purse, and keeps it.
 * @param terms what was decided: never what the row says.
 * @throws Failure `provider_unavailable` when the purchase was given up meanwhile: nothing has left this process.
 */
export async function signPurchase(
  parts: PayingParts,
  purchase: Purchase,
  terms: PurchaseTerms,
): Promise<Purchase> {
  const { database, clock } = parts
  const { id } = purchase
  if (terms.protocol === 'mpp') await requireUnused(parts, purchase)
  if (terms.scheme === 'upto')
    await allowPermit2(parts, purseKey(parts.settings.dataKey, terms.purseId), {
      asset: terms.asset,
      units: BigInt(terms.units),
    })
  const isKept = await keepSigned(database, { id, ...(await signTerms(parts, terms)), at: clock() })
  const kept = await requireCurrent(parts, id)
  // Another call may have signed it, when this one was slow: the same payment, and the same nonce.
  if (isKept || kept.state === 'signed') return kept
  const end = buildGivenUpFailure(purchase.decision_id)
  await markUndelivered(database, {
    id,
    code: end.code,
    failure: 'its key or account was stopped',
    at: clock(),
  })
  throw end
}

/**
 * A seller that prescribes the nonce could name one that was used: an old payment would then prove a new purchase.
 * @throws Failure `seller_failed`; the money is available again.
 */
async function requireUnused(parts: PayingParts, purchase: Purchase): Promise<void> {
  const { status } = await parts.chain.authorizationState({
    token: toHex(purchase.token),
    authorizer: toHex(purchase.payer),
    nonce: toHex(purchase.nonce),
  })
  if (status === 'unused') return
  await failPurchase(parts, purchase, {
    from: 'reserved',
    code: 'seller_failed',
    failure: 'the seller repeated the challenge of an earlier payment',
  })
  throw repeatedChallenge()
}

/**
 * Presents the kept authorization and books what the chain shows. Safe to repeat, also at the same time.
 * @returns the purchase afterwards.
 */
export async function presentPurchase(
  parts: PayingParts,
  purchase: Purchase,
  request: PurchaseRequest,
): Promise<Purchase> {
  const { database, clock } = parts
  const { id } = purchase
  if (purchase.credential === null) return requireCurrent(parts, id)
  const header = unsealCredential(parts.settings.dataKey, id, purchase.credential)
  const deadline = timers.monotonic() + SELLER_MS
  let refusal: Refusal | undefined
  let attempts = 0
  while (attempts < ATTEMPTS) {
    const timeoutMs = Math.ceil(deadline - timers.monotonic())
    if (timeoutMs <= 0) break
    attempts += 1
    const writer = createAnswerWriter(parts, purchase)
    const asked = await ask(request, {
      fetchPublic: parts.fetchPublic,
      loopback: parts.settings.mode === 'sandbox',
      timeoutMs,
      credential: header,
      sink: (head) =>
        isSuccess(head) ? { maxBytes: MAX_ANSWER_BYTES, timeoutMs: BODY_MS, write: writer.write } : null,
    })
    if (asked.status === 'answered' && isSuccess(asked.answer)) {
      const { answer } = asked
      const isWaived = purchase.scheme === 'upto' && isForNothing(answer)
      const keep = async (): Promise<Partial<Purchase> | null> => {
        const { delivered, hash } = await sealAnswer(parts.settings.dataKey, id, { answer, writer })
        const at = clock()
        if (await keepDelivered(database, { id, delivered, hash, attempts, isWaived, at }))
          return { delivered, delivered_hash: hash, delivered_at: at, attempts: purchase.attempts + attempts }
        await writer.discard()
        return null
      }
      const [kept, hash] = await Promise.all([
        keep(),
        // A seller that says itself that it takes nothing has nothing to wait for; the chain decides if it takes something all the same.
        isWaived
          ? cancelPurchase(parts, purchase).then(() => null)
          : awaitOutcome(parts, purchase, findTransactionHint(answer)),
      ])
      // Nothing changes a purchase that is paid and delivered, so it is not read again.
      if (kept !== null && hash !== null && purchase.attempts === 0 && purchase.scheme === 'exact')
        return { ...purchase, ...kept, state: 'settled', transaction_hash: hash, charged: purchase.units }
      return requireCurrent(parts, id)
    }
    // An answer that broke off is none.
    await writer.discard()
    const outcome = await bookOutcome(
      parts,
      purchase,
      asked.status === 'answered' ? findTransactionHint(asked.answer) : null,
    )
    refusal = judgeRefusal(
      { chain: await toOfferChain(parts.chain, parts.settings), now: clock() },
      { asked, purchase },
    )
    if (OVER.has(outcome) || refusal.isFinal) break
    if (attempts < ATTEMPTS) await timers.sleep(refusal.pauseMs ?? PAUSE_MS)
  }
  await countAttempts(database, { id, attempts })
  const { code, failure } = refusal ?? timedOut
  await markUndelivered(database, { id, code, failure, at: clock() })
  await cancelPurchase(parts, await requireCurrent(parts, id))
  return requireCurrent(parts, id)
}

/**
 * Cancels the authorization of an unpaid purchase on the chain, and books what the chain then shows. An authorization that was
 * used first is paid, and booked so. Errors leave it to the job.
 */
export async function cancelPurchase(parts: PayingParts, purchase: Purchase): Promise<void> {
  if (purchase.state !== 'signed' || purchase.scheme === 'batch-settlement') return
  const outcome = await bookOutcome(parts, purchase, null)
  if (outcome !== 'open') return
  await cancelPayment(parts, purchase).catch((err: unknown) =>
    parts.log.warn({ err, purchaseId: purchase.id }, 'the payment of a purchase could not be cancelled'),
  )
  await bookOutcome(parts, purchase, null)
}

/** Books what the chain shows of a signed purchase. @returns unknown when it cannot be read: the money stays held. */
export async function bookOutcome(
  parts: PayingParts,
  purchase: Purchase,
  hint: Hex | null,
): Promise<PurchaseOutcome['status'] | 'unknown'> {
  return (await book(parts, purchase, hint)).status
}

/** @property hash transaction of a payment that is booked; null: none is. */
interface Booked {
  readonly status: PurchaseOutcome['status'] | 'unknown'
  readonly hash: Hex | null
}

async function book(parts: PayingParts, purchase: Purchase, hint: Hex | null): Promise<Booked> {
  const { chain, log } = parts
  const { id } = purchase
  // The end of its channel tells.
  if (purchase.scheme === 'batch-settlement') return { status: 'open', hash: null }
  try {
    const outcome = await purchaseOutcome(chain, signedPurchase(purchase), hint)
    const isForFree = outcome.status === 'settled' && outcome.units === 0n
    if (outcome.status === 'settled' && !isForFree) {
      const isBooked = await settlePurchase(parts, purchase, outcome)
      return { status: 'settled', hash: isBooked ? outcome.transactionHash : null }
    }
    if (isForFree || outcome.status === 'expired' || outcome.status === 'canceled')
      await failPurchase(parts, purchase, {
        from: 'signed',
        code: 'seller_failed',
        failure: 'the seller never took the payment',
      })
    if (outcome.status === 'escrowed') await noteEscrowed(parts, purchase)
    return { status: outcome.status, hash: null }
  } catch (err) {
    log.warn({ err, purchaseId: id }, 'the outcome of a purchase cannot be read yet')
    return { status: 'unknown', hash: null }
  }
}

/** Pauses between two looks at what is in escrow: a tenth of its age, within these, and its end. */
const ESCROW_PAUSE_MS = { shortest: 2_000, longest: 5 * 60_000 }

/** Notes when a payment that is in escrow is looked at next. */
async function noteEscrowed(
  { database, clock }: Pick<PayingParts, 'database' | 'clock'>,
  { id, created_at: createdAt, offer }: Purchase,
): Promise<void> {
  const now = clock().getTime()
  const { shortest, longest } = ESCROW_PAUSE_MS
  const pauseMs = Math.min(Math.max((now - createdAt.getTime()) / 10, shortest), longest)
  const endsAt = findCaptureEnd(toJson(offer)).getTime()
  const at = endsAt > now ? Math.min(now + pauseMs, endsAt) : now + pauseMs
  await database.kysely
    .updateTable('purchase')
    .set({ escrow_look_at: new Date(at) })
    .where('id', '=', id)
    .where('state', '=', 'signed')
    .execute()
}

async function awaitOutcome(parts: PayingParts, purchase: Purchase, hint: Hex | null): Promise<Hex | null> {
  // The end of its channel tells.
  if (purchase.scheme === 'batch-settlement') return null
  const until = timers.monotonic() + EVIDENCE_MS
  for (let pauseMs = EVIDENCE_POLL_MS.first; ; pauseMs = Math.min(pauseMs * 2, EVIDENCE_POLL_MS.longest)) {
    const { status, hash } = await book(parts, purchase, hint)
    if (status !== 'open' || timers.monotonic() > until) return hash
    await timers.sleep(pauseMs)
  }
}

export interface Refusal {
  readonly code: 'seller_failed' | 'terms_not_payable'
  readonly failure: string
  /** Presenting the payment again is of no use. */
  readonly isFinal: boolean
  /** Pause before it is presented again; {@link PAUSE_MS} by default. */
  readonly pauseMs?: number
}

export const timedOut: Refusal = {
  code: 'seller_failed',
  failure: `the seller did not answer within ${SELLER_MS / 1000} seconds`,
  isFinal: true,
}

export function judgeRefusal(
  { chain, now }: { chain: OfferChain; now: Date },
  { asked, purchase }: { asked: Asked; purchase: Purchase },
): Refusal {
  const toSellerFailure = (failure: string, isFinal = false): Refusal => ({
    code: 'seller_failed',
    failure,
    isFinal,
  })
  if (asked.status !== 'answered')
    return toSellerFailure(
      `the seller did not answer the paid request (${asked.status})`,
      asked.status === 'timeout',
    )
  const { answer } = asked
  const { status } = answer
  if (status >= 300 && status < 400)
    return toSellerFailure(`the seller redirected the paid request (${status})`, true)
  // The permission is confirmed before anything is presented: this seller's node is behind.
  if (status === 412 && purchase.scheme === 'upto')
    return {
      ...toSellerFailure('the seller did not see the permission for the payment (412)'),
      pauseMs: PERMISSION_PAUSE_MS,
    }
  if (status !== 402)
    return toSellerFailure(
      `the seller answered the paid request with ${status}`,
      status < 500 && !MAY_PASS.has(status),
    )
  return isOffered(readOffers(chain, answer, now), purchase)
    ? toSellerFailure('the seller did not accept the payment')
    : {
        code: 'terms_not_payable',
        failure: 'the seller asked for other terms once it had the payment',
        isFinal: true,
      }
}

/** Checks whether a seller asks for what a purchase pays. */
export function isOffered(offers: readonly Offer[], purchase: Purchase): boolean {
  return offers.some(
    (offer) =>
      offer.chain === purchase.chain &&
      offer.protocol === purchase.protocol &&
      offer.scheme === purchase.scheme &&
      offer.payTo === purchase.pay_to &&
      offer.token === purchase.token &&
      offer.units === purchase.units,
  )
}

/** Request timeout, too early, too many requests. */
const MAY_PASS = new Set([408, 425, 429])

export function isSuccess({ status }: Pick<PublicAnswer, 'status'>): boolean {
  return status >= 200 && status < 300
}

const receipt = z.looseObject({ transaction: z.string() })
const freeReceipt = z.looseObject({
  success: z.literal(true),
  transaction: z.literal(''),
  amount: z.literal('0').optional(),
})
const reference = z.looseObject({ reference: z.string() })
const HASH = /^0x[0-9a-f]{64}$/i

/** True if the seller says that it settled for nothing: an `upto` payment of which no transaction will tell. */
function isForNothing(answer: Pick<PublicAnswer, 'headers'>): boolean {
  return headerValues(answer, 'payment-response')
    .slice(0, 3)
    .some(
      (header) =>
        freeReceipt.safeParse(parseStrangersJson(Buffer.from(header.slice(0, 8192), 'base64').toString()))
          .success,
    )
}

/** The transaction that the seller names; null without one. It only says where to look. */
function findTransactionHint(answer: Pick<PublicAnswer, 'headers'>): Hex | null {
  for (const name of ['payment-response', 'x-payment-response'])
    for (const header of headerValues(answer, name).slice(0, 3)) {
      const read = receipt.safeParse(
        parseStrangersJson(Buffer.from(header.slice(0, 8192), 'base64').toString()),
      )
      if (read.success && HASH.test(read.data.transaction)) return toHex(read.data.transaction)
    }
  for (const header of headerValues(answer, 'payment-receipt').slice(0, 3)) {
    const read = reference.safeParse(
      parseStrangersJson(Buffer.from(header.slice(0, 8192), 'base64url').toString()),
    )
    if (read.success && HASH.test(read.data.reference)) return toHex(read.data.reference)
  }
  return null
}

export async function requireCurrent(
  { database }: Pick<PayingParts, 'database'>,
  id: string,
): Promise<Purchase> {
  const purchase = await findPurchase(database, { id })
  if (purchase === undefined) throw new Error(`the purchase ${id} has no row`)
  return purchase
}
