/**
 * The sandbox's price feed, derived only from symbol, seed and second, so that every process computes the same past
 * and present prices. Smooth noise of ever shorter periods surrounds a slow drift from the reference price; each
 * period has the amplitude of a random walk over it. Floating point stays inside: the results are whole cents, in
 * nano-dollars.
 */
import { instruments, REFERENCE_DATE } from './sandbox-instruments.ts'

const SECOND = 1_000
const DAY_S = 86_400
const YEAR_S = 365 * DAY_S

/** Wave periods in seconds, and the daily volatility. */
const periods = [90 * DAY_S, 30 * DAY_S, 7 * DAY_S, DAY_S, 14_400, 3_600, 600, 60, 10]
const DAILY_STRAY = 0.007
const YEARLY_DRIFT = 0.06

/** One cent in nano-dollars. */
const CENT = 10_000_000n

const reference = new Map(instruments.map(([symbol, , price]) => [symbol, Number(price)]))
const referenceSecond = Date.parse(`${REFERENCE_DATE}T20:00:00Z`) / SECOND

/** Seed of the sandbox's prices. */
const SEED = 'bursar'

/** Returns the price of a symbol at a moment. */
export type Feed = (symbol: string, at: Date) => bigint | undefined

/** Creates a feed. @param seed selects another set of prices. @returns nano-dollars per share, in whole cents. */
export function createFeed(seed = SEED): Feed {
  return (symbol, at) => {
    const from = reference.get(symbol)
    if (from === undefined) return undefined
    const second = Math.floor(at.getTime() / SECOND)
    const key = hashText(`${seed}:${symbol}`)
    const drift = (YEARLY_DRIFT * (second - referenceSecond)) / YEAR_S
    const stray = periods.reduce(
      (sum, period, wave) =>
        sum + DAILY_STRAY * Math.sqrt(period / DAY_S) * noise(key + wave, second / period),
      0,
    )
    const cents = Math.max(1, Math.round(from * 100 * Math.exp(drift + stray)))
    return BigInt(cents) * CENT
  }
}

/** Smooth noise from -1 to 1. */
function noise(key: number, position: number): number {
  const whole = Math.floor(position)
  const part = position - whole
  const [here, there] = [lattice(key, whole), lattice(key, whole + 1)]
  return here + (there - here) * part * part * (3 - 2 * part)
}

function lattice(key: number, point: number): number {
  return (mix(mix(key) ^ mix(point | 0)) / 0xffffffff) * 2 - 1
}

/** Spreads the bits of a 32-bit number. @see https://github.com/aappleby/smhasher (the finalizer of MurmurHash3) */
function mix(value: number): number {
  let hash = value | 0
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

/** Hashes a text to 32 bits (FNV-1a). */
export function hashText(text: string): number {
  let hash = 0x811c9dc5
  for (const character of Buffer.from(text)) hash = Math.imul(hash ^ character, 0x01000193)
  return mix(hash)
}
