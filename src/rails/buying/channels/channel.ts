/**
 * Payment channels (x402 `batch-settlement`): a deposit for one seller, from which a key buys by vouchers, each for all that it bought so
 * far. A channel's money is in the purse of the same id, whose address alone signs for it and gets back what is left. Invariants: a voucher
 * says what settled purchases of the channel add up to and the price of the one that is presented, never more; one is presented at a
 * time; purchases are booked by the seller's word, and at the channel's end by what the contract shows to be claimed.
 */
import { createHash } from 'node:crypto'
import type { Selectable } from 'kysely'
import { LRUCache } from 'lru-cache'
import { keccak256, stringToHex } from 'viem'
import { z } from 'zod'
import type { Json } from '../../../core/base/json.ts'
import type { Address, Hex } from '../../../providers/chain/port.ts'
import { type ChannelConfig, hashChannel } from '../../../providers/payment-channels.ts'
import type { ChannelTable } from '../../../storage/schema.ts'
import { purseKey } from '../authorization.ts'

export type Channel = Selectable<ChannelTable>

/** Prices below this are paid by channel where the seller takes it: a hundredth of a USDC, EURC or PYUSD. */
export const SMALL_UNITS = 10_000n

const channelOffer = z.looseObject({
  accepted: z.looseObject({
    extra: z.looseObject({
      receiverAuthorizer: z.templateLiteral(['0x', z.string()]),
      withdrawDelay: z.int(),
      minDeposit: z
        .string()
        .regex(/^\d{1,18}$/)
        .optional()
        .catch(undefined),
    }),
  }),
})

/** What a seller asks of a channel. @property withdrawDelay seconds. @property minDeposit smallest units. */
export interface ChannelWishes {
  readonly receiverAuthorizer: Hex
  readonly withdrawDelay: number
  readonly minDeposit: bigint
}

/** @returns null for an offer without them. */
export function readWishes(offer: Json): ChannelWishes | null {
  const read = channelOffer.safeParse(offer)
  if (!read.success) return null
  const { receiverAuthorizer, withdrawDelay, minDeposit = '0' } = read.data.accepted.extra
  return {
    receiverAuthorizer: toLower(receiverAuthorizer),
    withdrawDelay,
    minDeposit: BigInt(minDeposit),
  }
}

function toLower(address: `0x${string}`): Hex {
  return `0x${address.slice(2).toLowerCase()}`
}

/** The same for all calls that open the same channel at once. @property number of the seller's channels with this key before it. */
export function deriveChannelId({
  keyId,
  origin,
  payTo,
  token,
  wishes: { receiverAuthorizer, withdrawDelay },
  number,
}: {
  readonly keyId: string
  readonly origin: string
  readonly payTo: Address
  readonly token: Address
  readonly wishes: ChannelWishes
  readonly number: number
}): string {
  const parts = [keyId, origin, payTo, token, receiverAuthorizer, withdrawDelay, number]
  return `chn_${createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 26)}`
}

/** Never stale: the same terms are the same channel. */
const configs = new WeakMap<Uint8Array, LRUCache<string, ChannelConfig>>()

/** The terms of a channel in the contract: its own address pays, and signs the vouchers. */
export function buildConfig(
  dataKey: Uint8Array,
  {
    id,
    payTo,
    token,
    receiverAuthorizer,
    withdrawDelay,
  }: {
    readonly id: string
    readonly payTo: Address
    readonly token: Address
    readonly receiverAuthorizer: Hex
    readonly withdrawDelay: number
  },
): ChannelConfig {
  const known = configs.get(dataKey) ?? new LRUCache<string, ChannelConfig>({ max: 1_000 })
  configs.set(dataKey, known)
  const name = [id, payTo, token, receiverAuthorizer, withdrawDelay].join(' ')
  const built = known.get(name)
  if (built !== undefined) return built
  const payer = purseKey(dataKey, id).address
  const config = {
    payer,
    // Stock sellers verify vouchers themselves only where this is set.
    payerAuthorizer: payer,
    receiver: payTo,
    receiverAuthorizer,
    token,
    withdrawDelay,
    salt: keccak256(stringToHex(`bursar channel ${id}`)),
  }
  known.set(name, config)
  return config
}

/** The terms of a stored channel. @throws when they are not those that it was opened with. */
export function readConfig(dataKey: Uint8Array, chainId: number, channel: Channel): ChannelConfig {
  const config = buildConfig(dataKey, {
    id: channel.id,
    payTo: `0x${channel.pay_to.slice(2)}`,
    token: `0x${channel.token.slice(2)}`,
    receiverAuthorizer: `0x${channel.receiver_authorizer.slice(2)}`,
    withdrawDelay: channel.withdraw_delay,
  })
  if (hashChannel(config, chainId) !== channel.hash)
    throw new Error(`${channel.id} has other terms than it was opened with`)
  return config
}
