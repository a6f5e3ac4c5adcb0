/**
 * The one place where the banking provider's reports on money are believed or not: the customer, the currency and the amount are
 * those of the account or of what was sent, and stay what they were. What does not fit is refused, and stops its object.
 */
import { isStopped, raiseAlarm } from '../alarms/alarms.ts'
import { toJson } from '../base/json.ts'
import type { Log } from '../base/log.ts'
import { Failure } from '../failures/failure.ts'
import {
  amountMismatch,
  assetDecimals,
  decimalAmount,
  type Money,
  moneyOf,
  stablecoinCurrency,
} from '../money/money.ts'
import type { BankingEvent } from '../providers/banking.ts'
import type { Connection } from '../storage/database.ts'
import type { VirtualAccount } from './store.ts'

/** Far above any deposit, and far below what a balance holds. */
const MAX_CENTS = 1_000_000_000_000n
const CENT_DECIMALS = 2

/** The sum that an event names, in its account's currency or in that of what was sent. @throws Failure `invalid_request`. */
export function parseEventAmount({ amount, currency: said }: BankingEvent, currency: Money['asset']): Money {
  if (said !== null && said.toUpperCase() !== currency)
    throw unfit('another_currency', 'currency', `the account is in ${currency}`)
  const parsed = decimalAmount.safeParse(amount?.replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, ''))
  const misfit = parsed.success ? amountMismatch(parsed.data, currency) : 'is not an amount'
  if (!parsed.success || misfit !== undefined)
    throw unfit('no_amount', 'amount', misfit ?? 'is not an amount')
  const money = moneyOf(currency, parsed.data)
  const isTooLarge = money.units > MAX_CENTS * 10n ** BigInt(assetDecimals[currency] - CENT_DECIMALS)
  if (isTooLarge) throw unfit('amount_too_large', 'amount', 'is larger than any deposit')
  return money
}

/**
 * The tokens that an event names, where the provider has converted the deposit already; null where the sum is in the account's
 * currency. @param saidUnits of the account's currency: a peg never makes more of it than there was.
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
  const most = saidUnits * 10n ** BigInt(assetDecimals[token] - assetDecimals[currency])
  if (money.units > most) throw unfit('another_amount', 'amount', 'is more than was paid in')
  return money
}

/** Judges whose deposit it is. @throws Failure `invalid_request`. */
export function requireCustomer({ customer }: BankingEvent, account: Pick<VirtualAccount, 'customer'>): void {
  if (customer === null || account.customer === null || customer === account.customer) return
  throw unfit('another_customer', 'customer_id', 'is not the holder of the account')
}

/** Judges a sum against what was said before, or sent. @throws Failure `invalid_request`. */
export function requireSame(money: Money, units: bigint | null): void {
  if (units !== null && money.units !== units)
    throw unfit('another_amount', 'amount', 'is not what it was before')
}

/** @throws Failure `conflict` where an alarm has stopped the object: the provider sends the event again later. */
export async function requireUnstopped(connection: Connection, objectId: string): Promise<void> {
  if (!(await isStopped(connection, { domain: 'banking', objectId }))) return
  throw new Failure('conflict', `${objectId} is stopped until an administrator has resolved its alarm.`)
}

/** Runs the application of an event, and raises an alarm where the event does not fit. */
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
        objectId: event.objectId,
        reason,
        reported: toJson(event),
        at,
      } as const
      await raiseAlarm({ database, log }, alarm)
    }
    throw error
  }
}

function unfit(reason: string, member: string, message: string): Failure {
  const path = `event_object.${member}`
  return new Failure('invalid_request', `${path}: ${message}`, { reason, issues: [{ path, message }] })
}
