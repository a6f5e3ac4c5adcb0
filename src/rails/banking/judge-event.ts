/**
 * Validates the banking provider's reports on money: customer, currency and amount must match the account or the
 * payout and stay the same. A mismatch is rejected and stops its object.
 */
import { isStopped, raiseAlarm } from '../../books/alarms/alarms.ts'
import { type Json, toJson } from '../../core/base/json.ts'
import type { Log } from '../../core/base/log.ts'
import { Failure } from '../../core/failures/failure.ts'
import {
  amountMismatch,
  assetDecimals,
  decimalAmount,
  type Money,
  moneyOf,
  stablecoinCurrency,
} from '../../core/money/money.ts'
import type { BankingEvent } from '../../providers/banking/port.ts'
import type { Connection } from '../../storage/database.ts'
import type { VirtualAccount } from './store.ts'

/** Far above any deposit, and far below what a balance holds. */
const MAX_CENTS = 1_000_000_000_000n
const CENT_DECIMALS = 2

/** Parses an event's amount, which must be in the given currency. @throws Failure `invalid_request`. */
export function parseEventAmount({ amount, currency: said }: BankingEvent, currency: Money['asset']): Money {
  if (said !== null && said.toUpperCase() !== currency)
    throw mismatch('another_currency', 'currency', `the account is in ${currency}`)
  const parsed = decimalAmount.safeParse(amount?.replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, ''))
  const misfit = parsed.success ? amountMismatch(parsed.data, currency) : 'is not an amount'
  if (!parsed.success || misfit !== undefined)
    throw mismatch('no_amount', 'amount', misfit ?? 'is not an amount')
  const money = moneyOf(currency, parsed.data)
  const isTooLarge = money.units > MAX_CENTS * 10n ** BigInt(assetDecimals[currency] - CENT_DECIMALS)
  if (isTooLarge) throw mismatch('amount_too_large', 'amount', 'exceeds the maximum deposit')
  return money
}

/**
 * Parses the tokens of an event whose deposit the provider has already converted; null when the amount is in the
 * account's currency.
 * @param saidUnits reported units of the account's currency; for a pegged token the amount must not exceed them.
 * @throws Failure `invalid_request`.
 */
export function creditedTokens(
  event: BankingEvent,
  { currency, destination }: Pick<VirtualAccount, 'currency' | 'destination'>,
  saidUnits: bigint | null,
): Money | null {
  const token = destination?.token
  if (token === undefined || event.currency?.toUpperCase() !== token) return null
  const money = parseEventAmount(event, token)
  if (saidUnits === null || stablecoinCurrency[token] !== currency) return money
  const max = saidUnits * 10n ** BigInt(assetDecimals[token] - assetDecimals[currency])
  if (money.units > max) throw mismatch('another_amount', 'amount', 'is more than was paid in')
  return money
}

/** Checks that the deposit belongs to the account's holder. @throws Failure `invalid_request`. */
export function requireCustomer({ customer }: BankingEvent, account: Pick<VirtualAccount, 'customer'>): void {
  if (customer === null || account.customer === null || customer === account.customer) return
  throw mismatch('another_customer', 'customer_id', 'differs from the holder of the account')
}

/** Checks an amount against the one reported or sent earlier. @throws Failure `invalid_request`. */
export function requireSame(money: Money, units: bigint | null): void {
  if (units !== null && money.units !== units)
    throw mismatch('another_amount', 'amount', 'differs from the earlier amount')
}

/** @throws Failure `conflict` when an alarm has stopped the object; the provider resends the event later. */
export async function requireUnstopped(connection: Connection, objectId: string): Promise<void> {
  if (!(await isStopped(connection, { domain: 'banking', objectId }))) return
  throw new Failure('conflict', `${objectId} is stopped until an administrator has resolved its alarm.`)
}

/** Facts of an event that an alarm keeps. The sender is left out, because it is a person's name. */
export function toReported({ sender: _sender, ...event }: BankingEvent): Json {
  return toJson(event)
}

/** Runs the application of an event and raises an alarm when the event is invalid. */
export async function withAlarm<Result>(
  { database, log }: { readonly database: Connection; readonly log: Log },
  { event, at }: { readonly event: BankingEvent; readonly at: Date },
  apply: () => Promise<Result>,
): Promise<Result> {
  try {
    return await apply()
  } catch (error) {
    const reason = error instanceof Failure && error.code === 'invalid_request' && error.members.reason
    if (typeof reason === 'string') {
      const alarm = {
        domain: 'banking',
        objectId: await findAlarmObject(database, event),
        reason,
        reported: toReported(event),
        at,
      } as const
      await raiseAlarm({ database, log }, alarm)
    }
    throw error
  }
}

/** An alarm stops a payout under our id, because the provider's may be false. */
async function findAlarmObject(
  database: Connection,
  { kind, objectId, reference }: BankingEvent,
): Promise<string> {
  if (kind !== 'payout') return objectId
  const known = database.kysely.selectFrom('payout').select('id')
  const row =
    (await known.where('provider_id', '=', objectId).executeTakeFirst()) ??
    (reference === null ? undefined : await known.where('id', '=', reference).executeTakeFirst())
  return row?.id ?? objectId
}

function mismatch(reason: string, member: string, message: string): Failure {
  const path = `event_object.${member}`
  return new Failure('invalid_request', `${path}: ${message}`, { reason, issues: [{ path, message }] })
}
