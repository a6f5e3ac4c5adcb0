/**
 * Pays a purchase: signs its one authorization, keeps it, and presents it until the seller delivers or it is clear that it does
 * not. Whatever the seller says, the outcome is the chain's.
 */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { type PurchaseOutcome, purchaseOutcome } from '../../books/evidence/purchase-outcome.ts'
import type { Clock } from '../../core/base/clock.ts'
import type { Log } from '../../core/base/log.ts'
import { seal, unseal } from '../../core/base/seal.ts'
import { timers } from '../../core/base/timers.ts'
import type { Chain, Hex } from '../../providers/chain/port.ts'
import type { PublicAnswer, PublicFetch } from '../../providers/public-fetch.ts'
import type { Database } from '../../storage/database.ts'
import {
  cancelAuthorization,
  credentialHeader,
  derivePurchaseNonce,
  purseKey,
  signPayment,
} from './authorization.ts'
import { sealAnswer } from './delivery.ts'
import { failPurchase, settlePurchase } from './end-purchase.ts'
import { buildGivenUpFailure } from './fund-purchase.ts'
import { readChallengeEnd } from './mpp.ts'
import { readOffers } from './offers.ts'
import { type Asked, ask, type PurchaseRequest, repeatedChallenge, SELLER_MS } from './request.ts'
import {
  countAttempts,
  findPurchase,
  keepDelivered,
  keepSigned,
  markUndelivered,
  type Purchase,
  parseKind,
  type SignedCredential,
  signedPurchase,
  toHex,
} from './store.ts'
import { parseStrangersJson } from './stranger-json.ts'
import { headerValues, type PurchaseTerms } from './terms.ts'

export interface PayingParts {
  readonly database: Database
  readonly chain: Chain
  readonly clock: Clock
  readonly log: Log
  readonly fetchPublic: PublicFetch
  readonly settings: { readonly mode: 'sandbox' | 'production'; readonly dataKey: Uint8Array }
}

/** How often the same payment is presented in one call. */
const ATTEMPTS = 3
const PAUSE_MS = 150
/** How long an answer waits for the chain after a delivery. */
const EVIDENCE_MS = 3_000
/** Pauses between two looks at the chain: the first, and the longest. */
const EVIDENCE_POLL_MS = { first: 5, longest: 80 }
/** Outcomes after which it is of no use to present a payment. */
const OVER: ReadonlySet<string> = new Set(['expired', 'canceling', 'canceled'])

const credential = z.object({ name: z.string(), value: z.string() })
const SEAL = 'purchase credential'

/** Signs the authorization of decided terms. It must be kept before it leaves the process. */
export async function signTerms(
  { chain, clock, settings }: Pick<PayingParts, 'chain' | 'clock' | 'settings'>,
  terms: PurchaseTerms,
): Promise<SignedCredential> {
  const { purchaseId, asset, protocol, offer, seconds, sinceBlock } = terms
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
  const header = JSON.stringify(credentialHeader({ protocol, offer, chainId: chain.id }, message, signature))
  return {
    validBefore: new Date(validBefore * 1000),
    sinceBlock: BigInt(sinceBlock),
    credential: seal(settings.dataKey, { purpose: SEAL, owner: purchaseId }, header),
    credentialHash: createHash('sha256').update(header).digest('hex'),
  }
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
  const header = credential.parse(
    JSON.parse(unseal(parts.settings.dataKey, { purpose: SEAL, owner: id }, purchase.credential)),
  )
  const deadline = timers.monotonic() + SELLER_MS
  let refusal: Refusal | undefined
  let attempts = 0
  while (attempts < ATTEMPTS) {
    const timeoutMs = Math.ceil(deadline - timers.monotonic())
    if (timeoutMs <= 0) break
    attempts += 1
    const asked = await ask(request, {
      fetchPublic: parts.fetchPublic,
      loopback: parts.settings.mode === 'sandbox',
      timeoutMs,
      credential: header,
    })
    if (asked.status === 'answered' && isSuccess(asked.answer)) {
      const { delivered, hash } = sealAnswer(parts.settings.dataKey, id, asked.answer)
      await Promise.all([
        keepDelivered(database, { id, delivered, hash, attempts, at: clock() }),
        awaitOutcome(parts, purchase, findTransactionHint(asked.answer)),
      ])
      return requireCurrent(parts, id)
    }
    const outcome = await bookOutcome(
      parts,
      purchase,
      asked.status === 'answered' ? findTransactionHint(asked.answer) : null,
    )
    refusal = judge(parts, { asked, purchase })
    if (OVER.has(outcome) || refusal.isFinal) break
    if (attempts < ATTEMPTS) await timers.sleep(PAUSE_MS)
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
  if (purchase.state !== 'signed') return
  const { chain, log, settings } = parts
  const outcome = await bookOutcome(parts, purchase, null)
  if (outcome !== 'open') return
  const account = purseKey(settings.dataKey, purchase.purse_id)
  await cancelAuthorization(chain, account, {
    asset: parseKind(purchase).asset,
    nonce: toHex(purchase.nonce),
  }).catch((err: unknown) =>
    log.warn({ err, purchaseId: purchase.id }, 'the authorization of a purchase could not be cancelled'),
  )
  await bookOutcome(parts, purchase, null)
}

/** Books what the chain shows of a signed purchase. @returns unknown when it cannot be read: the money stays held. */
export async function bookOutcome(
  parts: PayingParts,
  purchase: Purchase,
  hint: Hex | null,
): Promise<PurchaseOutcome['status'] | 'unknown'> {
  const { chain, log } = parts
  const { id } = purchase
  try {
    const outcome = await purchaseOutcome(chain, signedPurchase(purchase), hint)
    if (outcome.status === 'settled') await settlePurchase(parts, purchase, outcome.transactionHash)
    if (outcome.status === 'expired' || outcome.status === 'canceled')
      await failPurchase(parts, purchase, {
        from: 'signed',
        code: 'seller_failed',
        failure: 'the seller never took the payment',
      })
    return outcome.status
  } catch (err) {
    log.warn({ err, purchaseId: id }, 'the outcome of a purchase cannot be read yet')
    return 'unknown'
  }
}

async function awaitOutcome(parts: PayingParts, purchase: Purchase, hint: Hex | null): Promise<void> {
  const until = timers.monotonic() + EVIDENCE_MS
  for (let pauseMs = EVIDENCE_POLL_MS.first; ; pauseMs = Math.min(pauseMs * 2, EVIDENCE_POLL_MS.longest)) {
    const outcome = await bookOutcome(parts, purchase, hint)
    if (outcome !== 'open' || timers.monotonic() > until) return
    await timers.sleep(pauseMs)
  }
}

interface Refusal {
  readonly code: 'seller_failed' | 'terms_not_payable'
  readonly failure: string
  /** Presenting the payment again is of no use. */
  readonly isFinal: boolean
}

const timedOut: Refusal = {
  code: 'seller_failed',
  failure: `the seller did not answer within ${SELLER_MS / 1000} seconds`,
  isFinal: true,
}

function judge(
  { chain, clock }: Pick<PayingParts, 'chain' | 'clock'>,
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
  if (status !== 402)
    return toSellerFailure(
      `the seller answered the paid request with ${status}`,
      status < 500 && !MAY_PASS.has(status),
    )
  const isSame = readOffers(chain, answer, clock()).some(
    (offer) =>
      offer.protocol === purchase.protocol &&
      offer.payTo === purchase.pay_to &&
      offer.token === purchase.token &&
      offer.units === purchase.units,
  )
  return isSame
    ? toSellerFailure('the seller did not accept the payment')
    : {
        code: 'terms_not_payable',
        failure: 'the seller asked for other terms once it had the payment',
        isFinal: true,
      }
}

/** Request timeout, too early, too many requests. */
const MAY_PASS = new Set([408, 425, 429])

export function isSuccess({ status }: Pick<PublicAnswer, 'status'>): boolean {
  return status >= 200 && status < 300
}

const receipt = z.looseObject({ transaction: z.string() })
const reference = z.looseObject({ reference: z.string() })
const HASH = /^0x[0-9a-f]{64}$/i

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

async function requireCurrent({ database }: Pick<PayingParts, 'database'>, id: string): Promise<Purchase> {
  const purchase = await findPurchase(database, { id })
  if (purchase === undefined) throw new Error(`the purchase ${id} has no row`)
  return purchase
}
