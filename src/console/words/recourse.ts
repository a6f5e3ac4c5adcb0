/** Words for the story of a payment: what was paid, what came, and what was tried to get the money back. */
import type { ActivityEntry, Recourse, RecourseOpenRequest } from '../../client/operations.ts'
import { formatDecimal } from './money.ts'

type Step = Recourse['steps'][number]
export type Reason = RecourseOpenRequest['reason']

/** How a moment of the story reads: as it should, still open, or gone wrong. */
export type Tone = 'good' | 'waiting' | 'bad' | 'plain'

/** @property words in a sentence without its full stop. @property detail said by others, or a fact. */
export interface Moment {
  readonly at: string | null
  readonly tone: Tone
  readonly words: string
  readonly detail: string | null
}

const ways: Readonly<Record<Step['action'], Readonly<Partial<Record<Step['outcome'], string>>>>> = {
  cancel_authorization: {
    done: 'The payment was made void on the chain',
    waiting: 'The payment is being made void on the chain',
    raced: 'The seller took the payment first',
    failed: 'The payment could not be made void',
  },
  present_again: {
    done: 'What was bought has come',
    failed: 'The seller was shown the payment again and sent nothing',
  },
  void: {
    done: 'The seller gave the held payment back',
    waiting: 'The seller was asked to give the held payment back',
    refused: 'The seller did not give the held payment back',
    failed: 'The seller could not be asked to give the held payment back',
    raced: 'The seller took the held payment first',
  },
  reclaim: {
    done: 'The held payment was taken back on the chain',
    waiting: 'The held payment can be taken back once its time is over',
    failed: 'The held payment could not be taken back',
    raced: 'The seller took the held payment first',
  },
  channel_close: {
    done: 'The channel to the seller was closed',
    waiting: 'The channel to the seller is being closed',
    raced: 'The seller had claimed the payment',
    failed: 'The channel to the seller could not be closed',
  },
  refund_request: {
    done: 'The seller was asked for a refund',
    waiting: 'The seller has the request for a refund',
    refused: 'The seller refused to pay it back',
    failed: 'The seller did not take the request for a refund',
  },
  card_reversal: {
    done: 'The shop’s authorization ended before it cleared',
    waiting: 'The card’s issuer was asked to give the authorization up',
    raced: 'The payment cleared first',
    refused: 'The authorization cannot be given up',
  },
  card_dispute: {
    done: 'The dispute was won',
    waiting: 'A dispute is open at the card’s issuer',
    refused: 'The dispute was lost',
    failed: 'The dispute was not decided in time',
    raced: 'The shop paid it back first',
  },
  bank_recall: {
    done: 'The payout was called back',
    waiting: 'The bank was asked to call it back',
    raced: 'The bank had sent it already',
    refused: 'The bank cannot call it back',
    failed: 'It did not come back in time',
  },
  bridge_claim: {
    done: 'It arrived on the other chain',
    waiting: 'It has left and not arrived on the other chain yet',
    failed: 'It did not arrive in time',
  },
  none: { failed: 'There is no way to get it back' },
  refund: { done: 'Money came back' },
}

const tones: Readonly<Record<Step['outcome'], Tone>> = {
  done: 'good',
  waiting: 'waiting',
  raced: 'bad',
  refused: 'bad',
  failed: 'bad',
}

/** Says what a step did. @param asset of the payment */
function describeStep({ at, action, outcome, evidence }: Step, asset: string): Moment {
  const amount = evidence?.amount
  const words =
    action === 'refund' && amount !== undefined
      ? `${formatDecimal(amount)} ${asset} came back`
      : (ways[action][outcome] ?? 'Something else was tried')
  return {
    at,
    tone: tones[outcome],
    words,
    detail: evidence?.why ?? evidence?.detail ?? evidence?.answer ?? null,
  }
}

/** What a person says when they ask for their money, in the order in which they are offered. */
export const reasons: readonly (readonly [reason: Reason, words: string])[] = [
  ['not_delivered', 'It never came'],
  ['not_as_described', 'It is not what was promised'],
  ['duplicate', 'It was paid twice'],
  ['wrong_amount', 'The amount is wrong'],
  ['canceled', 'It was canceled'],
  ['fraudulent', 'Nobody here paid this'],
]

export function describeReason(reason: Reason): string {
  return reasons.find(([one]) => one === reason)?.[1] ?? reason
}

const begun: Readonly<Record<string, string>> = {
  purchase: 'Paid',
  card: 'Paid by card',
  payout: 'Sent to the bank',
  transfer: 'Sent',
  swap: 'Converted',
}

/** What became of the payment by itself, without recourse. */
const outcomes: Readonly<
  Record<string, Readonly<Partial<Record<ActivityEntry['status'], readonly [Tone, string]>>>>
> = {
  purchase: {
    completed: ['good', 'Delivered'],
    undelivered: ['bad', 'Nothing came'],
    pending: ['waiting', 'The seller has not taken the payment yet'],
    failed: ['plain', 'The seller never took the payment, so nothing was paid'],
    reversed: ['plain', 'The payment is void, and the money is back'],
  },
  card: {
    completed: ['good', 'Cleared'],
    pending: ['waiting', 'Held until the shop clears it'],
    canceled: ['plain', 'It never cleared, so nothing was paid'],
  },
  payout: {
    completed: ['good', 'Arrived'],
    on_its_way: ['waiting', 'On its way'],
    pending: ['waiting', 'Waits for its money'],
    failed: ['plain', 'The bank did not take it, and the money is back'],
    reversed: ['plain', 'It was returned'],
  },
  swap: {
    completed: ['good', 'Arrived'],
    pending: ['waiting', 'On its way'],
    on_its_way: ['waiting', 'On its way to the other chain'],
    failed: ['plain', 'The chain did not take it, and the money is back'],
  },
  transfer: {
    completed: ['good', 'Arrived on the chain'],
    pending: ['waiting', 'On its way'],
    failed: ['plain', 'The chain did not take it, and the money is back'],
  },
}

/** The story of a payment, oldest first; empty for what was never paid, and for money that came in. */
export function tellStory(
  entry: Pick<ActivityEntry, 'at' | 'kind' | 'direction' | 'status'>,
  recourse: Recourse | null,
): readonly Moment[] {
  const { kind, direction, status } = entry
  const paid = begun[kind]
  const isDeclined = status === 'denied' || (kind === 'card' && status === 'failed')
  if (paid === undefined || direction === 'in' || isDeclined) return []
  const [tone, words] = outcomes[kind]?.[status] ?? (['plain', null] as const)
  const first = { at: entry.at, tone: 'plain', words: paid, detail: null } as const
  const outcome = words === null ? [] : [{ at: null, tone, words, detail: null }]
  if (recourse === null) return [first, ...outcome]
  const { createdAt, reason, note, steps, asset } = recourse
  return [
    first,
    // What its end tells is not told before it.
    ...(recourse.delivered || tone === 'plain' ? [] : outcome),
    {
      at: createdAt,
      tone: 'plain',
      words: `Asked for the money: ${lower(describeReason(reason))}`,
      detail: note,
    },
    ...steps.map((step) => describeStep(step, asset)),
    describeEnd(recourse),
  ]
}

function lower(words: string): string {
  return `${words.slice(0, 1).toLowerCase()}${words.slice(1)}`
}

function describeEnd({ status, delivered, recovered, claimed, asset, endedAt }: Recourse): Moment {
  const sum = `${formatDecimal(recovered)} ${asset}`
  const ends: Readonly<Record<Recourse['status'], readonly [Tone, string]>> = {
    open: ['waiting', 'Goes on by itself'],
    recovered: ['good', delivered ? 'Over: nothing is owed' : `${sum} is back`],
    partly_recovered: ['bad', `${sum} of ${formatDecimal(claimed)} ${asset} is back; the rest is lost`],
    refused: ['bad', 'Refused: the money is not back'],
    expired: ['bad', 'Nothing came back in time'],
    impossible: ['bad', 'The money cannot be taken back'],
  }
  const [tone, words] = ends[status]
  return { at: endedAt, tone, words, detail: null }
}

/**
 * The one thing that a person can do about a payment now; null where there is nothing to do.
 * @property isUrgent something went wrong that the gateway knows of.
 */
export function offerRecourse(
  entry: Pick<ActivityEntry, 'kind' | 'direction' | 'status'>,
  recourse: Recourse | null,
): { readonly words: string; readonly reason: Reason; readonly isUrgent: boolean } | null {
  if (recourse !== null || entry.direction === 'in') return null
  const { kind, status } = entry
  if (kind === 'purchase' && status === 'undelivered')
    return { words: 'Get the money back', reason: 'not_delivered', isUrgent: true }
  if (kind === 'purchase' && status === 'pending')
    return { words: 'Take the payment back', reason: 'canceled', isUrgent: false }
  if (kind === 'payout' && status === 'on_its_way')
    return { words: 'Call it back', reason: 'canceled', isUrgent: false }
  if (kind === 'swap' && status === 'on_its_way')
    return { words: 'Follow what it waits for', reason: 'not_delivered', isUrgent: false }
  if (kind === 'card' && status === 'pending')
    return { words: 'Ask the shop’s hold back', reason: 'canceled', isUrgent: false }
  if ((kind === 'card' || kind === 'purchase') && status === 'completed')
    return { words: 'Ask for the money back', reason: 'not_as_described', isUrgent: false }
  return null
}
