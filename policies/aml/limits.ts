/** Thresholds of the AML rules, parsed from the deployment's configuration. */
import { defaultThresholds, type TravelRuleThresholds } from '../travel-rule.ts'
import { usdMicrosOf } from '../usd.ts'
import { defaultStructuring, type Structuring } from './structuring.ts'
import { defaultVelocity, type VelocityWindow } from './velocity.ts'

export interface AmlLimits {
  readonly velocity: readonly VelocityWindow[]
  readonly structuring: Structuring
  readonly thresholds: TravelRuleThresholds
}

/** Defaults for a deployment without its own thresholds. */
export const defaultAmlLimits: AmlLimits = {
  velocity: defaultVelocity,
  structuring: defaultStructuring,
  thresholds: defaultThresholds,
}

const WINDOW = /^(\d{1,12}(?:\.\d{1,2})?)\/([1-9]\d{0,6})(?:\/([1-9]\d{0,4}))?$/
const STRUCTURING = /^([2-9]|[1-9]\d{1,3})\/([1-9]\d{0,6})\/([1-9]\d?)$/
const THRESHOLD = /^(default|[A-Z]{2}):(\d{1,12}(?:\.\d{1,2})?)$/

/**
 * Parses windows of the form `USD/seconds` or `USD/seconds/transfers`, separated by commas; undefined for invalid
 * text.
 */
export function parseVelocity(text: string): readonly VelocityWindow[] | undefined {
  const windows = splitEntries(text).map((entry) => {
    const match = WINDOW.exec(entry)
    if (match === null) return undefined
    const [, usd = '', seconds, minCount = '1'] = match
    return { seconds: Number(seconds), maxUsdMicros: usdMicrosOf(usd), minCount: Number(minCount) }
  })
  return complete(windows)
}

/** Parses a rule of the form `transfers/seconds/percent`; undefined for invalid text. */
export function parseStructuring(text: string): Structuring | undefined {
  const match = STRUCTURING.exec(text.trim())
  if (match === null) return undefined
  const [, count, seconds, fromPercent] = match
  return { count: Number(count), seconds: Number(seconds), fromPercent: Number(fromPercent) }
}

/** Parses thresholds such as `default:1000,US:3000,EU:0`; they override the defaults. Undefined for invalid text. */
export function parseThresholds(text: string): TravelRuleThresholds | undefined {
  const named = splitEntries(text).map((entry) => {
    const match = THRESHOLD.exec(entry)
    if (match === null) return undefined
    const [, jurisdiction = '', amount = ''] = match
    return [jurisdiction, usdMicrosOf(amount)] as const
  })
  const entries = complete(named)
  return entries === undefined ? undefined : new Map([...defaultThresholds, ...entries])
}

function splitEntries(text: string): string[] {
  return text.split(',').map((entry) => entry.trim())
}

function complete<Entry>(entries: readonly (Entry | undefined)[]): readonly Entry[] | undefined {
  const found = entries.filter((entry) => entry !== undefined)
  return found.length === entries.length ? found : undefined
}
