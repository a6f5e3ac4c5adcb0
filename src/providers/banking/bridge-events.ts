/**
 * Maps Bridge's webhooks to banking events.
 * @see https://apidocs.bridge.xyz/platform/additional-information/webhooks/structure
 */
import { z } from 'zod'
import { Failure } from '../../core/failures/failure.ts'
import type { BankingEvent } from './port.ts'

const text = z.string().min(1).max(255)
const memo = z.string().max(1_000).nullish().catch(null)
const envelope = z.object({
  event_id: text,
  event_category: text,
  event_type: text,
  event_object_id: text,
  event_object_status: text.nullish(),
  event_object: z
    .object({
      type: text.nullish(),
      state: text.nullish(),
      virtual_account_id: text.nullish(),
      deposit_id: text.nullish(),
      amount: z.string().max(64).nullish(),
      currency: text.nullish(),
      customer_id: text.nullish(),
      on_behalf_of: text.nullish(),
      client_reference_id: text.nullish(),
      source: z
        .object({
          sender_name: text.nullish().catch(null),
          // By rail: SEPA, wires and ACH.
          reference: memo,
          wire_message: memo,
          description: memo,
        })
        .nullish()
        .catch(null),
    })
    .nullish(),
})

const kinds: ReadonlyMap<string, BankingEvent['kind']> = new Map([
  ['virtual_account.activity', 'deposit'],
  ['virtual_account', 'account'],
  ['transfer', 'payout'],
  ['customer', 'customer'],
  ['kyc_link', 'customer'],
])

/** Activities of the account itself, not of a deposit. */
const accountStates = new Set(['account_update', 'deactivation', 'reactivation'])

/** @throws Failure `invalid_request`. */
export function readEvent(message: unknown): BankingEvent {
  const parsed = envelope.safeParse(message)
  if (!parsed.success) {
    const issues = parsed.error.issues.map(({ path, message: said }) => ({
      path: path.map(String).join('.'),
      message: said,
    }))
    throw new Failure('invalid_request', `${issues[0]?.path}: ${issues[0]?.message}`, { issues })
  }
  const { data } = parsed
  const object = data.event_object
  const state = data.event_object_status ?? object?.state ?? object?.type ?? ''
  const category = kinds.get(data.event_category) ?? 'other'
  const kind = category === 'deposit' && accountStates.has(state) ? 'account' : category
  // Each activity has its own event object id; the deposit id identifies the deposit.
  const depositId = kind === 'deposit' ? object?.deposit_id : null
  return {
    eventId: data.event_id,
    type: data.event_type,
    kind,
    objectId: depositId ?? data.event_object_id,
    reference: kind === 'payout' ? (object?.client_reference_id ?? null) : null,
    state,
    virtualAccount: object?.virtual_account_id ?? (kind === 'account' ? data.event_object_id : null),
    amount: object?.amount ?? null,
    currency: object?.currency ?? null,
    sender: kind === 'deposit' ? (object?.source?.sender_name ?? null) : null,
    memo: kind === 'deposit' ? readMemo(object?.source) : null,
    customer: object?.customer_id ?? object?.on_behalf_of ?? null,
  }
}

function readMemo(
  source:
    | { readonly [Name in 'reference' | 'wire_message' | 'description']?: string | null | undefined }
    | null
    | undefined,
): string | null {
  const written = [source?.reference, source?.wire_message, source?.description].filter((one) => one != null)
  return written.length === 0 ? null : written.join(' | ')
}
