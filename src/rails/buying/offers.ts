/**
 * The offers of a 402 answer, in each protocol that it speaks. Everything in it was written by a stranger: one bad part does
 * not hide the others, and an offer that cannot be paid says why.
 * @see https://github.com/coinbase/x402/blob/main/specs/transports-v2/http.md
 */
import { z } from 'zod'
import { type Json, toJson } from '../../core/base/json.ts'
import { stablecoins } from '../../core/money/money.ts'
import type { Address, Chain } from '../../providers/chain/port.ts'
import type { PublicAnswer } from '../../providers/public-fetch.ts'
import { readMppChallenges } from './mpp.ts'
import { parseStrangersJson } from './stranger-json.ts'
import {
  headerValues,
  type PayableAsset,
  type Protocol,
  payableAssets,
  type ReadOffer,
  type Scheme,
} from './terms.ts'

/** An offer. @property units smallest units. @property reason why it cannot be paid; null: it can be. */
export interface Offer {
  readonly protocol: Protocol
  readonly scheme: Scheme
  readonly network: string
  /** Symbol of an asset that we know; null otherwise. */
  readonly asset: PayableAsset | null
  readonly token: Address
  readonly payTo: Address
  /** Of `upto`, the most that is paid. */
  readonly units: bigint
  readonly seconds: number
  /** The seller's offer, unchanged; the payment repeats it. */
  readonly offer: Json
  readonly description: string | null
  readonly reason: string | null
}

/** Longest challenge that is read: it is kept with the purchase. */
const MAX_CHALLENGE_BYTES = 32 * 1024
const MAX_OFFERS = 20

/** A payment is never valid for longer. */
const MAX_SECONDS = 300

const ADDRESS = /^0x[0-9a-f]{40}$/i
const text = z.string().max(4096)

const acceptV2 = z.looseObject({
  scheme: text,
  network: text,
  asset: text,
  payTo: text,
  amount: text,
  maxTimeoutSeconds: z.number(),
  extra: z.looseObject({}).nullish(),
})
const challengeV2 = z.looseObject({
  x402Version: z.literal(2),
  resource: z.looseObject({ description: z.string().nullish() }).nullish(),
  accepts: z.array(z.unknown()).max(MAX_OFFERS),
  extensions: z.unknown().optional(),
})
const acceptV1 = z.looseObject({
  scheme: text,
  network: text,
  asset: text,
  payTo: text,
  maxAmountRequired: text,
  maxTimeoutSeconds: z.number(),
  description: z.string().nullish(),
})
const challengeV1 = z.looseObject({
  x402Version: z.literal(1),
  accepts: z.array(z.unknown()).max(MAX_OFFERS),
})

/** A chain on which offers are paid. @property hasUpto true if `upto` can be paid there. */
export type OfferChain = Pick<Chain, 'id' | 'name' | 'tokens'> & { readonly hasUpto: boolean }

/**
 * Reads every offer of an answer, the preferred protocols first, and in each the certain prices before those that are a maximum.
 * @param now for MPP challenges, which expire.
 */
export function readOffers(
  chain: OfferChain,
  answer: Pick<PublicAnswer, 'headers' | 'body'>,
  now: Date,
): readonly Offer[] {
  const read = [...readV2(chain, answer), ...readV1(chain, answer), ...readMppChallenges(chain, answer, now)]
    .slice(0, MAX_OFFERS)
    .map((offer) => judge(chain, offer))
  const isMaximum = ({ scheme }: Offer) => scheme === 'upto'
  return [...read.filter((offer) => !isMaximum(offer)), ...read.filter(isMaximum)]
}

/** Prepares a chain for {@link readOffers}. */
export async function toOfferChain(
  chain: Pick<Chain, 'id' | 'name' | 'tokens' | 'uptoSupport'>,
): Promise<OfferChain> {
  const { id, name, tokens } = chain
  return { id, name, tokens, hasUpto: (await chain.uptoSupport()) === 'supported' }
}

function readV2({ id, hasUpto }: OfferChain, answer: Pick<PublicAnswer, 'headers'>): readonly ReadOffer[] {
  return headerValues(answer, 'payment-required').flatMap((header) => {
    if (header.length > MAX_CHALLENGE_BYTES) return []
    const read = challengeV2.safeParse(parseStrangersJson(Buffer.from(header, 'base64').toString()))
    if (!read.success) return []
    const { accepts, resource, extensions } = read.data
    return accepts.flatMap((each): ReadOffer[] => {
      const accepted = acceptV2.safeParse(each)
      if (!accepted.success) return []
      const { scheme, network, asset, payTo, amount, maxTimeoutSeconds, extra } = accepted.data
      const isUpto = scheme === 'upto'
      const method = extra?.assetTransferMethod ?? (isUpto ? 'permit2' : 'eip3009')
      return [
        {
          protocol: 'x402-v2',
          scheme: isUpto ? 'upto' : 'exact',
          network,
          isOurChain: network === `eip155:${id}`,
          isSupported: isUpto ? hasUpto && method === 'permit2' : scheme === 'exact' && method === 'eip3009',
          facilitator: extra?.facilitatorAddress,
          token: asset,
          payTo,
          amount,
          seconds: maxTimeoutSeconds,
          offer: toJson({ accepted: each, resource: resource ?? null, extensions: extensions ?? null }),
          description: resource?.description ?? null,
        },
      ]
    })
  })
}

function readV1({ name }: OfferChain, { body }: Pick<PublicAnswer, 'body'>): readonly ReadOffer[] {
  if (body.length > MAX_CHALLENGE_BYTES) return []
  const read = challengeV1.safeParse(parseStrangersJson(Buffer.from(body).toString()))
  if (!read.success) return []
  return read.data.accepts.flatMap((each): ReadOffer[] => {
    const accepted = acceptV1.safeParse(each)
    if (!accepted.success) return []
    const { scheme, network, asset, payTo, maxAmountRequired, maxTimeoutSeconds, description } = accepted.data
    return [
      {
        protocol: 'x402-v1',
        scheme: 'exact',
        network,
        // Version 1 names networks as this gateway does.
        isOurChain: network === name,
        isSupported: scheme === 'exact',
        token: asset,
        payTo,
        amount: maxAmountRequired,
        seconds: maxTimeoutSeconds,
        offer: toJson({ accepted: each }),
        description: description ?? null,
      },
    ]
  })
}

function judge({ tokens }: OfferChain, read: ReadOffer): Offer {
  const { protocol, scheme, network, seconds, offer, description } = read
  const isAmount = /^[1-9]\d{0,17}$/.test(read.amount)
  const asset =
    payableAssets.find((symbol) => tokens[symbol]?.toLowerCase() === read.token.toLowerCase()) ?? null
  const isKnownWithoutPermit = stablecoins.some(
    (symbol) => tokens[symbol]?.toLowerCase() === read.token.toLowerCase(),
  )
  return {
    protocol,
    scheme,
    network,
    asset: read.isOurChain ? asset : null,
    token: address(read.token),
    payTo: address(read.payTo),
    units: isAmount ? BigInt(read.amount) : 0n,
    seconds: Math.min(Math.floor(seconds), MAX_SECONDS),
    offer,
    description,
    reason: !read.isSupported
      ? 'scheme_not_supported'
      : !read.isOurChain
        ? 'network_not_supported'
        : asset === null
          ? scheme === 'upto' && isKnownWithoutPermit
            ? 'asset_without_permit'
            : 'asset_not_supported'
          : !isAddress(read.payTo)
            ? 'payee_invalid'
            : !isAmount
              ? 'amount_invalid'
              : !(seconds >= 1)
                ? 'too_short'
                : scheme === 'upto' && !isAddress(read.facilitator)
                  ? 'facilitator_invalid'
                  : null,
  }
}

function isAddress(given: unknown): boolean {
  return typeof given === 'string' && ADDRESS.test(given) && !/^0x0*$/i.test(given)
}

/** An address in lower case; zero for text that is none, which is never paid. */
function address(given: string): Address {
  return ADDRESS.test(given) ? `0x${given.slice(2).toLowerCase()}` : `0x${'0'.repeat(40)}`
}
