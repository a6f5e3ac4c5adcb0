/**
 * Destinations of one-time codes. Input is normalized; the database stores a keyed hash and the encrypted address, so
 * that it reveals no address.
 */
import { z } from 'zod'
import { keyedHash, seal, unseal } from '../../../core/base/seal.ts'
import { Failure } from '../../../core/failures/failure.ts'
import type { Channel } from '../../../providers/messages/port.ts'

/** A normalized e-mail address or phone number. */
export interface Destination {
  readonly channel: Channel
  /** Lower case, or E.164. Never logged; stored only by {@link sealAddress}. */
  readonly address: string
  /** Keyed hash that identifies the destination. */
  readonly hash: string
  /** Country calling code of a phone number, such as `49`. */
  readonly callingCode: string | null
  /** Masked form that its owner recognizes, such as `a•••@example.com`. */
  readonly masked: string
}

const email = z.string().trim().toLowerCase().max(254).pipe(z.email())

/** Normalizes user input. @throws Failure `invalid_request` on `destination`. */
export async function parseDestination(
  { dataKey }: { readonly dataKey: Uint8Array },
  { channel, destination }: { channel: Channel; destination: string },
): Promise<Destination> {
  const found = channel === 'email' ? mailbox(destination) : await phone(destination)
  if (found === undefined)
    throw invalid(
      channel === 'email'
        ? 'must be an e-mail address'
        : 'must be a phone number with country code, such as +4915112345678',
    )
  return { channel, ...found, hash: keyedHash(dataKey, 'destination', `${channel}:${found.address}`) }
}

/** Encrypts the address, base64url. Bound to the destination's hash. */
export function sealAddress(
  { dataKey }: { readonly dataKey: Uint8Array },
  { hash, address }: Pick<Destination, 'hash' | 'address'>,
): string {
  return Buffer.from(seal(dataKey, { purpose: 'address', owner: hash }, address)).toString('base64url')
}

/** Decrypts an address from {@link sealAddress}. @param sealed raw bytes. */
export function unsealAddress(
  { dataKey }: { readonly dataKey: Uint8Array },
  { hash, sealed }: { hash: string; sealed: Uint8Array },
): string {
  return unseal(dataKey, { purpose: 'address', owner: hash }, sealed)
}

function mailbox(text: string) {
  const { data: address } = email.safeParse(text)
  if (address === undefined) return undefined
  return {
    address,
    callingCode: null,
    masked: `${address.charAt(0)}•••${address.slice(address.indexOf('@'))}`,
  }
}

/** Number types that cost the sender more, or that cannot receive messages. */
const tolled: ReadonlySet<string> = new Set([
  'PREMIUM_RATE',
  'SHARED_COST',
  'TOLL_FREE',
  'UAN',
  'VOICEMAIL',
  'PAGER',
  'PERSONAL_NUMBER',
])

/** Satellite phones within national numbering plans. Those with a country code of their own belong to no country. */
const SATELLITE = /^\+(?:6114[57]|7954)/

/** Requires a leading +, because the country would be a guess otherwise. */
async function phone(text: string) {
  const given = text.trim()
  if (!given.startsWith('+')) return undefined
  // Loaded on first use: 150 KB of numbering plans, with number types.
  const { parsePhoneNumberFromString } = await import('libphonenumber-js/max')
  const number = parsePhoneNumberFromString(given, { extract: false })
  if (number === undefined || !number.isValid() || number.ext !== undefined) return undefined
  // Codes such as +870 and +881 (satellite), +882, +883 and +979 (premium) belong to no country.
  if (number.isNonGeographic() || SATELLITE.test(number.number)) return undefined
  if (tolled.has(number.getType() ?? '')) return undefined
  const { number: address, countryCallingCode: callingCode } = number
  return { address, callingCode, masked: `+${callingCode}•••${address.slice(-2)}` }
}

function invalid(message: string): Failure {
  return new Failure('invalid_request', `destination: ${message}`, {
    issues: [{ path: 'destination', message }],
    hint: 'Correct the members listed in "issues", then send the request again.',
  })
}
