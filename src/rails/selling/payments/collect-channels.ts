/**
 * Claims what payment channels owe: the latest voucher of each, many in one transaction at the sponsor's expense, and pays it out to the
 * seller's address. Booked is what the contract says that it has paid out, in a block that can no longer change.
 */
import { encodeFunctionData, parseAbi, toHex } from 'viem'
import { type LocalAccount, privateKeyToAccount } from 'viem/accounts'
import { z } from 'zod'
import type { Clock } from '../../../core/base/clock.ts'
import type { Log } from '../../../core/base/log.ts'
import { derivedSeed } from '../../../core/base/seal.ts'
import type { Chain } from '../../../providers/chain/port.ts'
import {
  channelDomain,
  channelStruct,
  channelsAddress,
  channelTypes,
} from '../../../providers/payment-channels.ts'
import type { Database } from '../../../storage/database.ts'
import { bookChannelIncome, hasChannels, noteClaimed, takeDueChannels } from './channels.ts'

/** Channels of one claim: each takes about 60,000 gas of the sponsor's 400,000. */
const BATCH = 4

const abi = parseAbi([
  channelStruct,
  'struct Voucher { ChannelConfig channel; uint128 maxClaimableAmount; }',
  'struct VoucherClaim { Voucher voucher; bytes signature; uint128 totalClaimed; }',
  'function claimWithSignature(VoucherClaim[] claims, bytes authorizerSignature)',
  'function settle(address receiver, address token)',
  'function multicall(bytes[] data) returns (bytes[] results)',
])

const hex = z.templateLiteral(['0x', z.string()])
const units = z.string().regex(/^\d+$/).transform(BigInt)
const claimable = z.looseObject({
  channelId: hex,
  channelConfig: z.object({
    payer: hex,
    payerAuthorizer: hex,
    receiver: hex,
    receiverAuthorizer: hex,
    token: hex,
    withdrawDelay: z.number(),
    salt: hex,
  }),
  signature: hex,
  signedMaxClaimable: units,
  chargedCumulativeAmount: units,
})

export interface CollectingParts {
  readonly chain: Pick<
    Chain,
    'id' | 'name' | 'tokens' | 'signer' | 'identity' | 'channelState' | 'channelPayouts'
  >
  readonly database: Database
  readonly settings: { readonly dataKey: Uint8Array; readonly x402PayTo: string }
  readonly clock: Clock
  readonly log: Log
}

/** Signs claims and refunds for the seller. One key for ever, or open channels could not be claimed. */
export function channelAuthorizer(dataKey: Uint8Array): LocalAccount {
  return privateKeyToAccount(toHex(derivedSeed(dataKey, 'x402 channels sold')))
}

/** Claims what is due on a chain, and books what has been paid out. @returns the number of channels claimed. */
export async function collectChannels(parts: CollectingParts): Promise<number> {
  const { chain, database, clock } = parts
  if (!(await hasChannels(database, chain.name))) return 0
  const due = await takeDueChannels(database, { chain: chain.name, at: clock(), limit: BATCH })
  const owing = await Promise.all(due.map(({ id, record }) => readOwed(parts, id, claimable.parse(record))))
  await claim(parts, owing.flat())
  await bookPayouts(parts)
  return due.length
}

type Channel = z.output<typeof claimable> & { readonly id: string; readonly total: bigint }

/** What a channel can still pay: a payer that left alone may have taken what was charged since. Empty if that is nothing more. */
async function readOwed(
  { chain, database, clock, log }: CollectingParts,
  id: string,
  channel: z.output<typeof claimable>,
): Promise<readonly Channel[]> {
  const { channelId, chargedCumulativeAmount: charged } = channel
  const { balance, claimed } = await chain.channelState(channelId, 'latest')
  const isShort = balance < charged
  const total = isShort ? balance : charged
  if (total > claimed) return [{ ...channel, id, total }]
  const final = await chain.channelState(channelId, 'final')
  if (final.claimed < total) return []
  if (isShort)
    log.error({ channel: channelId, lost: `${charged - total}` }, 'a payment channel holds less than it owes')
  await noteClaimed(database, { id, charged, at: clock() })
  return []
}

async function claim(
  { chain, settings: { dataKey }, log }: CollectingParts,
  channels: readonly Channel[],
): Promise<void> {
  if (channels.length === 0) return
  const claims = channels.map(({ channelConfig, signature, signedMaxClaimable, total }) => ({
    voucher: { channel: channelConfig, maxClaimableAmount: signedMaxClaimable },
    signature,
    totalClaimed: total,
  }))
  const authorizerSignature = await channelAuthorizer(dataKey).signTypedData({
    domain: channelDomain(chain.id),
    types: channelTypes,
    primaryType: 'ClaimBatch',
    message: {
      claims: channels.map(({ channelId, signedMaxClaimable, total }) => ({
        channelId,
        maxClaimableAmount: signedMaxClaimable,
        totalClaimed: total,
      })),
    },
  })
  const payees = new Map(
    channels.map(({ channelConfig }) => [channelConfig.receiver.toLowerCase(), channelConfig]),
  )
  const calls = [
    encodeFunctionData({ abi, functionName: 'claimWithSignature', args: [claims, authorizerSignature] }),
    ...[...payees.values()].map(({ receiver, token }) =>
      encodeFunctionData({ abi, functionName: 'settle', args: [receiver, token] }),
    ),
  ]
  const call = { address: channelsAddress, abi, functionName: 'multicall', args: [calls] }
  const hash = await chain.signer.writeContract(call)
  await chain.signer.waitForTransactionReceipt({ hash })
  log.info({ chain: chain.name, channels: channels.length, transaction: hash }, 'payment channels claimed')
}

/** The contract counts for each address, whoever claimed: what other gateways of the same address claim is booked with it. */
async function bookPayouts({
  chain,
  database,
  settings: { x402PayTo },
  clock,
}: CollectingParts): Promise<void> {
  const token = chain.tokens.USDC
  const payTo = hex.parse(x402PayTo)
  const [identity, settled] = await Promise.all([chain.identity(), chain.channelPayouts(payTo, token)])
  await bookChannelIncome(database, { identity, chain: chain.name, token, payTo, settled, at: clock() })
}
