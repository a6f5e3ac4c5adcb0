/**
 * Payments by channel (x402 `batch-settlement`): the payer deposits once and signs a voucher for each answer, which costs no transaction.
 * The stock scheme verifies and charges; channels are kept in the database, and a job claims what they owe.
 * @see https://github.com/coinbase/x402/tree/main/specs/schemes
 */
import type { SettleResponse } from '@x402/core/types'
import { toFacilitatorEvmSigner } from '@x402/evm'
import { BatchSettlementEvmScheme as FacilitatorScheme } from '@x402/evm/batch-settlement/facilitator'
import {
  type InMemoryChannelStorage,
  BatchSettlementEvmScheme as SellerScheme,
} from '@x402/evm/batch-settlement/server'
import { zeroAddress } from 'viem'
import type { LocalAccount } from 'viem/accounts'
import { z } from 'zod'
import type { Clock } from '../../../core/base/clock.ts'
import type { Chain, EvmSigner } from '../../../providers/chain/port.ts'
import { channelDomain, channelTypes, hashChannel } from '../../../providers/payment-channels.ts'
import type { Database } from '../../../storage/database.ts'
import { findChannel, listChannels, nameVoucher, updateChannel } from '../payments/channels.ts'
import { type Terms, WITHDRAW_DELAY_SECONDS } from './terms.ts'

/** Latest timestamp that every database can store: a voucher has no end. */
const NEVER_SECONDS = '253402300799'

type Channel = NonNullable<Awaited<ReturnType<InMemoryChannelStorage['get']>>>
type Storage = Pick<InMemoryChannelStorage, 'get' | 'list' | 'updateChannel'>

const record = z.custom<Channel>(
  (value) =>
    z.looseObject({ channelId: z.string(), chargedCumulativeAmount: z.string() }).safeParse(value).success,
)

/** Keeps the channels of a chain in the database. */
export function createChannelStorage(
  database: Database,
  { chain, clock }: { readonly chain: string; readonly clock: Clock },
): Storage {
  return {
    async get(id) {
      const found = await findChannel(database, id)
      return found === undefined ? undefined : record.parse(found)
    },
    async list() {
      return (await listChannels(database, chain)).map((one) => record.parse(one))
    },
    updateChannel: (id, update) =>
      updateChannel<Channel>(database, { id, chain, at: clock() }, update, (value) => record.parse(value)),
  }
}

/** The seller's part of the protocol. */
export function createSellerScheme(
  { payTo }: Pick<Terms, 'payTo'>,
  { storage, authorizer }: { readonly storage: Storage; readonly authorizer: LocalAccount },
): SellerScheme {
  return new SellerScheme(payTo, {
    storage,
    receiverAuthorizerSigner: authorizer,
    withdrawDelay: WITHDRAW_DELAY_SECONDS,
    enforceMinDeposit: true,
  })
}

/** The part that reads and writes the chain. */
export function createFacilitatorScheme(
  signer: EvmSigner,
  { receiptMs, authorizer }: { readonly receiptMs: number; readonly authorizer: LocalAccount },
): FacilitatorScheme {
  return new FacilitatorScheme(
    toFacilitatorEvmSigner(signer, { confirmationTimeoutMs: receiptMs }),
    authorizer,
  )
}

const hex20 = z.templateLiteral(['0x', z.string().regex(/^[0-9a-fA-F]{40}$/)])
const hex32 = z.templateLiteral(['0x', z.string().regex(/^[0-9a-fA-F]{64}$/)])
const bytes = z.templateLiteral([
  '0x',
  z
    .string()
    .max(10_000)
    .regex(/^(?:[0-9a-fA-F]{2})*$/),
])
const uint128 = z
  .string()
  .regex(/^\d{1,39}$/)
  .refine((text) => BigInt(text) < 2n ** 128n)
const seconds = z.string().regex(/^\d{1,15}$/)

const channelConfig = z.object({
  payer: hex20,
  payerAuthorizer: hex20,
  receiver: hex20,
  receiverAuthorizer: hex20,
  token: hex20,
  withdrawDelay: z
    .int()
    .min(0)
    .max(2 ** 40 - 1),
  salt: hex32,
})
const voucher = z.object({ channelId: hex32, maxClaimableAmount: uint128, signature: bytes })
const ofChannel = { channelConfig, voucher }

/** What a payer sends. Members that a client adds are ignored: only what is read here is passed on. */
export const channelPayment = z.discriminatedUnion('type', [
  z.object({ type: z.literal('voucher'), ...ofChannel }),
  z.object({
    type: z.literal('deposit'),
    ...ofChannel,
    deposit: z.object({
      amount: uint128,
      authorization: z.object({
        erc3009Authorization: z.object({
          validAfter: seconds,
          validBefore: seconds,
          salt: hex32,
          signature: bytes,
        }),
      }),
    }),
  }),
  // Always of all that is left: each refund is a transaction at the seller's expense.
  z.object({ type: z.literal('refund'), ...ofChannel }),
])

export type ChannelPayment = z.output<typeof channelPayment>

/** A voucher in the form of a signed transfer: by channel and sum it is taken once. */
export function toVoucherTransfer({ channelConfig: config, voucher: signed }: ChannelPayment) {
  return {
    signature: signed.signature,
    authorization: {
      from: config.payer,
      to: config.receiver,
      value: signed.maxClaimableAmount,
      validAfter: '0',
      validBefore: NEVER_SECONDS,
      nonce: nameVoucher(signed.channelId, signed.maxClaimableAmount),
    },
  }
}

/** Returns the x402 error of a voucher for another seller, or undefined; the stock scheme checks the rest. */
export function channelMismatch(
  { channelConfig: config }: ChannelPayment,
  { asset, payTo, channelAuthorizer: authorizer }: Terms,
): string | undefined {
  const isSame = (one: string, other: string | null) => one.toLowerCase() === other?.toLowerCase()
  if (!isSame(config.token, asset)) return 'invalid_batch_settlement_evm_token_mismatch'
  if (!isSame(config.receiver, payTo)) return 'invalid_batch_settlement_evm_receiver_mismatch'
  return isSame(config.receiverAuthorizer, authorizer)
    ? undefined
    : 'invalid_batch_settlement_evm_receiver_authorizer_mismatch'
}

/** True if the payer's voucher key signed, for a channel that has paid here. @throws when the chain is unreachable. */
export async function isVoucherSigned(
  { id, signer }: Pick<Chain, 'id' | 'signer'>,
  { channelConfig: config, voucher: signed }: ChannelPayment,
  storage: Pick<Storage, 'get'>,
): Promise<boolean> {
  const channelId = signed.channelId.toLowerCase()
  if (hashChannel(config, id) !== channelId || (await storage.get(channelId)) === undefined) return false
  return signer.verifyTypedData({
    address: config.payerAuthorizer === zeroAddress ? config.payer : config.payerAuthorizer,
    domain: channelDomain(id),
    types: channelTypes,
    primaryType: 'Voucher',
    message: { channelId: signed.channelId, maxClaimableAmount: BigInt(signed.maxClaimableAmount) },
    signature: signed.signature,
  })
}

const settled = z.looseObject({ success: z.literal(true) })
const required = z.looseObject({
  error: z.string().optional(),
  accepts: z.array(
    z.looseObject({ scheme: z.string(), extra: z.record(z.string(), z.unknown()).optional() }),
  ),
})

/** What the stock scheme answered. @property correction state of the channel, for a client whose own is behind. */
export type ChannelAnswer =
  | { readonly status: 'paid'; readonly settlement: SettleResponse }
  | {
      readonly status: 'refused'
      readonly reason: string | undefined
      readonly correction: Readonly<Record<string, unknown>> | null
    }

/** Reads a response of the stock middleware. A voucher is charged without the facilitator, so that only the response tells. */
export function readChannelAnswer(response: Response): ChannelAnswer {
  const decode = (name: string): unknown => {
    const value = response.headers.get(name)
    return value === null ? undefined : JSON.parse(Buffer.from(value, 'base64').toString('utf8'))
  }
  const receipt = settled.safeParse(decode('PAYMENT-RESPONSE'))
  if (response.ok && receipt.success)
    return { status: 'paid', settlement: z.custom<SettleResponse>().parse(receipt.data) }
  const refusal = required.safeParse(decode('PAYMENT-REQUIRED'))
  if (!refusal.success) return { status: 'refused', reason: undefined, correction: null }
  const { error, accepts } = refusal.data
  const { channelState, voucherState } =
    accepts.find(({ scheme }) => scheme === 'batch-settlement')?.extra ?? {}
  const correction = channelState === undefined ? null : { channelState, voucherState }
  return { status: 'refused', reason: error, correction }
}
