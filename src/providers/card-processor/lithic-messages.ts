/**
 * Maps Lithic's webhooks, Auth Stream Access requests and transaction updates, to card messages. Reads only what
 * decisions need; amounts are whole cents.
 * @see https://docs.lithic.com/docs/auth-stream-access-asa
 * @see https://docs.lithic.com/docs/transaction-webhooks
 */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { canonicalJson } from '../../core/base/json.ts'
import { Failure } from '../../core/failures/failure.ts'
import type {
  CardAnswer,
  CardAuthorization,
  CardDispute,
  CardEvent,
  CardMessage,
  CardReason,
  CardTransaction,
} from './port.ts'

/** Far above any purchase, far below what a database column holds. */
const MAX_CENTS = 100_000_000_000

const cents = z.int().min(-MAX_CENTS).max(MAX_CENTS)
const token = z.string().min(1).max(64)
const merchant = z.object({
  acceptor_id: z.string().max(255).nullish(),
  descriptor: z.string().max(255).nullish(),
  mcc: z.string().max(10).nullish(),
  country: z.string().max(10).nullish(),
})

const authorization = z.object({
  event_type: z.literal('card_authorization.approval_request'),
  token,
  event_token: token.nullish(),
  status: z.enum([
    'AUTHORIZATION',
    'CREDIT_AUTHORIZATION',
    'FINANCIAL_AUTHORIZATION',
    'FINANCIAL_CREDIT_AUTHORIZATION',
    'BALANCE_INQUIRY',
  ]),
  amount: cents.nonnegative(),
  cardholder_currency: z.string().max(3).nullish(),
  card: z.object({ token }),
  merchant,
  pos: z
    .object({
      entry_mode: z.object({ pan: z.string().nullish() }).nullish(),
      terminal: z
        .object({ partial_approval_capable: z.boolean().nullish(), type: z.string().nullish() })
        .nullish(),
    })
    .nullish(),
})

const transaction = z.object({
  event_type: z.literal('card_transaction.updated'),
  token,
  card_token: token,
  status: z.enum(['PENDING', 'SETTLED', 'VOIDED', 'EXPIRED', 'DECLINED']),
  merchant: merchant.nullish(),
  events: z
    .array(
      z.object({
        token,
        type: z.string().max(64),
        amount: cents,
        result: z.string().nullish(),
        effective_polarity: z.string().max(10).nullish(),
      }),
    )
    .max(1000),
})

/** @see https://docs.lithic.com/reference/getdispute */
export const disputeObject = z.object({
  token,
  transaction_token: token,
  status: z.enum([
    'NEW',
    'PENDING_CUSTOMER',
    'SUBMITTED',
    'REPRESENTMENT',
    'PREARBITRATION',
    'ARBITRATION',
    'CASE_WON',
    'CASE_CLOSED',
  ]),
  amount: cents.nonnegative(),
  resolution_amount: cents.nonnegative().nullish(),
})

const disputeUpdate = disputeObject.extend({ event_type: z.literal('dispute.updated') })

// Built once: building and compiling a schema takes longer than the rest of a decision's own work.
const typed = z.object({ event_type: z.string().min(1).max(100) })
const authorizationTyped = z.object({ event_type: authorization.shape.event_type })

/** True for a message of the authorization stream; everything else is an event. */
export function isAuthorizationRequest(message: unknown): boolean {
  return authorizationTyped.safeParse(message).success
}

/** @throws Failure `invalid_request`. */
export function readMessage(message: unknown): CardMessage {
  const type = typed.safeParse(message)
  if (!type.success) throw unreadable(type.error)
  if (type.data.event_type === authorization.shape.event_type.value) return parseAuthorization(message)
  if (type.data.event_type === transaction.shape.event_type.value) return parseTransaction(message)
  if (type.data.event_type === disputeUpdate.shape.event_type.value) return parseDispute(message)
  return { kind: 'other', type: type.data.event_type }
}

function parseDispute(message: unknown): CardDispute {
  const parsed = disputeUpdate.safeParse(message)
  if (!parsed.success) throw unreadable(parsed.error)
  return toDispute(parsed.data)
}

/** Every state before the end is open: a credit on the way is none yet. */
export function toDispute({
  token,
  transaction_token: transactionToken,
  status,
  amount,
  resolution_amount: resolved,
}: z.output<typeof disputeObject>): CardDispute {
  const isWon = status === 'CASE_WON'
  return {
    kind: 'dispute',
    token,
    transactionToken,
    status: isWon ? 'won' : status === 'CASE_CLOSED' ? 'lost' : 'open',
    units: isWon ? BigInt(resolved ?? amount) : 0n,
  }
}

function parseAuthorization(message: unknown): CardAuthorization {
  const parsed = authorization.safeParse(message)
  if (!parsed.success) throw unreadable(parsed.error)
  const { data } = parsed
  if ((data.cardholder_currency ?? 'USD') !== 'USD')
    throw new Failure('invalid_request', 'cardholder_currency: must be USD.')
  const { pos } = data
  return {
    kind: 'authorization',
    token: data.token,
    eventToken: data.event_token ?? null,
    // A request to increase an authorization has the same token and possibly the same amount, so the whole message is
    // hashed.
    fingerprint: createHash('sha256').update(canonicalJson(message)).digest('base64url'),
    cardToken: data.card.token,
    type:
      data.status === 'BALANCE_INQUIRY' ? 'inquiry' : data.status.includes('CREDIT') ? 'credit' : 'purchase',
    units: BigInt(data.amount),
    merchant: {
      id: data.merchant.acceptor_id ?? '',
      name: data.merchant.descriptor ?? '',
      mcc: data.merchant.mcc ?? null,
      country: data.merchant.country ?? null,
    },
    channel: pos?.terminal?.type === 'ATM' ? 'atm' : (channels.get(pos?.entry_mode?.pan ?? '') ?? null),
    allowsPartial: pos?.terminal?.partial_approval_capable ?? false,
  }
}

/** Maps how the card number reached the merchant to a channel; unmapped values are unknown. */
const channels: ReadonlyMap<string, CardAuthorization['channel']> = new Map([
  ['ECOMMERCE', 'ecommerce'],
  ['CREDENTIAL_ON_FILE', 'ecommerce'],
  ['KEY_ENTERED', 'ecommerce'],
  ['MANUAL', 'ecommerce'],
  ['SECURE_CARDLESS', 'ecommerce'],
  ['CONTACTLESS', 'contactless'],
  ['MAGNETIC_STRIPE', 'magstripe'],
  ['ERROR_MAGNETIC_STRIPE', 'magstripe'],
  ['ICC', 'chip'],
])

/** Events that move money; others are informational. */
const kinds: ReadonlyMap<string, CardEvent['kind']> = new Map([
  ['CLEARING', 'clearing'],
  ['FINANCIAL_AUTHORIZATION', 'clearing'],
  ['CORRECTION_DEBIT', 'clearing'],
  ['RETURN_REVERSAL', 'return_reversal'],
  ['AUTHORIZATION_REVERSAL', 'reversal'],
  ['RETURN', 'refund'],
  ['FINANCIAL_CREDIT_AUTHORIZATION', 'refund'],
  ['CORRECTION_CREDIT', 'refund'],
])

const statuses = {
  PENDING: 'pending',
  SETTLED: 'settled',
  VOIDED: 'voided',
  EXPIRED: 'expired',
  DECLINED: 'declined',
} as const

function parseTransaction(message: unknown): CardTransaction {
  const parsed = transaction.safeParse(message)
  if (!parsed.success) throw unreadable(parsed.error)
  const { data } = parsed
  return {
    kind: 'transaction',
    token: data.token,
    cardToken: data.card_token,
    status: statuses[data.status],
    merchantName: data.merchant?.descriptor ?? '',
    wasAuthorized: data.events.some(({ type }) => /AUTHORIZATION$/.test(type)),
    events: data.events.flatMap((event) => {
      const kind = findKind(event)
      const isDone = (event.result ?? 'APPROVED') === 'APPROVED'
      return kind === undefined || event.amount === 0 || !isDone
        ? []
        : [{ token: event.token, kind, units: BigInt(Math.abs(event.amount)) }]
    }),
  }
}

/**
 * Credits and debits clear with the same event type, distinguished by polarity or sign; without either, the event is
 * a debit.
 */
function findKind({
  type,
  amount,
  effective_polarity: polarity,
}: z.output<typeof transaction>['events'][number]): CardEvent['kind'] | undefined {
  return type === 'CLEARING' && (amount < 0 || polarity === 'CREDIT') ? 'refund' : kinds.get(type)
}

/** Result codes for Lithic; every one except the first declines. */
const results: Readonly<Record<CardReason, string>> = {
  approved: 'APPROVED',
  insufficient_funds: 'INSUFFICIENT_FUNDS',
  debt_owed: 'INSUFFICIENT_FUNDS',
  card_frozen: 'CARD_PAUSED',
  card_canceled: 'CARD_PAUSED',
  card_used: 'VELOCITY_EXCEEDED',
  account_locked: 'CARD_PAUSED',
  key_not_active: 'CARD_PAUSED',
  rail_disabled: 'CARD_PAUSED',
  unknown_card: 'CARD_PAUSED',
  too_late: 'CARD_PAUSED',
  unavailable: 'CARD_PAUSED',
  channel_off: 'UNAUTHORIZED_MERCHANT',
  merchant_denied: 'UNAUTHORIZED_MERCHANT',
  policy_denied: 'UNAUTHORIZED_MERCHANT',
  approval_required: 'UNAUTHORIZED_MERCHANT',
  purchase_limit: 'VELOCITY_EXCEEDED',
  daily_limit: 'VELOCITY_EXCEEDED',
  kyc_required: 'VELOCITY_EXCEEDED',
  budget_exceeded: 'VELOCITY_EXCEEDED',
}

/** Formats our decision for Lithic. `approved_amount` marks a partial approval. */
export function buildAnswer({
  token,
  reason,
  asked,
  approved,
  balance,
}: CardAnswer): Record<string, unknown> {
  const isPartial = reason === 'approved' && approved < asked
  return {
    result: results[reason],
    token,
    ...(isPartial ? { approved_amount: Number(approved) } : {}),
    ...(balance === undefined ? {} : { balance: { amount: Number(balance), available: Number(balance) } }),
  }
}

function unreadable(error: z.ZodError): Failure {
  const issues = error.issues.map((issue) => ({
    path: issue.path.map(String).join('.'),
    message: issue.message,
  }))
  const [first] = issues
  return new Failure('invalid_request', `${first?.path ?? ''}: ${first?.message ?? 'cannot be read'}`, {
    issues,
  })
}
