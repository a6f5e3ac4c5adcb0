/**
 * Payouts of the sandbox's bank. It keeps nothing: a payout's state follows from its age, so that it survives restarts.
 * The end of an account number decides otherwise: `0000` waits for POST /sandbox/payouts, `0001` is not accepted.
 */
import { createHash } from 'node:crypto'
import { readIdTime } from '../../core/base/ids.ts'
import { Failure } from '../../core/failures/failure.ts'
import {
  convertRoundingDown,
  crossRateDown,
  rateText,
  sourceRoundingUp,
} from '../../core/money/cross-rate.ts'
import { findCurrency } from '../../core/money/currencies.ts'
import { assetDecimals, toDecimal } from '../../core/money/money.ts'
import type { Address } from '../chain/port.ts'
import type { Rates } from '../rates/port.ts'
import {
  type BankAccountNumber,
  type BankPayouts,
  type PayoutCurrency,
  type PayoutQuote,
  payoutCurrencies,
  type QuotablePayout,
} from './port.ts'

const SUBMITTED_MS = 500
const PAID_MS = 2_000
const DAY_MS = 24 * 60 * 60_000
/** How long the sandbox's bank keeps to its rate. */
const FIRM_MS = 10 * 60_000

/** Fees in cents of a dollar, and the spread of a conversion in basis points. */
const FEE_CENTS = { USD: 25n, EUR: 50n, GBP: 50n } as const
const SPREAD_BPS = 50
const MIN_CENTS = 100n
const MAX_CENTS = 100_000_000n
const CENT_DECIMALS = 2

const WAITS = '0000'
const REFUSED = '0001'

export function createSandboxPayouts({ rates }: { rates: Rates }): BankPayouts {
  return {
    quotePayout: async (asked, now) => quotePayout(rates, asked, now),
    payoutFees: payoutCurrencies.map((currency) => ({
      currency,
      cents: FEE_CENTS[currency],
      spreadBps: currency === 'USD' ? 0 : SPREAD_BPS,
    })),
    registerRecipient: async ({ id, account }) => {
      if (readAccountNumber(account).endsWith(REFUSED))
        throw new Failure('payout_rejected', 'The bank does not accept this account.', {
          reason: 'recipient_rejected',
          isFinal: true,
          hint: 'In the sandbox, account numbers that end in 0001 are not accepted.',
        })
      return `${readAccountNumber(account).endsWith(WAITS) ? 'wait' : 'bank'}_${id}`
    },
    sendPayout: async ({ id, providerRecipient, source }) => ({
      providerId: `${providerRecipient.startsWith('wait_') ? 'wait' : 'bank'}_${id}`,
      state: 'awaiting_funds',
      depositTo: source === null ? null : deriveDepositAddress(id),
    }),
    findPayout: async (providerId, now) => ({
      providerId,
      state: stateAt(providerId, now),
      depositTo: null,
    }),
    // A state follows from the age, funded or not.
    awaitsFunds: () => true,
    cancelPayout: async () => {},
    // POST /sandbox/recourse decides.
    requestReturn: async () => true,
  }
}

/** Address that receives the stablecoins of a payout, one for each. */
function deriveDepositAddress(id: string): Address {
  return `0x${createHash('sha256').update(`sandbox bank ${id}`).digest('hex').slice(0, 40)}`
}

/** @throws Failure `payout_rejected`, `rates_unavailable`. */
async function quotePayout(rates: Rates, asked: QuotablePayout, now: Date): Promise<PayoutQuote> {
  const { currency } = asked
  const asset = 'money' in asked ? asked.money.asset : asked.asset
  if (asset !== 'USD' && asset !== 'USDC')
    throw buildRejection('asset_not_supported', `${asset} cannot be paid out; USD and USDC can.`)
  const decimals = assetDecimals[asset]
  const perCent = 10n ** BigInt(decimals - CENT_DECIMALS)
  const fee = FEE_CENTS[currency] * perCent
  const rate = currency === 'USD' ? 10_000_000_000n : await crossRate(rates, currency, now)
  const money =
    'money' in asked
      ? asked.money
      : { asset, units: fee + sourceRoundingUp(asked.recipientUnits, decimals, rate, CENT_DECIMALS) }
  if (money.units < MIN_CENTS * perCent)
    throw buildRejection(
      'amount_too_small',
      `${toDecimal(money)} ${money.asset} is less than the minimum of 1.`,
    )
  if (money.units > MAX_CENTS * perCent)
    throw buildRejection(
      'amount_too_large',
      `${toDecimal(money)} ${money.asset} is over the maximum of 1000000.`,
    )
  return {
    money,
    fee,
    rate: rateText(rate),
    recipientUnits:
      'money' in asked
        ? convertRoundingDown(money.units - fee, decimals, rate, CENT_DECIMALS)
        : asked.recipientUnits,
    eta: new Date(now.getTime() + DAY_MS),
    firmUntil: new Date(now.getTime() + FIRM_MS),
  }
}

async function crossRate(rates: Rates, currency: PayoutCurrency, now: Date): Promise<bigint> {
  const table = await rates.latest(now)
  const [from, to] = [findCurrency(table, 'USD'), findCurrency(table, currency)]
  if (from === undefined || to === undefined)
    throw new Failure('rates_unavailable', `There is no rate from USD to ${currency}.`, { retryAfter: 60 })
  return crossRateDown(from, to, SPREAD_BPS)
}

function stateAt(providerId: string, now: Date): string {
  const [kind = '', ...rest] = providerId.split('_')
  const sentAt = readIdTime(rest.join('_'))
  const ageMs = sentAt === null ? 0 : now.getTime() - sentAt.getTime()
  if (ageMs < SUBMITTED_MS) return 'awaiting_funds'
  return ageMs < PAID_MS || kind === 'wait' ? 'payment_submitted' : 'payment_processed'
}

function readAccountNumber(account: BankAccountNumber): string {
  return account.scheme === 'iban' ? account.iban : account.accountNumber
}

function buildRejection(reason: string, detail: string): Failure {
  return new Failure('payout_rejected', `${detail} Nothing was sent.`, { reason, isFinal: true })
}
