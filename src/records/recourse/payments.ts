/** Payments whose money is asked back: who made them, what was paid, and whether the goods came. */

import { sql } from 'kysely'
import type { Scope } from '../../../policies/scopes.ts'
import { Failure } from '../../core/failures/failure.ts'
import { chargedUnits } from '../../rails/buying/store.ts'
import { findSwap } from '../../rails/swaps/orders.ts'
import type { Connection } from '../../storage/database.ts'
import { BRIDGE_DAYS } from './bridge-route.ts'
import type { NewRecourse, RecourseKind, RecourseOwner, RecourseRoute } from './store.ts'

/** Scope of a key that made such a payment. */
export const scopeOfKind = {
  purchase: 'purchases:pay',
  card_transaction: 'cards:pay',
  payout: 'banking:pay',
  transfer: 'wallets:transfer',
  swap: 'swaps:execute',
} as const satisfies Record<RecourseKind, Scope>

/** @property route the first way that fits. @property daysLeft days until it is given up. */
export type Payment = Pick<
  NewRecourse,
  'keyId' | 'decisionId' | 'asset' | 'claimed' | 'wasDelivered' | 'objectKind'
> & { readonly route: RecourseRoute; readonly days: number }

type FindPayment = (database: Connection, owner: RecourseOwner, id: string) => Promise<Payment | undefined>

const DAYS = 7
/** Money may be in escrow for thirty days. */
const ESCROW_DAYS = 37
/** Networks decide disputes within months. */
const CARD_DAYS = 180
const BANK_DAYS = 30

const keyOfDecision = sql<string | null>`(decision_known(transfer.decision_id)).key_id`

const finders: Readonly<Record<RecourseKind, FindPayment>> = {
  purchase: async ({ kysely }, { accountId, keyId }, id) => {
    const query = kysely
      .selectFrom('purchase')
      .selectAll()
      .where('id', '=', id)
      .where('account_id', '=', accountId)
    const purchase = await (keyId === null ? query : query.where('key_id', '=', keyId)).executeTakeFirst()
    if (purchase === undefined) return undefined
    const wasDelivered = purchase.delivered_at !== null
    const isVoid = purchase.state === 'failed'
    // A payment that was signed and is void by now answers its recourse; one that never was signed took nothing.
    const wasSigned = purchase.valid_before !== null || purchase.cumulative !== null
    if (isVoid && (!wasSigned || wasDelivered)) throw nothingPaid()
    return {
      objectKind: 'purchase',
      keyId: purchase.key_id,
      decisionId: purchase.decision_id,
      asset: purchase.asset,
      claimed: purchase.state === 'settled' ? chargedUnits(purchase) : purchase.units,
      wasDelivered,
      route:
        purchase.state === 'settled'
          ? 'present_again'
          : purchase.cumulative !== null
            ? 'channel_close'
            : purchase.escrow_look_at !== null
              ? 'void'
              : 'cancel_authorization',
      days: purchase.scheme === 'auth-capture' ? ESCROW_DAYS : DAYS,
    }
  },
  card_transaction: async ({ kysely }, { accountId, keyId }, id) => {
    const query = kysely
      .selectFrom('card_authorization')
      .selectAll()
      .where('id', '=', id)
      .where('account_id', '=', accountId)
      .where('is_reserve', '=', false)
    const purchase = await (keyId === null ? query : query.where('key_id', '=', keyId)).executeTakeFirst()
    if (purchase === undefined) return undefined
    const hasCleared = purchase.cleared > 0n
    const claimed = hasCleared ? purchase.cleared - purchase.refunded : purchase.approved
    if (!hasCleared && purchase.status !== 'pending') throw nothingPaid()
    if (claimed <= 0n) throw hasCleared ? alreadyBack() : nothingPaid()
    return {
      objectKind: 'card_transaction',
      keyId: purchase.key_id,
      decisionId: purchase.decision_id,
      asset: 'USD',
      claimed,
      // Goods of a card are not seen here: the reason says whether they came.
      wasDelivered: false,
      route: hasCleared ? 'card_dispute' : 'card_reversal',
      days: CARD_DAYS,
    }
  },
  payout: async ({ kysely }, { accountId, keyId }, id) => {
    const query = kysely
      .selectFrom('payout')
      .selectAll()
      .where('id', '=', id)
      .where('account_id', '=', accountId)
    const payout = await (keyId === null ? query : query.where('key_id', '=', keyId)).executeTakeFirst()
    if (payout === undefined) return undefined
    if (payout.status === 'failed') throw nothingPaid()
    if (payout.status === 'returned') throw alreadyBack()
    return {
      objectKind: 'payout',
      keyId: payout.key_id,
      decisionId: payout.decision_id,
      asset: payout.asset,
      claimed: payout.units,
      wasDelivered: payout.status === 'paid',
      route: 'bank_recall',
      days: BANK_DAYS,
    }
  },
  transfer: async ({ kysely }, { accountId, keyId }, id) => {
    const query = kysely
      .selectFrom('transfer')
      .select(['transfer.state', 'transfer.token', 'transfer.units', 'transfer.decision_id'])
      .select(keyOfDecision.as('key_id'))
      .where('transfer.id', '=', id)
      .where('transfer.account_id', '=', accountId)
    const transfer = await (keyId === null
      ? query
      : query.where(keyOfDecision, '=', keyId)
    ).executeTakeFirst()
    if (transfer === undefined) return undefined
    if (transfer.state === 'failed') throw nothingPaid()
    return {
      objectKind: 'transfer',
      keyId: transfer.key_id,
      decisionId: transfer.decision_id,
      asset: transfer.token,
      claimed: transfer.units,
      // Nobody can take it back, so that nobody need be asked.
      wasDelivered: false,
      route: 'none',
      days: DAYS,
    }
  },
  swap: async (database, { accountId, keyId }, id) => {
    const swap = await findSwap(database, { accountId, keyId, id })
    if (swap === undefined) return undefined
    if (swap.state === 'failed') throw nothingPaid()
    if (swap.state === 'submitted') throw notSentYet()
    return {
      objectKind: 'swap',
      keyId: swap.keyId,
      decisionId: swap.decisionId,
      asset: swap.sell,
      claimed: swap.units - swap.unsold,
      wasDelivered: false,
      route: swap.state === 'bridging' ? 'bridge_claim' : 'none',
      days: BRIDGE_DAYS,
    }
  },
}

/** Finds a payment as its payer may see it. @throws Failure `not_found`, `recourse_impossible`. */
export async function findPayment(
  database: Connection,
  owner: RecourseOwner,
  { kind, id }: { readonly kind: RecourseKind; readonly id: string },
): Promise<Payment> {
  const payment = await finders[kind](database, owner, id)
  if (payment === undefined)
    throw new Failure('not_found', `You have no such ${kind.replace('_', ' ')}.`, {
      hint: 'GET /api/activity lists what was paid: `object` is its kind and id.',
    })
  return payment
}

function nothingPaid(): Failure {
  return new Failure('recourse_impossible', 'Nothing was paid: the money is available.', {
    reason: 'nothing_paid',
    hint: 'There is nothing to get back.',
  })
}

function notSentYet(): Failure {
  return new Failure('recourse_impossible', 'It is not on the chain yet, and its money is held.', {
    reason: 'not_sent_yet',
    hint: 'Read GET /api/swaps/orders/{id} until it has left or failed, which takes minutes at most.',
  })
}

function alreadyBack(): Failure {
  return new Failure('recourse_impossible', 'All of it has come back already.', {
    reason: 'already_back',
    hint: 'There is nothing to get back.',
  })
}
