/**
 * Rates of the sandbox: one real publication, and from its day on a generated walk, so that rates change daily like real
 * ones, are the same on every machine, and need no network. The source says that they are generated.
 * @see https://www.ecb.europa.eu/stats/policy_and_exchange_rates/euro_reference_exchange_rates
 */
import { createHash } from 'node:crypto'
import type { RateTable } from '../../core/money/rate-table.ts'
import type { Rates } from './port.ts'

/** Publication date of the European Central Bank's reference rates: Friday, 28 June 2024. */
const PUBLISHED = '2024-06-28T00:00:00.000Z'

/**
 * Units of each currency for 1 EUR, with the digits printed by the ECB. Bulgaria still had the lev (euro since 2026).
 */
export const published = {
  EUR: '1',
  USD: '1.0705',
  JPY: '171.94',
  BGN: '1.9558',
  CZK: '25.025',
  DKK: '7.4575',
  GBP: '0.84638',
  HUF: '395.10',
  PLN: '4.3090',
  RON: '4.9773',
  SEK: '11.3595',
  CHF: '0.9634',
  ISK: '148.90',
  NOK: '11.3965',
  TRY: '35.1868',
  AUD: '1.6079',
  BRL: '5.8915',
  CAD: '1.4670',
  CNY: '7.7748',
  HKD: '8.3594',
  IDR: '17487.21',
  ILS: '4.0200',
  INR: '89.2495',
  KRW: '1474.86',
  MXN: '19.5654',
  MYR: '5.0501',
  NZD: '1.7601',
  PHP: '62.560',
  SGD: '1.4513',
  THB: '39.319',
  ZAR: '19.4970',
} as const

/** The publication itself, unchanged on every day. */
const snapshot: RateTable = {
  source: 'ECB euro reference rates of 2024-06-28 (sandbox snapshot)',
  asOf: new Date(PUBLISHED),
  perEuro: new Map(Object.entries(published)),
}

/** Rates that never change, for calculations with known results. */
export function createSnapshotRates(): Rates {
  return { latest: async () => snapshot }
}

/** Rates of the newest working day: the publication, moved by the walk. */
export function createSandboxRates(): Rates {
  let table = snapshot
  return {
    latest: async (now) => {
      const asOf = newestPublication(now)
      if (asOf.getTime() !== table.asOf.getTime()) table = generateTable(asOf)
      return table
    },
  }
}

const DAY_MS = 24 * 60 * 60 * 1000
const FIRST_DAY = Math.round(Date.parse(PUBLISHED) / DAY_MS)

/** The European Central Bank publishes on working days. */
function newestPublication(now: Date): Date {
  const day = Math.max(Math.floor(now.getTime() / DAY_MS), FIRST_DAY)
  const weekday = new Date(day * DAY_MS).getUTCDay()
  const daysSinceWork = weekday === 0 ? 2 : weekday === 6 ? 1 : 0
  return new Date((day - daysSinceWork) * DAY_MS)
}

function generateTable(asOf: Date): RateTable {
  const day = Math.round(asOf.getTime() / DAY_MS)
  if (day === FIRST_DAY) return snapshot
  const perEuro = Object.entries(published).map(
    ([code, rate]) =>
      [code, code === 'EUR' ? rate : shiftRate(rate, drift(code, day) - drift(code, FIRST_DAY))] as const,
  )
  return {
    source: `Generated for the sandbox from the ECB euro reference rates of 2024-06-28, for ${asOf.toISOString().slice(0, 10)}`,
    asOf,
    perEuro: new Map(perEuro),
  }
}

/** Waves of a walk: days between two turning points, and the largest height in parts per million. */
const waves = [
  { days: 64, height: 30_000 },
  { days: 8, height: 8_000 },
  { days: 1, height: 2_000 },
] as const

/** Distance of a currency from its base on a day, in parts per million: never more than the sum of the heights. */
function drift(code: string, day: number): bigint {
  return waves.reduce((sum, { days, height }) => {
    const turn = Math.floor(day / days)
    const passed = BigInt(day - turn * days)
    const [from, to] = [turningPoint(code, days, turn, height), turningPoint(code, days, turn + 1, height)]
    return sum + from + ((to - from) * passed) / BigInt(days)
  }, 0n)
}

function turningPoint(code: string, days: number, turn: number, height: number): bigint {
  const hash = createHash('sha256').update(`${code}:${days}:${turn}`).digest()
  return BigInt((hash.readUInt32BE(0) % (2 * height + 1)) - height)
}

/** Moves a rate by parts per million, rounded to the digits it has. */
function shiftRate(rate: string, partsPerMillion: bigint): string {
  const [whole = '', fraction = ''] = rate.split('.')
  const units = (BigInt(whole + fraction) * (1_000_000n + partsPerMillion) + 500_000n) / 1_000_000n
  const digits = units.toString().padStart(fraction.length + 1, '0')
  return fraction === '' ? digits : `${digits.slice(0, -fraction.length)}.${digits.slice(-fraction.length)}`
}
