/** Amounts of a policy: US dollars as decimal strings outside, millionths (bigint) inside. Never a float. */
import { z } from 'zod'

const PLAIN = /^(0|[1-9]\d*)(?:\.(\d+))?$/
const MICROS = 6
const CENTS = 2
const MAX_MICROS = 10n ** 18n

/** A JSON number kept in its original text, which a JavaScript number would not preserve. */
function isNumberText(value: unknown): value is { toString(): string } {
  return (
    typeof value === 'object' &&
    value !== null &&
    'isLosslessNumber' in value &&
    value.isLosslessNumber === true
  )
}

/**
 * An amount of USD in a policy: a decimal string or a JSON number above zero, at most 10^12, with at most two
 * fraction digits. Decodes to the shortest decimal string (`50.00` is `50`); excess digits are rejected, not rounded.
 */
export const policyAmount = decimal({ exclusiveMinimum: 0 })
  .superRefine((text, context) => {
    const message = findFault(text) ?? (usdMicrosOf(text) === 0n ? 'must be above zero' : undefined)
    if (message !== undefined) context.addIssue({ code: 'custom', message })
  })
  .transform((text) => usdOfMicros(usdMicrosOf(text)))
  .meta({ id: 'UsdAmount' })

/** Like {@link policyAmount}, but also accepts zero, which allows nothing. */
export const allowanceAmount = decimal({ minimum: 0 })
  .superRefine((text, context) => {
    const message = findFault(text)
    if (message !== undefined) context.addIssue({ code: 'custom', message })
  })
  .transform((text) => usdOfMicros(usdMicrosOf(text)))
  .meta({ id: 'UsdLimit' })

function decimal(least: { exclusiveMinimum: number } | { minimum: number }) {
  return z
    .preprocess(
      (value) => (isNumberText(value) ? value.toString() : value),
      z.union(
        [
          z.string().max(64).meta({ pattern: '^(0|[1-9]\\d*)(\\.\\d{1,2})?$' }),
          z.number().meta({ ...least, maximum: 1e12 }),
        ],
        { error: 'must be a decimal string or a number' },
      ),
    )
    .transform((value) => value.toString())
}

function findFault(text: string): string | undefined {
  const match = PLAIN.exec(text)
  if (match === null) return 'must be a plain decimal above zero, such as 12.50: no sign, no exponent'
  const fraction = match[2] ?? ''
  if (fraction.length > CENTS) return `has ${fraction.length} fraction digits; USD has ${CENTS}`
  return usdMicrosOf(text) > MAX_MICROS ? 'must not be over 1000000000000' : undefined
}

/**
 * Parses a limit's decimal text to millionths of a US dollar: `12.5` is 12_500_000n. For limits only: invalid text
 * counts as zero, and digits beyond the sixth are dropped, so that a bad limit allows less and never more.
 */
export function usdMicrosOf(decimal: string): bigint {
  const match = PLAIN.exec(decimal)
  if (match === null) return 0n
  const [, whole = '0', fraction = ''] = match
  return BigInt(whole + fraction.slice(0, MICROS).padEnd(MICROS, '0'))
}

/** Formats millionths of a US dollar without trailing zeros: 12_500_000n is `12.5`. */
export function usdOfMicros(micros: bigint): string {
  const sign = micros < 0n ? '-' : ''
  const text = (micros < 0n ? -micros : micros).toString().padStart(MICROS + 1, '0')
  const fraction = text.slice(-MICROS).replace(/0+$/, '')
  return `${sign}${text.slice(0, -MICROS)}${fraction === '' ? '' : `.${fraction}`}`
}
