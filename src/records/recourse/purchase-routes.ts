/**
 * The ways to the money of a purchase: a payment that is not settled is made void; one that is settled is presented again, once; what
 * is in escrow comes back from there; a channel is closed; then the seller is asked for a refund, and what it sends is found on the chain.
 */
import { minimum } from '../../core/money/shares.ts'
import { onChain } from '../../providers/chain/chains.ts'
import { findReturns } from '../../rails/buying/find-returns.ts'
import { presentAgain } from '../../rails/buying/present-again.ts'
import { findRefundUrl } from '../../rails/buying/request-refund.ts'
import { nameEscrowRefunds } from '../../rails/buying/return-escrow.ts'
import { chargedUnits, findPurchase, type Purchase } from '../../rails/buying/store.ts'
import { voidPurchase } from '../../rails/buying/void-purchase.ts'
import { MAX_REQUESTS, type PurchaseRecourseParts, sendRefundRequest } from './ask-seller.ts'
import { closeChannel, takeUnclaimed } from './channel-route.ts'
import { nameEscrowReturn, noteEscrowEnd, readEscrowed, returnFromEscrow } from './escrow-route.ts'
import { linkRefund } from './link-refund.ts'
import { findStep, type Progress, parseSteps, type Recourse, recordStep } from './store.ts'

/** Goes on with the recourse of a purchase as far as it can now. @returns the recourse afterwards. */
export async function advancePurchase(given: PurchaseRecourseParts, recourse: Recourse): Promise<Recourse> {
  const found = await findPurchase(given.database, { id: recourse.object_id })
  if (found === undefined) throw new Error(`${recourse.id} is of a purchase without a row`)
  const parts = onChain(given, found.chain)
  const { purchase, isEscrowed } = await readEscrowed(parts, found)
  if (isEscrowed) return takeFromEscrow(parts, recourse, purchase)
  if (purchase.state !== 'settled') return takeBack(parts, recourse, purchase)
  const paid = await noteEscrowEnd(parts, await noteRace(parts, recourse, purchase), purchase)
  // What arrives may be what another recourse has asked the same payee for: then this one asks before it takes.
  const returned = (await hasRival(parts, paid, purchase)) ? paid : await linkReturns(parts, paid, purchase)
  if (returned.status !== 'open') return returned
  const asked = await presentOnce(parts, returned, purchase)
  if (asked === null) return returned
  if (asked.status !== 'open') return asked
  const closed = await takeUnclaimed(parts, asked, purchase)
  if (closed === null) return asked
  return closed.status === 'open' ? askForRefund(parts, closed, purchase) : closed
}

/** True if another open recourse of the account awaits money of the same payee. */
async function hasRival(
  { database }: Pick<PurchaseRecourseParts, 'database'>,
  { id, account_id: accountId }: Recourse,
  { pay_to: payee, asset }: Purchase,
): Promise<boolean> {
  const rival = await database.kysely
    .selectFrom('recourse')
    .innerJoin('purchase', 'purchase.id', 'recourse.object_id')
    .select('recourse.id')
    .where('recourse.account_id', '=', accountId)
    .where('recourse.object_kind', '=', 'purchase')
    .where('recourse.status', '=', 'open')
    .where('recourse.id', '<>', id)
    .where('purchase.pay_to', '=', payee)
    .where('purchase.asset', '=', asset)
    .limit(1)
    .executeTakeFirst()
  return rival !== undefined
}

const note = (
  { database, clock }: Pick<PurchaseRecourseParts, 'database' | 'clock'>,
  recourse: Recourse,
  progress: Progress,
) => recordStep(database, recourse, { progress, at: clock() })

/**
 * Sees to it that a voucher which is out is not taken: its channel is closed, and the chain shows whether the seller has claimed it.
 * Nothing that is signed goes out again.
 */
async function takeVoucherBack(
  parts: PurchaseRecourseParts,
  recourse: Recourse,
  purchase: Purchase,
): Promise<Recourse> {
  const action = 'channel_close'
  const voided = await voidPurchase(parts, purchase)
  if (voided.state === 'settled') return advancePurchase(parts, recourse)
  if (voided.state !== 'failed') return (await closeChannel(parts, recourse, voided)).recourse
  const isDelivered = voided.delivered_at !== null && !recourse.was_delivered
  return note(parts, recourse, {
    action,
    outcome: 'done',
    route: action,
    evidence: { channel: voided.purse_id, why: 'The voucher was not taken, and never can be.' },
    end: { status: 'recovered', isAllBack: true, ...(isDelivered ? { isDelivered } : {}) },
  })
}

/** Takes what is in escrow back, once the payment was presented again where that may bring the goods. */
async function takeFromEscrow(
  parts: PurchaseRecourseParts,
  recourse: Recourse,
  purchase: Purchase,
): Promise<Recourse> {
  const raced = await noteRace(parts, recourse, purchase)
  const asked = await presentOnce(parts, raced, purchase)
  if (asked === null) return raced
  if (asked.status !== 'open') return asked
  const returned = await returnFromEscrow(parts, asked, purchase)
  const after = await findPurchase(parts.database, { id: purchase.id })
  // What the chain has shown meanwhile ends it at once.
  return returned.status === 'open' && after !== undefined && after.state !== 'signed'
    ? advancePurchase(parts, returned)
    : returned
}

/** Makes a payment void that is not settled, and ends with what the chain shows: it is void, or its seller was faster. */
async function takeBack(
  parts: PurchaseRecourseParts,
  recourse: Recourse,
  purchase: Purchase,
): Promise<Recourse> {
  if (purchase.cumulative !== null) return takeVoucherBack(parts, recourse, purchase)
  const action = (await nameEscrowReturn(parts, recourse, purchase)) ?? 'cancel_authorization'
  const begun =
    findStep(recourse, action) === undefined && purchase.state !== 'failed'
      ? await note(parts, recourse, { action, outcome: 'waiting', route: action })
      : recourse
  const voided = purchase.state === 'failed' ? purchase : await voidPurchase(parts, purchase)
  if (voided.state === 'settled') return advancePurchase(parts, begun)
  if (voided.state !== 'failed') return begun
  const isDelivered = voided.delivered_at !== null && !recourse.was_delivered
  return note(parts, begun, {
    action,
    outcome: 'done',
    route: action,
    evidence: {
      nonce: voided.nonce,
      why:
        action === 'cancel_authorization'
          ? 'The payment was not taken, and never can be.'
          : 'The escrow gave all of it back.',
    },
    end: { status: 'recovered', isAllBack: true, ...(isDelivered ? { isDelivered } : {}) },
  })
}

/** Records that the seller was faster than our cancellation. What it took is claimed from then on. */
async function noteRace(
  parts: PurchaseRecourseParts,
  recourse: Recourse,
  purchase: Purchase,
): Promise<Recourse> {
  const action = 'cancel_authorization'
  if (findStep(recourse, action)?.outcome !== 'waiting') return recourse
  return note(parts, recourse, {
    action,
    outcome: 'raced',
    evidence: { transaction: purchase.transaction_hash ?? '' },
    // What is in escrow is not taken yet.
    ...(purchase.state === 'settled' ? { claimed: minimum(chargedUnits(purchase), recourse.claimed) } : {}),
  })
}

/** Links what the seller sent back. */
async function linkReturns(
  parts: PurchaseRecourseParts,
  recourse: Recourse,
  purchase: Purchase,
): Promise<Recourse> {
  const { database } = parts
  const known = await database.kysely
    .selectFrom('refund')
    .select('movement')
    .where('account_id', '=', purchase.account_id)
    .where('at', '>=', purchase.created_at)
    .execute()
  const found = await findReturns(
    parts,
    purchase,
    known.map(({ movement }) => movement),
  )
  for (const { movement, entryId, units, transactionHash } of found)
    await linkRefund(parts, recourse, {
      ...{ movement, entryId, units },
      evidence: { transaction: transactionHash, entry: entryId },
    })
  const fromEscrow = await findEscrowRefunds(
    parts,
    purchase,
    known.map(({ movement }) => movement),
  )
  for (const { movement, entryId, units } of fromEscrow)
    await linkRefund(parts, recourse, { movement, entryId, units, evidence: { entry: entryId } })
  if (found.length + fromEscrow.length === 0) return recourse
  return database.kysely
    .selectFrom('recourse')
    .selectAll()
    .where('id', '=', recourse.id)
    .executeTakeFirstOrThrow()
}

/** Finds what the escrow has refunded of a settled purchase, which names it. */
async function findEscrowRefunds(
  { database }: Pick<PurchaseRecourseParts, 'database'>,
  purchase: Purchase,
  except: readonly string[],
) {
  if (purchase.scheme !== 'auth-capture') return []
  const name = nameEscrowRefunds(purchase)
  const rows = await database.kysely
    .selectFrom('posting')
    .select(['transaction_id as movement', 'ordinal', 'units'])
    .where('transaction_id', '>=', name)
    .where('transaction_id', '<', `${name.slice(0, -1)};`)
    .execute()
  return rows
    .filter(({ movement }) => !except.includes(movement))
    .map(({ movement, ordinal, units }) => ({ movement, units, entryId: `${movement}.${ordinal}` }))
}

/**
 * Presents the payment again, once, unless the goods had come before. Goods that have come end the recourse.
 * @returns null while another call presents it.
 */
async function presentOnce(
  parts: PurchaseRecourseParts,
  recourse: Recourse,
  purchase: Purchase,
): Promise<Recourse | null> {
  const action = 'present_again'
  if (recourse.was_delivered) return recourse
  const isDelivered = { status: 'recovered', isDelivered: true } as const
  const whyDelivered = { why: 'What was bought has come.' }
  if (purchase.delivered_at !== null)
    return note(parts, recourse, { action, outcome: 'done', evidence: whyDelivered, end: isDelivered })
  if (findStep(recourse, action) !== undefined) return recourse
  const presented = await presentAgain(parts, purchase)
  if (presented === 'busy') return null
  if (presented === 'over') return recourse
  if (presented === 'unknown_request')
    return note(parts, recourse, {
      action,
      outcome: 'failed',
      evidence: { why: 'Its body and header fields are not kept: only the buyer can ask again.' },
    })
  if (presented.delivered_at !== null)
    return note(parts, recourse, {
      action,
      outcome: 'done',
      route: action,
      evidence: whyDelivered,
      end: isDelivered,
    })
  return note(parts, recourse, {
    action,
    outcome: 'failed',
    route: action,
    evidence: { detail: presented.failure ?? 'nothing came' },
  })
}

/** Asks the seller for a refund until it has the request, takes what has come, and waits for the rest until the deadline. */
async function askForRefund(
  parts: PurchaseRecourseParts,
  recourse: Recourse,
  purchase: Purchase,
): Promise<Recourse> {
  const { clock, settings } = parts
  const action = 'refund_request'
  const url = findRefundUrl(purchase, { loopback: settings.mode === 'sandbox' })
  if (url === null)
    return endWithRest(parts, recourse, purchase, {
      action: 'none',
      outcome: 'failed',
      route: 'none',
      evidence: { why: 'The seller declares no refunds.' },
      status: 'impossible',
    })
  if (clock() >= recourse.deadline)
    return endWithRest(parts, recourse, purchase, {
      action,
      outcome: 'failed',
      evidence: { why: 'The money did not come in time.' },
      status: 'expired',
    })
  const asked = parseSteps(recourse).filter((step) => step.action === action)
  if (asked.some(({ outcome }) => outcome === 'waiting') || asked.length >= MAX_REQUESTS)
    return linkReturns(parts, recourse, purchase)
  const { outcome, said } = await sendRefundRequest(parts, recourse, { purchase, url })
  const step = { action, route: action, evidence: { url: url.href, answer: said } } as const
  if (outcome === 'refused')
    return endWithRest(parts, recourse, purchase, { ...step, outcome: 'refused', status: 'refused' })
  const noted = await note(parts, recourse, {
    ...step,
    outcome: outcome === 'accepted' ? 'waiting' : 'failed',
  })
  return linkReturns(parts, noted, purchase)
}

/** Takes what has come, and ends what is left. @param step its `status` is the end if nothing has come. */
async function endWithRest(
  parts: PurchaseRecourseParts,
  recourse: Recourse,
  purchase: Purchase,
  { status, ...step }: Omit<Progress, 'end'> & { readonly status: 'impossible' | 'expired' | 'refused' },
): Promise<Recourse> {
  const linked = await linkReturns(parts, recourse, purchase)
  if (linked.status !== 'open') return linked
  return note(parts, linked, {
    ...step,
    end: { status: linked.recovered > 0n ? 'partly_recovered' : status },
  })
}
