/**
 * Identifiers: TypeIDs, a type prefix and a UUIDv7 in Crockford base32, so that ids sort by time.
 * @see https://github.com/jetify-com/typeid/tree/main/spec
 */
import { random } from './random.ts'

const CROCKFORD = '0123456789abcdefghjkmnpqrstvwxyz'

/** All id prefixes. */
export type IdPrefix =
  | 'acct'
  | 'key'
  | 'card'
  | 'va'
  | 'ord'
  | 'tx'
  | 'quote'
  | 'pay'
  | 'appr'
  | 'dec'
  | 'kyc'
  | 'tr'
  | 'evt'
  | 'sess'
  | 'chal'
  | 'pk'
  | 'msg'
  | 'req'
  | 'int'
  | 'sgn'
  | 'rev'
  | 'jrn'
  | 'buy'
  | 'swp'
  | 'whk'
  | 'whd'
  | 'push'
  | 'rcp'
  | 'out'
  | 'ret'
  | 'rec'
  | 'sch'
  | 'ntf'
  | 'con'
  | 'inv'
  | 'fnd'

/** An id such as `acct_01h455vb4pex5vsknk084sn02q`. */
export type Id<Prefix extends IdPrefix> = `${Prefix}_${string}`

export type NewId = <Prefix extends IdPrefix>(prefix: Prefix, at: Date) => Id<Prefix>

/** @param at time in the leading 48 bits (UUIDv7, RFC 9562). */
export const newId: NewId = (prefix, at) => {
  const bytes = random.bytes(16)
  bytes.writeUIntBE(at.getTime(), 0, 6)
  bytes[6] = (bytes.readUInt8(6) & 0x0f) | 0x70
  bytes[8] = (bytes.readUInt8(8) & 0x3f) | 0x80
  return `${prefix}_${base32(bytes)}`
}

const TIME_DIGITS = 10

/** Sorts before every id with the prefix that was created at the time or later, and after all earlier ones. */
export function firstIdAt(prefix: IdPrefix, at: Date): string {
  return `${prefix}_${crockford(at.getTime(), TIME_DIGITS)}`
}

/** The creation time of an id; null if {@link newId} did not create it. */
export function readIdTime(id: string): Date | null {
  const digits = /^[a-z]+_([0-9a-hjkmnp-tv-z]{26})$/.exec(id)?.[1]?.slice(0, TIME_DIGITS)
  if (digits === undefined) return null
  const time = new Date([...digits].reduce((sum, digit) => sum * 32 + CROCKFORD.indexOf(digit), 0))
  return Number.isNaN(time.getTime()) ? null : time
}

/** Cryptographically random bytes as base64url. @param length number of bytes. */
export function randomToken(length: number): string {
  return random.bytes(length).toString('base64url')
}

/** Cryptographically random decimal digits. @param length number of digits. */
export function randomDigits(length: number): string {
  return Array.from({ length }, () => random.below(10)).join('')
}

/** Parts of at most 53 bits: one bigint of all 128 took ten times as long. */
function base32(bytes: Buffer): string {
  const time = crockford(bytes.readUIntBE(0, 6), TIME_DIGITS)
  return `${time}${crockford(bytes.readUIntBE(6, 5), 8)}${crockford(bytes.readUIntBE(11, 5), 8)}`
}

/** Writes a whole number of at most 53 bits, most significant digit first. */
function crockford(number: number, digits: number): string {
  let rest = number
  let text = ''
  for (let digit = 0; digit < digits; digit += 1) {
    text = CROCKFORD.charAt(rest % 32) + text
    rest = Math.floor(rest / 32)
  }
  return text
}
