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
import { readWishes } from './channels/channel.ts'
import { judgeEscrow } from './escrow.ts'
import { readMppChallenges } from './mpp.ts'
import { parseStrangersJson } from './stranger-json.ts'
import {
  headerValues,
  type PayableAsset,
  type Protocol,
  payableAssets,
  type ReadOffer,
  type Scheme,
  schemes,
} from './terms.ts'

/** An offer. @property units smallest units. @property reason why it cannot be paid; null: it can be. */
export interface Offer {
  /** Our chain that it is paid on; null: none of ours. */
  readonly chain: string | null
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

/** Limits of payment channels. @property maxWithdrawDelay longest delay of a seller, in seconds. @property depositMax of dollars' smallest units. */
export interface ChannelLimits {
  readonly maxWithdrawDelay: number
  readonly depositMax: bigint
  readonly idleMs: number
}

/** Shortest delay that the contract takes, in seconds. */
const MIN_WITHDRAW_DELAY = 900

/**
 * A chain on which offers are paid. @property hasUpto true if `upto` can be paid there. @property hasEscrow the same of `auth-capture`. @property channels limits of channels there;
 * null: there are none.
 */
export type OfferChain = Pick<Chain, 'id' | 'name' | 'tokens'> & {
  readonly hasUpto: boolean
  readonly hasEscrow: boolean
  readonly channels: ChannelLimits | null
}

/**
 * Reads every offer of an answer by scheme, `exact` first, and in each the preferred protocols first.
 * @param now for MPP challenges, which expire.
 */
export function readOffers(
  chain: OfferChain,
  answer: Pick<PublicAnswer, 'headers' | 'body'>,
  now: Date,
): readonly Offer[] {
  const read = [...readV2(chain, answer), ...readV1(chain, answer), ...readMppChallenges(chain, answer, now)]
    .slice(0, MAX_OFFERS)
    .map((offer) => judge(chain, offer, now))
  return schemes.flatMap((scheme) => read.filter((offer) => offer.scheme === scheme))
}

/**
 * Reads every offer of an answer, on any of our chains. On further chains only prices of x402 are paid, from an address of the
 * purchase's own.
 * @param home the default chain.
 */
export function readOffersOnAll(
  { home, others }: { home: OfferChain; others: readonly Pick<Chain, 'id' | 'name' | 'tokens'>[] },
  answer: Pick<PublicAnswer, 'headers' | 'body'>,
  now: Date,
): readonly Offer[] {
  const elsewhere = others.map(({ id, name, tokens }) =>
    readOffers({ id, name, tokens, hasUpto: false, hasEscrow: false, channels: null }, answer, now),
  )
  // Each reading has the same offers in the same order.
  return readOffers(home, answer, now).map(
    (offer, place) =>
      elsewhere
        .map((offers) => offers[place])
        .find((other) => other !== undefined && other.chain !== null && other.protocol !== 'mpp') ?? offer,
  )
}

/** Prepares a chain for {@link readOffers}. */
export async function toOfferChain(
  chain: Pick<Chain, 'id' | 'name' | 'tokens' | 'uptoSupport' | 'channelSupport' | 'escrowSupport'>,
  { channels }: { readonly channels: ChannelLimits },
): Promise<OfferChain> {
  const { id, name, tokens } = chain
  const [upto, channel, escrow] = await Promise.all([
    chain.uptoSupport(),
    chain.channelSupport(),
    chain.escrowSupport(),
  ])
  return {
    id,
    name,
    tokens,
    hasUpto: upto === 'supported',
    hasEscrow: escrow === 'supported',
    channels: channel === 'supported' ? channels : null,
  }
}

function readV2(
  { id, hasUpto, hasEscrow, channels }: OfferChain,
  answer: Pick<PublicAnswer, 'headers'>,
): readonly ReadOffer[] {
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
      const isChannel = scheme === 'batch-settlement'
      const isEscrow = scheme === 'auth-capture'
      const method = extra?.assetTransferMethod ?? (isUpto ? 'permit2' : 'eip3009')
      return [
        {
          protocol: 'x402-v2',
          scheme: isUpto || isChannel || isEscrow ? scheme : 'exact',
          network,
          isOurChain: network === `eip155:${id}`,
          isSupported: isUpto
            ? hasUpto && method === 'permit2'
            : (isChannel ? channels !== null : isEscrow ? hasEscrow : scheme === 'exact') &&
              method === 'eip3009',
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

function judge({ name, tokens, channels }: OfferChain, read: ReadOffer, now: Date): Offer {
  const { protocol, scheme, network, seconds, offer, description } = read
  const isAmount = /^[1-9]\d{0,17}$/.test(read.amount)
  const asset =
    payableAssets.find((symbol) => tokens[symbol]?.toLowerCase() === read.token.toLowerCase()) ?? null
  const isKnownWithoutPermit = stablecoins.some(
    (symbol) => tokens[symbol]?.toLowerCase() === read.token.toLowerCase(),
  )
  return {
    chain: read.isOurChain ? name : null,
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
                  : scheme === 'batch-settlement'
                    ? judgeChannel(channels, { offer, units: BigInt(read.amount) })
                    : scheme === 'auth-capture'
                      ? judgeEscrow(offer, { now, seconds: Math.min(Math.floor(seconds), MAX_SECONDS) })
                      : null,
  }
}

/** Why no channel is opened by an offer; null: one can be. */
function judgeChannel(
  limits: ChannelLimits | null,
  { offer, units }: Pick<Offer, 'offer' | 'units'>,
): string | null {
  const wishes = readWishes(offer)
  if (wishes === null || !isAddress(wishes.receiverAuthorizer)) return 'authorizer_invalid'
  const { withdrawDelay } = wishes
  if (limits === null || withdrawDelay < MIN_WITHDRAW_DELAY || withdrawDelay > limits.maxWithdrawDelay)
    return 'withdraw_delay_not_accepted'
  return units > limits.depositMax ? 'over_channel_deposit' : null
}

function isAddress(given: unknown): boolean {
  return typeof given === 'string' && ADDRESS.test(given) && !/^0x0*$/i.test(given)
}

/** An address in lower case; zero for text that is none, which is never paid. */
function address(given: string): Address {
  return ADDRESS.test(given) ? `0x${given.slice(2).toLowerCase()}` : `0x${'0'.repeat(40)}`
}
