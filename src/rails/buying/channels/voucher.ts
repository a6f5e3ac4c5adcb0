/** Vouchers: what a channel's address signs for its seller, and what sellers say to them. */
import { z } from 'zod'
import type { Json } from '../../../core/base/json.ts'
import { minimum } from '../../../core/money/shares.ts'
import { type ChannelConfig, hashChannel, hashVoucher } from '../../../providers/payment-channels.ts'
import type { PublicAnswer } from '../../../providers/public-fetch.ts'
import { purseKey } from '../authorization.ts'
import { parseStrangersJson } from '../stranger-json.ts'
import { headerValues } from '../terms.ts'

const acceptedOffer = z.looseObject({
  accepted: z.looseObject({}),
  resource: z.unknown().optional(),
  extensions: z.unknown().optional(),
})

/**
 * Signs a voucher, and writes the header that carries it. The same voucher has the same signature.
 * @param type `refund` asks the seller to return what is left; its voucher is for what was charged.
 */
export async function signVoucher(
  dataKey: Uint8Array,
  {
    id,
    type,
    config,
    cumulative,
  }: {
    readonly id: string
    readonly type: 'voucher' | 'refund'
    readonly config: ChannelConfig
    readonly cumulative: bigint
  },
  { chainId, offer }: { readonly chainId: number; readonly offer: Json },
): Promise<{ readonly name: string; readonly value: string }> {
  const { accepted, resource, extensions } = acceptedOffer.parse(offer)
  const channelId = hashChannel(config, chainId)
  const signature = await purseKey(dataKey, id).sign({ hash: hashVoucher(channelId, cumulative, chainId) })
  const payment = {
    x402Version: 2,
    resource: resource ?? undefined,
    accepted,
    payload: {
      type,
      channelConfig: config,
      voucher: { channelId, maxClaimableAmount: cumulative.toString(), signature },
    },
    extensions: extensions ?? undefined,
  }
  return { name: 'PAYMENT-SIGNATURE', value: Buffer.from(JSON.stringify(payment)).toString('base64') }
}

const refusal = z.looseObject({
  accepts: z
    .array(
      z.looseObject({
        extra: z
          .looseObject({
            channelState: z
              .looseObject({ channelId: z.string(), chargedCumulativeAmount: z.string().regex(/^\d{1,30}$/) })
              .optional(),
          })
          .nullish(),
      }),
    )
    .max(20),
})

/** Beyond every deposit, and within what the database can compare. */
const MOST_CHARGED = 10n ** 18n

/** Reads what the seller says that it has charged on a channel; null where it says nothing. @returns smallest units. */
export function readCharged(answer: Pick<PublicAnswer, 'headers'>, hash: string): bigint | null {
  for (const header of headerValues(answer, 'payment-required').slice(0, 3)) {
    if (header.length > 32_768) continue
    const read = refusal.safeParse(parseStrangersJson(Buffer.from(header, 'base64').toString()))
    const state = read.data?.accepts
      .map(({ extra }) => extra?.channelState)
      .find((each) => each?.channelId.toLowerCase() === hash.toLowerCase())
    if (state !== undefined) return minimum(BigInt(state.chargedCumulativeAmount), MOST_CHARGED)
  }
  return null
}
