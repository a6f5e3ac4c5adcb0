/**
 * Pays a purchase by a voucher of its channel. One voucher of a channel is presented at a time, over all processes, and the same one until
 * the seller has answered. Nothing is sent to the chain, but for the deposit of a new channel.
 */
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { external } from '../../../books/ledger/accounts.ts'
import type { Json } from '../../../core/base/json.ts'
import { seal } from '../../../core/base/seal.ts'
import { timers } from '../../../core/base/timers.ts'
import { Failure } from '../../../core/failures/failure.ts'
import { PlanAgain } from '../../../core/failures/plan-again.ts'
import { type ChannelConfig, hashChannel } from '../../../providers/payment-channels.ts'
import type { PublicAnswer } from '../../../providers/public-fetch.ts'
import { createAnswerWriter, MAX_ANSWER_BYTES } from '../answer.ts'
import { sealAnswer } from '../delivery.ts'
import { failPurchase } from '../end-purchase.ts'
import { buildGivenUpFailure } from '../fund-purchase.ts'
import { readOffers, toOfferChain } from '../offers.ts'
import {
  ATTEMPTS,
  BODY_MS,
  isSuccess,
  judgeRefusal,
  PAUSE_MS,
  type PayingParts,
  type Refusal,
  requireCurrent,
  SEAL,
  timedOut,
  unsealCredential,
} from '../pay-purchase.ts'
import { ask, type PurchaseRequest, SELLER_MS } from '../request.ts'
import { countAttempts, keepDelivered, type Purchase, type SignedCredential } from '../store.ts'
import type { PurchaseTerms } from '../terms.ts'
import { buildConfig, readWishes } from './channel.ts'
import {
  beginClosing,
  claimChannel,
  deliverByVoucher,
  findChannel,
  findUnanswered,
  keepVoucher,
  noteRefusal,
  setAside,
  settleVoucher,
} from './channel-store.ts'
import { bringDeposit } from './deposit.ts'
import { distrustTerms, type KnownCall, rememberTerms } from './known-terms.ts'
import { readCharged, signVoucher } from './voucher.ts'

/** How long a purchase waits for those before it. */
const TURN_MS = 20_000
/** Pauses between two looks: the first, and the longest. */
const TURN_POLL_MS = { first: 3, longest: 100 }

/** @property fund moves the money of the purchase to its channel. @property isTaken its voucher is signed, and the channel is its own. */
export interface VoucherPayment {
  readonly purchase: Purchase
  /** What was decided: never what the row says. */
  readonly terms: PurchaseTerms
  readonly request: PurchaseRequest
  readonly isTaken: boolean
  /** `now`: the seller was asked by this call; `earlier`: this is a repeated call; otherwise it was not asked. */
  readonly asked: 'now' | 'earlier' | UnaskedCall
  readonly fund: () => Promise<void>
}

/** A call by known terms. @property maxUnits highest price. @property call its idempotency; null: it has none. */
interface UnaskedCall {
  readonly maxUnits: bigint
  readonly call: { readonly principal: string; readonly key: string } | null
}

/** A voucher that may leave the process. @property isNew it was never presented. */
interface Voucher {
  readonly cumulative: bigint
  readonly isNew: boolean
  readonly header: { readonly name: string; readonly value: string }
}

/**
 * Safe to repeat, also at the same time. @returns the purchase afterwards. @throws Failure when nothing was signed.
 * @throws PlanAgain when the seller wants other terms than those that were known.
 */
export async function payByVoucher(parts: PayingParts, payment: VoucherPayment): Promise<Purchase> {
  const { purchase, request, isTaken, fund } = payment
  if (purchase.state === 'settled') return askAgain(parts, payment)
  if (purchase.state === 'reserved') await fund()
  const { database, clock } = parts
  const { id } = purchase
  const deadline = timers.monotonic() + SELLER_MS
  let voucher = isTaken ? { ...readVoucher(parts, purchase), isNew: true } : null
  let refusal: Refusal = timedOut
  let attempts = 0
  while (attempts < ATTEMPTS) {
    voucher ??= await nextVoucher(parts, payment)
    if (voucher === null) return requireCurrent(parts, id)
    const timeoutMs = Math.ceil(deadline - timers.monotonic())
    if (timeoutMs <= 0) break
    attempts += 1
    const { asked, writer } = await present(parts, { purchase, request, timeoutMs, header: voucher.header })
    if (asked.status === 'answered' && isSuccess(asked.answer)) {
      const delivered = await deliver(parts, { purchase, voucher, answer: asked.answer, writer, attempts })
      if (payment.asked === 'now' && delivered.state === 'settled')
        rememberTerms(database, toCall(payment), payment.terms)
      return delivered
    }
    await writer.discard()
    refusal = judgeRefusal(
      { chain: await toOfferChain(parts.chain, parts.settings), now: clock() },
      { asked, purchase },
    )
    const charged =
      asked.status === 'answered' ? readCharged(asked.answer, channelHash(parts, payment)) : null
    const said = charged === null ? 'nothing' : await heed(parts, { purchase, voucher, charged })
    if (attempts === 1 && voucher.isNew && asked.status === 'answered' && !OTHERWISE.has(said))
      await planAgain(parts, payment, asked.answer)
    voucher = { ...voucher, isNew: false }
    if (said === 'paid') refusal = takenAlready
    if (said === 'paid' || said === 'strange') break
    if (said === 'others') voucher = null
    else if (refusal.isFinal) break
    else if (attempts < ATTEMPTS) await timers.sleep(refusal.pauseMs ?? PAUSE_MS)
  }
  if (typeof payment.asked !== 'string') distrustTerms(database, toCall(payment))
  await countAttempts(database, { id, attempts })
  await noteRefusal(database, { id, code: refusal.code, failure: refusal.failure, at: clock() })
  return requireCurrent(parts, id)
}

/** What a seller may say of a voucher that it does not refuse for its terms. */
const OTHERWISE: ReadonlySet<string> = new Set(['paid', 'others', 'strange'])

/**
 * Sets a purchase aside whose seller was not asked first, and now wants other terms for the same channel. Of the two vouchers, both for
 * all that was bought before, at most the higher can be claimed: together they take no more than the caller agreed to.
 * @throws PlanAgain if it was.
 */
async function planAgain(parts: PayingParts, payment: VoucherPayment, answer: PublicAnswer): Promise<void> {
  const { purchase, terms, asked } = payment
  if (typeof asked === 'string' || answer.status !== 402 || purchase.attempts > 0) return
  const { database, chain, clock, settings } = parts
  const offered = readOffers(await toOfferChain(chain, settings), answer, clock()).find(
    ({ scheme, reason, token, payTo, units, offer }) =>
      scheme === 'batch-settlement' &&
      reason === null &&
      token === terms.token &&
      payTo === terms.payTo &&
      units <= asked.maxUnits &&
      isSameChannel(offer, terms.offer),
  )
  if (offered === undefined || isDeepStrictEqual(offered.offer, terms.offer)) return
  distrustTerms(database, toCall(payment))
  if (await setAside(database, { id: purchase.id, call: asked.call, at: clock() }))
    throw new PlanAgain(terms.purseId)
}

function isSameChannel(one: Json, other: Json): boolean {
  const [wishes, before] = [readWishes(one), readWishes(other)]
  return (
    wishes?.receiverAuthorizer === before?.receiverAuthorizer &&
    wishes?.withdrawDelay === before?.withdrawDelay
  )
}

function toCall({ purchase, terms }: Pick<VoucherPayment, 'purchase' | 'terms'>): KnownCall {
  const { asset, method, url } = terms
  return { keyId: purchase.key_id ?? '', chain: purchase.chain, asset, method, url }
}

const takenAlready: Refusal = {
  code: 'seller_failed',
  failure: 'the seller says that it had taken the payment',
  isFinal: true,
}

async function present(
  parts: PayingParts,
  {
    purchase,
    request,
    timeoutMs,
    header,
  }: { purchase: Purchase; request: PurchaseRequest; timeoutMs: number; header: Voucher['header'] },
) {
  const writer = createAnswerWriter(parts, purchase)
  const asked = await ask(request, {
    fetchPublic: parts.fetchPublic,
    loopback: parts.settings.mode === 'sandbox',
    timeoutMs,
    credential: header,
    sink: (head) =>
      isSuccess(head) ? { maxBytes: MAX_ANSWER_BYTES, timeoutMs: BODY_MS, write: writer.write } : null,
  })
  return { asked, writer }
}

/** Keeps what came, and books the voucher that brought it. */
async function deliver(
  parts: PayingParts,
  {
    purchase,
    voucher,
    answer,
    writer,
    attempts,
  }: {
    purchase: Purchase
    voucher: Voucher
    answer: PublicAnswer
    writer: ReturnType<typeof createAnswerWriter>
    attempts: number
  },
): Promise<Purchase> {
  const { database, chain, clock, settings, log } = parts
  const { id } = purchase
  const { delivered, hash } = await sealAnswer(settings.dataKey, id, { answer, writer })
  const at = clock()
  const { verdict, isKept } = await deliverByVoucher(database, {
    ...{ id, cumulative: voucher.cumulative, destination: external(chain.name) },
    ...{ delivered, hash, attempts, at },
  })
  if (verdict === 'stale')
    log.error({ purchaseId: id }, 'a seller took a voucher that is not the next one of its channel')
  if (!isKept) await writer.discard()
  if (!isKept || verdict !== 'settled' || purchase.attempts > 0) return requireCurrent(parts, id)
  // Nothing changes a purchase that is paid and delivered, so it is not read again.
  const booked = { state: 'settled', charged: purchase.units, cumulative: voucher.cumulative } as const
  return { ...purchase, ...booked, delivered, delivered_hash: hash, delivered_at: at, attempts }
}

/** Presents the voucher of a paid purchase once more: it cannot cost anything again. */
async function askAgain(parts: PayingParts, { purchase, request }: VoucherPayment): Promise<Purchase> {
  const { database, clock, settings } = parts
  const { id } = purchase
  if (purchase.delivered_at !== null || purchase.credential === null) return requireCurrent(parts, id)
  const { header } = readVoucher(parts, purchase)
  const { asked, writer } = await present(parts, { purchase, request, timeoutMs: SELLER_MS, header })
  if (asked.status !== 'answered' || !isSuccess(asked.answer)) {
    await writer.discard()
    await countAttempts(database, { id, attempts: 1 })
    return requireCurrent(parts, id)
  }
  const { delivered, hash } = await sealAnswer(settings.dataKey, id, { answer: asked.answer, writer })
  if (!(await keepDelivered(database, { id, delivered, hash, attempts: 1, at: clock() })))
    await writer.discard()
  return requireCurrent(parts, id)
}

function readVoucher({ settings }: PayingParts, purchase: Purchase): Voucher {
  const { id, cumulative, credential } = purchase
  if (cumulative === null || credential === null) throw new Error(`${id} has no voucher`)
  return { cumulative, isNew: false, header: unsealCredential(settings.dataKey, id, credential) }
}

/**
 * Waits for the turn of a purchase on its channel, and signs the next voucher for it, or finds the one that is signed.
 * @returns null when the purchase is over, or its channel takes no more and its voucher is out.
 * @throws Failure `provider_unavailable` when nothing was signed.
 */
async function nextVoucher(parts: PayingParts, payment: VoucherPayment): Promise<Voucher | null> {
  const { database, clock, chain, settings } = parts
  const { purchase, terms } = payment
  const { id } = purchase
  const until = timers.monotonic() + TURN_MS
  for (let pauseMs = TURN_POLL_MS.first; ; pauseMs = Math.min(pauseMs * 2, TURN_POLL_MS.longest)) {
    const { verdict, cumulative } = await claimChannel(database, { id, at: clock() })
    if (verdict === 'over') return null
    if (verdict === 'ending') return endUnsigned(parts, purchase)
    if (verdict === 'present') return readVoucher(parts, await requireCurrent(parts, id))
    if (verdict === 'deposit') await fundChannel(parts, payment, cumulative)
    else if (verdict === 'sign') {
      const signed = await signForChannel({ chain, settings }, terms, cumulative)
      if (await keepVoucher(database, { id, ...signed, at: clock() }))
        return {
          ...readVoucher(parts, { ...purchase, cumulative, credential: signed.credential }),
          isNew: true,
        }
      const current = await requireCurrent(parts, id)
      if (current.state === 'failed') return null
      if (current.is_canceled || !(await isSpending(parts, current))) return endUnsigned(parts, current)
    }
    if (timers.monotonic() > until) throw buildWaitFailure(purchase)
    if (verdict === 'busy') await timers.sleep(pauseMs)
  }
}

/** Checks whether nothing has stopped the key or the account of a purchase. */
async function isSpending({ database }: PayingParts, { account_id, key_id }: Purchase): Promise<boolean> {
  const [row] = await database.call<{ is_active: boolean }>(
    {
      name: 'channel_key_is_active',
      text: `select key_is_active($1) and not exists (select from account a where a.id = $2 and a.status = 'locked') as is_active`,
    },
    [key_id, account_id],
  )
  return row?.is_active === true
}

function buildWaitFailure({ id, decision_id: decisionId }: Purchase): Failure {
  return new Failure(
    'provider_unavailable',
    'The channel to this seller is not ready. Nothing is paid yet.',
    {
      ...{ decisionId, purchaseId: id, retryAfter: 5 },
      hint: 'Repeat this call with the same idempotency key to go on; otherwise it is given up, and the money is available again.',
    },
  )
}

/** Ends a purchase of which nothing was signed. @returns null for one whose voucher is out: the end of the channel decides. */
async function endUnsigned(parts: PayingParts, purchase: Purchase): Promise<null> {
  if ((await requireCurrent(parts, purchase.id)).state === 'signed') return null
  const end = buildGivenUpFailure(purchase.decision_id)
  await failPurchase(parts, purchase, {
    ...{
      from: 'reserved',
      code: end.code,
      failure: 'its channel was closed, or its key or account was stopped',
    },
  })
  throw end
}

async function fundChannel(
  parts: PayingParts,
  { purchase, terms }: VoucherPayment,
  cumulative: bigint,
): Promise<void> {
  const channel = { id: terms.purseId, config: toConfig(parts, terms), asset: terms.asset }
  const deposit = await bringDeposit(parts, channel).catch((err: unknown) => {
    parts.log.warn({ err, purchaseId: purchase.id }, 'a deposit of a channel is not confirmed yet')
    throw buildWaitFailure(purchase)
  })
  if (deposit < cumulative) throw buildWaitFailure(purchase)
}

/** Signs a voucher of decided terms. It must be kept before it leaves the process. */
export async function signForChannel(
  { chain, settings }: Pick<PayingParts, 'chain' | 'settings'>,
  terms: PurchaseTerms,
  cumulative: bigint,
): Promise<SignedCredential & { readonly cumulative: bigint }> {
  const { purseId: id, offer, purchaseId, sinceBlock } = terms
  const voucher = { id, type: 'voucher', config: toConfig({ settings }, terms), cumulative } as const
  const header = await signVoucher(settings.dataKey, voucher, { chainId: chain.id, offer })
  const text = JSON.stringify(header)
  return {
    // A voucher has no end of its own.
    validBefore: null,
    sinceBlock: BigInt(sinceBlock),
    credential: seal(settings.dataKey, { purpose: SEAL, owner: purchaseId }, text),
    credentialHash: createHash('sha256').update(text).digest('hex'),
    cumulative,
  }
}

export function toConfig({ settings }: Pick<PayingParts, 'settings'>, terms: PurchaseTerms): ChannelConfig {
  const wishes = readWishes(terms.offer)
  if (wishes === null) throw new Error(`${terms.purchaseId} is not bought by a channel`)
  return buildConfig(settings.dataKey, {
    ...wishes,
    id: terms.purseId,
    payTo: terms.payTo,
    token: terms.token,
  })
}

function channelHash(parts: PayingParts, { terms }: Pick<VoucherPayment, 'terms'>): string {
  return hashChannel(toConfig(parts, terms), parts.chain.id)
}

/**
 * Heeds what a seller says to have charged. Its word decides which purchase was paid, of vouchers that are out anyway; it never makes a
 * voucher higher than what was bought and the price of one more.
 * @returns paid: this purchase was; others: vouchers of others were, and this one needs the next; refused: it was not taken;
 *   strange: the seller counts otherwise, and the channel is closed.
 */
async function heed(
  parts: PayingParts,
  {
    purchase,
    voucher: { cumulative, isNew },
    charged,
  }: { purchase: Purchase; voucher: Voucher; charged: bigint },
): Promise<'paid' | 'others' | 'refused' | 'strange'> {
  const { database, chain, clock } = parts
  const { id, purse_id: channelId, units } = purchase
  const settle = async (paid: string) =>
    (await settleVoucher(database, {
      ...{ id: paid, cumulative: charged, destination: external(chain.name), at: clock() },
    })) === 'settled'
  const other =
    charged === cumulative && !isNew
      ? undefined
      : await findUnanswered(database, { channelId, cumulative: charged, except: id })
  if (other !== undefined && (await settle(other))) {
    const { code, failure } = takenAlready
    await noteRefusal(database, { id: other, code, failure, at: clock() })
    return 'others'
  }
  if (charged === cumulative && (await settle(id))) return 'paid'
  if (charged === cumulative - units) return 'refused'
  const channel = await findChannel(database, channelId)
  if (channel?.booked === charged) return 'others'
  await beginClosing(database, channelId, clock())
  return 'strange'
}
