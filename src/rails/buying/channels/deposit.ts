/** Deposits: the money at a channel's address is brought into the contract by our own transaction, which its address signs. */
import { encodeAbiParameters, keccak256, parseAbi } from 'viem'
import type { LocalAccount } from 'viem/accounts'
import type { Clock } from '../../../core/base/clock.ts'
import { signedPaymentTypes } from '../../../core/base/signed-payment-types.ts'
import type { Chain, Hex } from '../../../providers/chain/port.ts'
import {
  type ChannelConfig,
  channelStruct,
  channelsAddress,
  depositCollectorAddress,
  hashChannel,
} from '../../../providers/payment-channels.ts'
import type { Connection } from '../../../storage/database.ts'
import { cancelAuthorization, purseKey, readTokenDomain } from '../authorization.ts'
import type { PayableAsset } from '../terms.ts'
import type { Channel } from './channel.ts'
import { findChannel } from './channel-store.ts'

const VALID_SECONDS = 600
const DEPOSIT_WAIT_MS = 15_000

const abi = parseAbi([
  channelStruct,
  'function deposit(ChannelConfig config, uint128 amount, address collector, bytes collectorData)',
])

export interface DepositParts {
  readonly database: Connection
  readonly chain: Chain
  readonly clock: Clock
  readonly settings: { readonly dataKey: Uint8Array }
}

/** A channel whose deposits are worked on. */
export interface Depositing {
  readonly id: string
  readonly config: ChannelConfig
  readonly asset: PayableAsset
}

/**
 * Brings what is at the channel's address into the contract. Safe to repeat, also at once: one deposit is on its way at a time, by one
 * authorization. @returns what the contract shows to be deposited. @throws when the chain does not confirm it.
 */
export async function bringDeposit(parts: DepositParts, channel: Depositing): Promise<bigint> {
  const { database, chain, clock, settings } = parts
  const { id, config, asset } = channel
  const before = await resolveDeposit(parts, channel)
  if (before?.deposit_units == null) {
    const units = await chain.readBalance(asset, config.payer)
    if (before === undefined || units === 0n) return readDeposit(parts, channel)
    const until = new Date((Math.floor(clock().getTime() / 1000) + VALID_SECONDS) * 1000)
    await database.kysely
      .updateTable('channel')
      .set({ deposit_units: units, deposit_until: until })
      .where('id', '=', id)
      .where('deposits', '=', before.deposits)
      .where('deposit_units', 'is', null)
      .where('status', '=', 'open')
      .execute()
  }
  const pending = await findChannel(database, id)
  if (pending?.deposit_units == null || pending.deposit_until === null) return pending?.deposit ?? 0n
  try {
    await relayDeposit(parts, purseKey(settings.dataKey, id), {
      ...{ config, asset, number: pending.deposits, units: pending.deposit_units },
      until: pending.deposit_until,
    })
  } catch (error) {
    // Another call may have brought it first.
    const after = await resolveDeposit(parts, channel)
    if (after?.deposits === pending.deposits) throw error
  }
  return (await resolveDeposit(parts, channel))?.deposit ?? 0n
}

/** Notes what has become of the deposit on its way, by the state of its authorization and of the contract. @returns the channel then. */
export async function resolveDeposit(
  { database, chain, clock }: DepositParts,
  { id, config }: Depositing,
): Promise<Channel | undefined> {
  const channel = await findChannel(database, id)
  if (channel?.deposit_until == null || channel.deposit_units === null) return channel
  const hash = hashChannel(config, chain.id)
  const authorization = {
    token: config.token,
    authorizer: config.payer,
    nonce: depositNonce(hash, channel.deposits),
  }
  const isUsed = (await chain.authorizationState(authorization)).status === 'used'
  if (!isUsed && !(await chain.isAuthorizationOver(authorization, channel.deposit_until))) return channel
  const { balance } = await chain.channelState(hash, 'latest')
  await database.kysely
    .updateTable('channel')
    .set(({ fn, val, eb }) => ({
      deposit: isUsed ? fn('greatest', ['deposit', val(balance)]) : eb.ref('deposit'),
      deposits: eb('deposits', '+', 1),
      deposit_units: null,
      deposit_until: null,
      updated_at: clock(),
    }))
    .where('id', '=', id)
    .where('deposits', '=', channel.deposits)
    .where('deposit_units', 'is not', null)
    .execute()
  return findChannel(database, id)
}

/** Notes what the contract holds now: an earlier look may have been at an older block. */
async function readDeposit({ database, chain }: DepositParts, { id, config }: Depositing): Promise<bigint> {
  const { balance } = await chain.channelState(hashChannel(config, chain.id), 'latest')
  const row = await database.kysely
    .updateTable('channel')
    .set(({ fn, val }) => ({ deposit: fn('greatest', ['deposit', val(balance)]) }))
    .where('id', '=', id)
    .returning('deposit')
    .executeTakeFirst()
  return row?.deposit ?? 0n
}

/** Makes the deposit on its way void, so that nothing comes into the contract any more. @throws when it was taken, or nothing confirms it. */
export async function cancelDeposit(
  { chain, settings }: DepositParts,
  { id, config, asset }: Depositing,
  number: number,
): Promise<void> {
  const nonce = depositNonce(hashChannel(config, chain.id), number)
  await cancelAuthorization(chain, purseKey(settings.dataKey, id), { asset, nonce })
}

/** Nonce of a channel's deposit: it binds the authorization to the channel. */
function depositNonce(hash: Hex, number: number): Hex {
  return keccak256(encodeAbiParameters([{ type: 'bytes32' }, { type: 'uint256' }], [hash, BigInt(number)]))
}

async function relayDeposit(
  { chain }: DepositParts,
  account: LocalAccount,
  {
    config,
    asset,
    number,
    units,
    until,
  }: {
    readonly config: ChannelConfig
    readonly asset: PayableAsset
    readonly number: number
    readonly units: bigint
    readonly until: Date
  },
): Promise<void> {
  const validBefore = BigInt(Math.floor(until.getTime() / 1000))
  const signature = await account.signTypedData({
    domain: await readTokenDomain(chain, asset),
    types: signedPaymentTypes,
    primaryType: 'ReceiveWithAuthorization',
    message: {
      from: config.payer,
      to: depositCollectorAddress,
      value: units,
      validAfter: 0n,
      validBefore,
      nonce: depositNonce(hashChannel(config, chain.id), number),
    },
  })
  const data = encodeAbiParameters(
    [{ type: 'uint256' }, { type: 'uint256' }, { type: 'uint256' }, { type: 'bytes' }],
    [0n, validBefore, BigInt(number), signature],
  )
  const hash = await chain.signer.writeContract({
    address: channelsAddress,
    abi,
    functionName: 'deposit',
    args: [config, units, depositCollectorAddress, data],
  })
  await chain.signer.waitForTransactionReceipt({ hash, timeout: DEPOSIT_WAIT_MS })
}
