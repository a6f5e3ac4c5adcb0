/**
 * Payouts over Bridge: a bank account is an external account of the customer, and a payout is a transfer to it that is
 * funded on the chain. Bridge holds no cash of an owner, so cash cannot be paid out.
 * @see https://apidocs.bridge.xyz/docs/transfers-1
 */
import { isAddress } from 'viem'
import { z } from 'zod'
import { toAlpha3 } from '../../core/base/alpha-3.ts'
import type { Log } from '../../core/base/log.ts'
import { Failure } from '../../core/failures/failure.ts'
import { assetDecimals, type Money, stablecoins, toDecimal } from '../../core/money/money.ts'
import type { Address } from '../chain/port.ts'
import { callProvider } from '../http-client.ts'
import { askBridge } from './ask-bridge.ts'
import {
  type BankAccountNumber,
  type BankPayouts,
  type BankRecipient,
  type PayoutCurrency,
  type PayoutOrder,
  type PayoutQuote,
  type PayoutReport,
  payoutCurrencies,
  type QuotablePayout,
} from './port.ts'

/** A person is waiting. */
const TIMEOUT_MS = 8_000
/** Bridge's own minimum for a transfer, in whole units. */
const MIN_WHOLE = 1n
const CENT_DECIMALS = 2
const DAY_MS = 24 * 60 * 60_000
/** Dollars are converted one to one, whenever that is. */
const FIRM_MS = 10 * 60_000
const SETTLE_DAYS: Readonly<Record<PayoutCurrency, number>> = { USD: 2, EUR: 1, GBP: 1 }
const rails: Readonly<Record<PayoutCurrency, string>> = { USD: 'ach', EUR: 'sepa', GBP: 'faster_payments' }

const text = z.string().min(1).max(255)
const external = z.object({ id: text })
const rates = z.object({ sell_rate: z.string().regex(/^\d{1,9}(\.\d{1,18})?$/) })
const transfer = z.object({
  id: text,
  state: text,
  client_reference_id: text.nullish(),
  source_deposit_instructions: z
    .object({ to_address: text.nullish(), amount: text.nullish(), currency: text.nullish() })
    .nullish(),
})

export function createBridgePayouts({
  url,
  apiKey,
  log,
}: {
  readonly url: string
  readonly apiKey: string | null
  readonly log: Log
}): BankPayouts {
  const ask = async <Shape extends z.ZodType>(
    path: string,
    shape: Shape,
    post: { readonly key: string; readonly body: unknown } | null = null,
  ): Promise<z.output<Shape>> => {
    if (apiKey === null) throw buildRejection('not_configured', 'This deployment has no banking provider.')
    try {
      const response = await askBridge({ url, apiKey }, path, post)
      if (isRefusal(response.status))
        throw buildRejection(
          'provider_refused',
          `The banking provider refused the payout (${response.status}).`,
        )
      if (!response.ok) throw new Error(`the provider answered ${response.status}`)
      return shape.parse(JSON.parse(response.text))
    } catch (cause) {
      if (cause instanceof Failure) throw cause
      log.warn({ err: cause, path: path.replace(/\?.*/, '') }, 'the banking provider did not answer a payout')
      throw new Failure(
        'provider_unavailable',
        'The banking provider did not confirm the payout.',
        { retryAfter: 5 },
        { cause },
      )
    }
  }
  /** @returns the status of the answer. @see https://apidocs.bridge.xyz/api-reference/transfers/delete-a-transfer */
  const cancel = async (path: string): Promise<number> => {
    try {
      const headers = { 'api-key': apiKey ?? '' }
      return (await callProvider({ url: `${url}${path}`, method: 'DELETE', headers, timeoutMs: TIMEOUT_MS }))
        .status
    } catch (cause) {
      throw notCanceled('The banking provider cannot be reached.', cause)
    }
  }
  return {
    // Bridge's fees are the operator's own, and none is asked for.
    payoutFees: payoutCurrencies.map((currency) => ({ currency, cents: 0n, spreadBps: 0 })),
    quotePayout: async (asked, now) => {
      const { currency } = asked
      const money = moneyToSend(asked)
      requirePayable(money)
      const eta = new Date(now.getTime() + SETTLE_DAYS[currency] * DAY_MS)
      if (currency === 'USD')
        return { ...quoteAt(money, '1', eta), firmUntil: new Date(now.getTime() + FIRM_MS) }
      const { sell_rate } = await ask(`/v0/exchange_rates?from=usd&to=${currency.toLowerCase()}`, rates)
      return { ...quoteAt(money, sell_rate, eta), firmUntil: null }
    },
    registerRecipient: async (recipient) => {
      if (recipient.customer === null)
        throw buildRejection(
          'no_customer',
          'The banking provider does not know the account.',
          'Open a bank account first: POST /api/banking.',
        )
      const path = `/v0/customers/${encodeURIComponent(recipient.customer)}/external_accounts`
      return (await ask(path, external, { key: recipient.id, body: buildExternalAccount(recipient) })).id
    },
    sendPayout: async (order) => {
      requirePayable(order.money)
      return toReport(
        await ask('/v0/transfers', transfer, { key: order.id, body: buildTransfer(order) }),
        order,
      )
    },
    findPayout: async (providerId) => {
      const found = await ask(buildPath(providerId), transfer)
      return { providerId: found.id, state: found.state, depositTo: parseDepositAddress(found) }
    },
    // A transfer that was sent can be canceled no more, and there is no request to return it.
    requestReturn: null,
    awaitsFunds: (state) => state === 'awaiting_funds',
    cancelPayout: async (providerId) => {
      const status = await cancel(buildPath(providerId))
      if (status < 400 || status === 404) return
      const { state } = await ask(buildPath(providerId), transfer)
      if (state !== 'canceled') throw notCanceled(`The banking provider did not cancel a payout (${state}).`)
    },
  }
}

function buildPath(providerId: string): string {
  return `/v0/transfers/${encodeURIComponent(providerId)}`
}

function notCanceled(detail: string, cause?: unknown): Failure {
  return new Failure('provider_unavailable', detail, { retryAfter: 60 }, { cause })
}

/** A final rejection: neither a conflict nor a status that a retry may fix. */
function isRefusal(status: number): boolean {
  return status >= 400 && status < 500 && ![408, 409, 425, 429].includes(status)
}

/**
 * Money that leaves. Bridge converts when the money arrives, so only what stays in dollars is certain before.
 * @see https://apidocs.bridge.xyz/get-started/guides/move-money/fixed_outputs_integration_guide (only on request)
 * @throws Failure `payout_rejected`.
 */
function moneyToSend(asked: QuotablePayout): Money {
  if ('money' in asked) return asked.money
  const { asset, currency, recipientUnits } = asked
  if (currency !== 'USD')
    throw buildRejection(
      'amount_not_firm',
      `The banking provider converts to ${currency} later and promises no amount.`,
      'Send `amount`: POST /api/banking/payouts/quote tells about how much arrives.',
    )
  return { asset, units: recipientUnits * 10n ** BigInt(assetDecimals[asset] - CENT_DECIMALS) }
}

/** @throws Failure `payout_rejected`. */
function requirePayable(money: Money): void {
  if (!stablecoins.some((token) => token === money.asset))
    throw buildRejection('asset_not_supported', `${money.asset} cannot be paid out here.`, 'Pay out USDC.')
  if (money.units < MIN_WHOLE * 10n ** BigInt(assetDecimals[money.asset]))
    throw buildRejection(
      'amount_too_small',
      `${toDecimal(money)} ${money.asset} is less than the minimum of 1.`,
    )
  // The bank has cents, and what it cannot pay must not be taken.
  if (money.units % 10n ** BigInt(assetDecimals[money.asset] - CENT_DECIMALS) !== 0n)
    throw buildRejection('amount_not_in_cents', `${toDecimal(money)} ${money.asset} has fractions of a cent.`)
}

/** The recipient's amount, rounded down to cents. */
function quoteAt(money: Money, rate: string, eta: Date): Omit<PayoutQuote, 'firmUntil'> {
  const [whole = '0', fraction = ''] = rate.split('.')
  const over = BigInt(whole + fraction) * 10n ** BigInt(CENT_DECIMALS)
  const under = 10n ** BigInt(fraction.length + assetDecimals[money.asset])
  return { money, fee: 0n, rate, recipientUnits: (money.units * over) / under, eta }
}

function buildTransfer({
  id,
  money,
  currency,
  recipient,
  providerRecipient,
  reference,
  source,
}: PayoutOrder) {
  return {
    client_reference_id: id,
    on_behalf_of: recipient.customer,
    amount: toDecimal(money),
    source: {
      payment_rail: source?.chain.replace('-', '_'),
      currency: money.asset.toLowerCase(),
      from_address: source?.address,
    },
    destination: {
      payment_rail: rails[currency],
      currency: currency.toLowerCase(),
      external_account_id: providerRecipient,
      ...buildReference(currency, reference),
    },
  }
}

/** Bridge names the reference by rail. An ACH reference has at most ten characters, a SEPA one at least six. */
function buildReference(
  currency: PayoutCurrency,
  reference: string | null,
): Readonly<Record<string, string>> {
  if (reference === null) return {}
  if (currency === 'USD') return reference.length <= 10 ? { ach_reference: reference } : {}
  return currency === 'EUR' && reference.length >= 6 ? { sepa_reference: reference } : {}
}

/** @throws Failure `provider_unavailable` when the answer is about another payout or contradicts it. */
function toReport(answer: z.output<typeof transfer>, { id, money, source }: PayoutOrder): PayoutReport {
  const { to_address: to = null, amount, currency } = answer.source_deposit_instructions ?? {}
  const isOther = answer.client_reference_id !== undefined && answer.client_reference_id !== null
  const contradicts =
    (isOther && answer.client_reference_id !== id) ||
    (currency != null && currency.toUpperCase() !== money.asset) ||
    (amount != null && plain(amount) !== toDecimal(money)) ||
    (to !== null && !isAddress(to, { strict: false }))
  if (contradicts)
    throw new Failure('provider_unavailable', 'The banking provider answered with another payout.', {
      retryAfter: 60,
    })
  return {
    providerId: answer.id,
    state: answer.state,
    depositTo: source === null ? null : parseDepositAddress(answer),
  }
}

/** Address on the chain that the transfer waits for money at, in lower case; null if none is named. */
function parseDepositAddress({ source_deposit_instructions: to }: z.output<typeof transfer>): Address | null {
  const address = to?.to_address ?? ''
  return isAddress(address, { strict: false }) ? `0x${address.slice(2).toLowerCase()}` : null
}

/** A decimal as Bridge writes it (`50`, `50.0`), without zeros at the end of its fraction. */
function plain(decimal: string): string {
  return decimal.includes('.') ? decimal.replace(/\.?0+$/, '') : decimal
}

function buildExternalAccount(recipient: BankRecipient) {
  const { currency, name, isCompany, country, account, address } = recipient
  const [firstName = name, ...rest] = name.split(' ')
  return {
    currency: currency.toLowerCase(),
    account_owner_name: name,
    account_owner_type: isCompany ? 'business' : 'individual',
    ...(isCompany
      ? { business_name: name }
      : { first_name: firstName, last_name: rest.join(' ') || firstName }),
    ...buildAccountNumber(account, country),
    ...(address === null
      ? {}
      : {
          address: {
            street_line_1: address.line1,
            ...(address.line2 === null ? {} : { street_line_2: address.line2 }),
            city: address.city,
            ...(address.region === null ? {} : { state: address.region }),
            ...(address.postalCode === null ? {} : { postal_code: address.postalCode }),
            country: toAlpha3(address.country),
          },
        }),
  }
}

function buildAccountNumber(account: BankAccountNumber, country: string) {
  if (account.scheme === 'iban')
    return {
      account_type: 'iban',
      iban: {
        account_number: account.iban,
        ...(account.bic === null ? {} : { bic: account.bic }),
        country: toAlpha3(country),
      },
    }
  if (account.scheme === 'uk')
    return {
      account_type: 'gb',
      account: { account_number: account.accountNumber, sort_code: account.sortCode },
    }
  return {
    account_type: 'us',
    account: {
      account_number: account.accountNumber,
      routing_number: account.routingNumber,
      checking_or_savings: account.type,
    },
  }
}

function buildRejection(reason: string, detail: string, hint?: string): Failure {
  return new Failure('payout_rejected', `${detail} Nothing was sent.`, { reason, isFinal: true, hint })
}
