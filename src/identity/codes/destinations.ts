/**
 * Destinations: where a one-time code goes. What a person types is brought to one form; the database keeps its keyed hash
 * and the address under seal, so that reading the database reveals no address.
 */
import { z } from 'zod'
import { keyedHash, seal, unseal } from '../../base/seal.ts'
import { Failure } from '../../failures/failure.ts'
import type { Channel } from '../../providers/messages.ts'

/** An e-mail address or phone number in its one form. */
export interface Destination {
  readonly channel: Channel
  /** Lower case, or E.164. Never logged, stored only by {@link sealAddress}. */
  readonly address: string
  /** What it is known by. */
  readonly hash: string
  /** Country calling code of a phone number, such as `49`. */
  readonly callingCode: string | null
  /** Enough of it for its owner to recognise, such as `a•••@example.com`. */
  readonly masked: string
}

const email = z.string().trim().toLowerCase().max(254).pipe(z.email())

/** The destination that a person typed. @throws Failure `invalid_request` on `destination`. */
export async function destinationOf(
  { dataKey }: { readonly dataKey: Uint8Array },
  { channel, destination }: { channel: Channel; destination: string },
): Promise<Destination> {
  const found = channel === 'email' ? mailbox(destination) : await phone(destination)
  if (found === undefined)
    throw invalid(
      channel === 'email'
        ? 'must be an e-mail address'
        : 'must be the number of a phone with its country, such as +4915112345678',
    )
  return { channel, ...found, hash: keyedHash(dataKey, 'destination', `${channel}:${found.address}`) }
}

/** The address under seal, base64url. Bound to the destination's hash. */
export function sealAddress(
  { dataKey }: { readonly dataKey: Uint8Array },
  { hash, address }: Pick<Destination, 'hash' | 'address'>,
): string {
  return Buffer.from(seal(dataKey, { purpose: 'address', owner: hash }, address)).toString('base64url')
}

/** Opens {@link sealAddress}. @param sealed the bytes of the seal. */
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

/** Kinds of numbers that cost whoever sends to them, or that nobody reads messages on. */
const tolled: ReadonlySet<string> = new Set([
  'PREMIUM_RATE',
  'SHARED_COST',
  'TOLL_FREE',
  'UAN',
  'VOICEMAIL',
  'PAGER',
])

/** Without a leading + the country would be a guess. */
async function phone(text: string) {
  const given = text.trim()
  if (!given.startsWith('+')) return undefined
  // Loaded with the first phone number: 150 KB of numbering plans, which know what a number is for.
  const { parsePhoneNumberFromString } = await import('libphonenumber-js/max')
  const number = parsePhoneNumberFromString(given, { extract: false })
  if (number === undefined || !number.isValid() || number.ext !== undefined) return undefined
  if (tolled.has(number.getType() ?? '')) return undefined
  const { number: address, countryCallingCode: callingCode } = number
  return { address, callingCode, masked: `+${callingCode}•••${address.slice(-2)}` }
}

function invalid(message: string): Failure {
  return new Failure('invalid_request', `destination: ${message}`, {
    issues: [{ path: 'destination', message }],
    hint: 'Correct the members named in "issues" and send the request again.',
  })
}
