/**
 * The ways to the money of a card purchase: its authorization is given up before it clears; what has cleared is disputed. What is back
 * is what the processor's signed messages have booked, by a dispute that was won or by the merchant's own refund.
 */
import { z } from 'zod'
import { writeTextPdf } from '../../core/base/text-pdf.ts'
import { toDecimal } from '../../core/money/money.ts'
import { minimum } from '../../core/money/shares.ts'
import type { CardProcessor } from '../../providers/card-processor/port.ts'
import type { CardTransactionDependencies } from '../../rails/cards/apply-transaction.ts'
import { applyDispute, settleDispute } from '../../rails/cards/disputes.ts'
import { callForRow, type Statement } from '../../storage/database.ts'
import { findStep, type Progress, type Recourse, recordStep } from './store.ts'

export interface CardRecourseParts extends CardTransactionDependencies {
  readonly cardProcessor: Pick<CardProcessor, 'expire' | 'dispute'>
}

/** Facts of a card purchase. Cents. */
interface CardPurchase {
  readonly token: string
  readonly cardToken: string
  readonly status: 'pending' | 'settled' | 'voided' | 'expired' | 'declined'
  readonly cleared: bigint
  readonly refunded: bigint
  readonly about: unknown
  readonly createdAt: Date
}

async function findCardPurchase(parts: CardRecourseParts, id: string): Promise<CardPurchase> {
  return parts.database.kysely
    .selectFrom('card_authorization')
    .innerJoin('card', 'card.id', 'card_authorization.card_id')
    .select([
      'card_authorization.processor_token as token',
      'card.processor_token as cardToken',
      'card_authorization.status',
      'card_authorization.cleared',
      'card_authorization.refunded',
      'card_authorization.about',
      'card_authorization.created_at as createdAt',
    ])
    .where('card_authorization.id', '=', id)
    .executeTakeFirstOrThrow()
}

const note = (
  { database, clock }: Pick<CardRecourseParts, 'database' | 'clock'>,
  recourse: Recourse,
  progress: Progress,
) => recordStep(database, recourse, { progress, at: clock() })

/** Goes on with the recourse of a card purchase as far as it can now. @returns the recourse afterwards. */
export async function advanceCard(parts: CardRecourseParts, recourse: Recourse): Promise<Recourse> {
  const purchase = await findCardPurchase(parts, recourse.object_id)
  return purchase.cleared > 0n
    ? disputePurchase(parts, recourse, purchase)
    : giveUpAuthorization(parts, recourse, purchase)
}

async function giveUpAuthorization(
  parts: CardRecourseParts,
  recourse: Recourse,
  purchase: CardPurchase,
): Promise<Recourse> {
  const action = 'card_reversal'
  if (purchase.status !== 'pending')
    return note(parts, recourse, {
      action,
      outcome: 'done',
      route: action,
      evidence: { status: purchase.status },
      end: { status: 'recovered', isAllBack: true },
    })
  if (findStep(recourse, action) !== undefined) return recourse
  const { expire } = parts.cardProcessor
  const isAsked = expire !== null && (await expire(purchase))
  if (!isAsked)
    return note(parts, recourse, {
      action,
      outcome: 'refused',
      route: action,
      evidence: {
        why: 'The card processor does not give up the authorization: it ends or clears by itself.',
      },
    })
  const asked = await note(parts, recourse, { action, outcome: 'waiting', route: action })
  const after = await findCardPurchase(parts, recourse.object_id)
  // The sandbox's processor has answered by now.
  return after.status === 'pending' ? asked : advanceCard(parts, asked)
}

const refunding: Statement = {
  name: 'spend_refund',
  text: 'select usd_micros from spend_refund($1, $2, $3)',
}

async function disputePurchase(
  parts: CardRecourseParts,
  recourse: Recourse,
  purchase: CardPurchase,
): Promise<Recourse> {
  const action = 'card_dispute'
  const raced = await noteClearing(parts, recourse, purchase)
  const { clock, cardProcessor } = parts
  const dispute = await findDispute(parts, recourse)
  if (dispute !== undefined) await settleDispute(parts, dispute.token)
  const counted = await countReturned(parts, raced)
  if (counted.status !== 'open') return counted
  const isPart = counted.recovered > 0n
  const end = (status: 'refused' | 'expired' | 'impossible', outcome: 'refused' | 'failed', why: string) =>
    note(parts, counted, {
      action,
      outcome,
      route: action,
      evidence: { why },
      end: { status: isPart ? 'partly_recovered' : status },
    })
  if (dispute?.status === 'lost') return end('refused', 'refused', 'The dispute was closed without a credit.')
  if (clock() >= counted.deadline) return end('expired', 'failed', 'The dispute was not decided in time.')
  if (dispute !== undefined) {
    if (
      dispute.status === 'won' &&
      dispute.credited < counted.claimed - counted.recovered &&
      dispute.credited > 0n
    )
      return end('refused', 'failed', 'The dispute was won for a part.')
    return counted
  }
  if (cardProcessor.dispute === null)
    return end('impossible', 'failed', 'The card processor of this deployment takes no disputes.')
  const opened = await cardProcessor.dispute({
    transactionToken: purchase.token,
    units: counted.claimed - counted.recovered,
    reason: counted.reason,
    note: counted.note,
    filedAt: counted.created_at,
    evidence: { filename: `${recourse.id}.pdf`, content: writeEvidence(counted, purchase) },
  })
  if (opened === null) return end('refused', 'refused', 'The card processor did not take the dispute.')
  await applyDispute(parts, opened)
  return note(parts, counted, {
    action,
    outcome: 'waiting',
    route: action,
    evidence: { dispute: opened.token },
  })
}

/** Records that the purchase cleared before its authorization was given up. What has cleared is claimed from then on. */
async function noteClearing(
  parts: CardRecourseParts,
  recourse: Recourse,
  { cleared, refunded }: CardPurchase,
): Promise<Recourse> {
  const action = 'card_reversal'
  const step = findStep(recourse, action)
  if (step === undefined || step.outcome === 'raced') return recourse
  return note(parts, recourse, {
    action,
    outcome: 'raced',
    claimed: minimum(recourse.claimed, cleared - refunded > 0n ? cleared - refunded : 1n),
  })
}

function findDispute({ database }: CardRecourseParts, recourse: Recourse) {
  return database.kysely
    .selectFrom('card_dispute')
    .selectAll()
    .where('authorization_id', '=', recourse.object_id)
    .orderBy('created_at', 'desc')
    .limit(1)
    .executeTakeFirst()
}

/**
 * Counts what the books say is back: what is claimed, less what is cleared and not refunded. It only grows; the budgets that paid get
 * it back, unless the owner wants otherwise.
 */
async function countReturned(parts: CardRecourseParts, recourse: Recourse): Promise<Recourse> {
  const { database, clock } = parts
  return database.transaction(async (connection) => {
    const purchase = await connection.kysely
      .selectFrom('card_authorization')
      .innerJoin('account', 'account.id', 'card_authorization.account_id')
      .select(['cleared', 'refunded', 'account.refunds_refill as refills'])
      .where('card_authorization.id', '=', recourse.object_id)
      .forUpdate('card_authorization')
      .executeTakeFirstOrThrow()
    const current = await connection.kysely
      .selectFrom('recourse')
      .selectAll()
      .where('id', '=', recourse.id)
      .forUpdate()
      .executeTakeFirstOrThrow()
    const left = purchase.cleared > purchase.refunded ? purchase.cleared - purchase.refunded : 0n
    const back = current.claimed - left
    if (current.status !== 'open' || back <= current.recovered) return current
    const more = back - current.recovered
    if (current.decision_id !== null && purchase.refills)
      await callForRow(connection, refunding, [current.decision_id, more, left + more])
    return recordStep(connection, current, {
      progress: {
        action: 'refund',
        outcome: 'done',
        evidence: { amount: toDecimal({ asset: 'USD', units: more }) },
        recovered: back,
        ...(back === current.claimed ? { end: { status: 'recovered' as const } } : {}),
      },
      at: clock(),
    })
  })
}

const about = z.looseObject({ merchant: z.string().catch('') })

/** The evidence that the cardholder has: what was bought and why it is disputed. */
function writeEvidence(recourse: Recourse, purchase: CardPurchase): Uint8Array {
  const amount = toDecimal({ asset: 'USD', units: recourse.claimed })
  return writeTextPdf([
    'Dispute of a card purchase',
    '',
    `Recourse:     ${recourse.id}`,
    `Transaction:  ${purchase.token}`,
    `Merchant:     ${about.parse(purchase.about).merchant}`,
    `Purchased at: ${purchase.createdAt.toISOString()}`,
    `Disputed:     USD ${amount}`,
    `Reason:       ${recourse.reason}`,
    `Decision:     ${recourse.decision_id ?? 'none'}`,
    `Note:         ${recourse.note ?? 'none'}`,
    `Filed at:     ${recourse.created_at.toISOString()}`,
  ])
}
