/** Payers by channel: they deposit once, buy quotes by vouchers, repeat what was lost, and sometimes take their rest back or leave alone. */
import { createHash } from 'node:crypto'
import { encodeAbiParameters, keccak256 } from 'viem'
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { sandboxTokens } from '../../../src/chain/rpc/networks.ts'
import { signedPaymentTypes } from '../../../src/core/base/signed-payment-types.ts'
import type { Address, Hex } from '../../../src/providers/chain/port.ts'
import {
  type ChannelConfig,
  channelDomain,
  channelTypes,
  depositCollectorAddress,
  hashChannel,
} from '../../../src/providers/payment-channels.ts'
import type { Kind } from '../kind.ts'
import { items, type Scene, text } from '../scene.ts'
import type { Seeded } from '../seeded.ts'

const CHAIN_ID = 84_532
const DEPOSIT = 200_000n
const usdc = sandboxTokens.USDC

interface Opened {
  readonly key: PrivateKeyAccount
  readonly config: ChannelConfig
  readonly channelId: Hex
  readonly price: bigint
  readonly offer: Record<string, unknown>
}

async function open(scene: Scene, random: Seeded, name: string): Promise<Opened | undefined> {
  const { world } = scene
  const derive = (what: string): Hex =>
    `0x${createHash('sha256').update(`${what} ${name} of ${world.seed}`).digest('hex')}`
  const listed = items((await scene.call(random, 'GET', '/.well-known/x402'))?.body.items)[0]
  const offer = items(listed?.accepts).find(({ scheme }) => scheme === 'batch-settlement')
  if (offer === undefined) return undefined
  const extra = offer.extra as Record<string, unknown>
  const key = privateKeyToAccount(derive('channel payer'))
  await world.scheduler.track(
    world.network.mine({ kind: 'mint', input: [{ token: 'USDC', to: key.address, units: DEPOSIT }] }),
  )
  const config: ChannelConfig = {
    payer: key.address,
    payerAuthorizer: key.address,
    receiver: text(offer.payTo) as Address,
    receiverAuthorizer: text(extra.receiverAuthorizer) as Address,
    token: text(offer.asset) as Address,
    withdrawDelay: Number(extra.withdrawDelay),
    salt: derive('salt'),
  }
  const channelId = hashChannel(config, CHAIN_ID)
  return { key, config, channelId, price: BigInt(text(offer.amount)), offer }
}

async function signDeposit(scene: Scene, { key, channelId }: Opened): Promise<object> {
  const salt: Hex = `0x${'0'.repeat(64)}`
  const validBefore = BigInt(Math.floor(scene.world.scheduler.now / 1_000) + 600)
  const nonce = keccak256(encodeAbiParameters([{ type: 'bytes32' }, { type: 'uint256' }], [channelId, 0n]))
  const message = {
    from: key.address,
    to: depositCollectorAddress,
    value: DEPOSIT,
    validAfter: 0n,
    validBefore,
    nonce,
  }
  const signature = await key.signTypedData({
    domain: { name: 'USDC', version: usdc.version, chainId: CHAIN_ID, verifyingContract: usdc.address },
    types: signedPaymentTypes,
    primaryType: 'ReceiveWithAuthorization',
    message,
  })
  const erc3009Authorization = { validAfter: '0', validBefore: `${validBefore}`, salt, signature }
  return { amount: `${DEPOSIT}`, authorization: { erc3009Authorization } }
}

async function buildPayment(
  { key, config, channelId, offer }: Opened,
  type: 'deposit' | 'voucher' | 'refund',
  { cumulative, deposit }: { cumulative: bigint; deposit?: object },
): Promise<Record<string, string>> {
  const signature = await key.signTypedData({
    domain: channelDomain(CHAIN_ID),
    types: channelTypes,
    primaryType: 'Voucher',
    message: { channelId, maxClaimableAmount: cumulative },
  })
  const voucher = { channelId, maxClaimableAmount: `${cumulative}`, signature }
  const payload = { type, channelConfig: config, voucher, ...(deposit && { deposit }) }
  const payment = { x402Version: 2, accepted: offer, payload }
  return { 'payment-signature': Buffer.from(JSON.stringify(payment)).toString('base64') }
}

export const channelPayers: readonly Kind[] = [
  {
    name: 'channel sale',
    weight: 5,
    run: async (scene, random) => {
      const id = scene.nextName('channel')
      const opened = await open(scene, random, id)
      if (opened === undefined) return false
      const path = `/api/x402/fx?from=USD&to=EUR&amount=${1 + random.below(500)}`
      const channel = { id, channelId: opened.channelId, price: opened.price, signed: 0n, answered: 0 }
      scene.channels.push(channel)
      const deposit = await signDeposit(scene, opened)
      const wanted = 1 + random.below(3)
      for (let times = 0; times < wanted; times += 1) {
        const cumulative = channel.signed + opened.price
        channel.signed = cumulative
        const headers = await buildPayment(opened, times === 0 ? 'deposit' : 'voucher', {
          cumulative,
          ...(times === 0 && { deposit }),
        })
        const answer = await scene.call(random, 'GET', path, {
          headers,
          tries: 12,
          isOpen: ({ status }) => status === 402,
        })
        if (answer?.status !== 200) return channel.answered > 0
        channel.answered += 1
      }
      if (random.chance(0.4)) {
        const headers = await buildPayment(opened, 'refund', { cumulative: channel.signed })
        await scene.call(random, 'GET', path, { headers, tries: 6, isOpen: ({ status }) => status === 402 })
      }
      return true
    },
  },
]
