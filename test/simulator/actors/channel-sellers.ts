/**
 * Sellers that are paid by channel: honest ones, and those who lose answers, refuse, change their price, claim an old voucher, or late, or
 * what they refused, say that they charged what they did not, deliver without charging, and vanish.
 */
import { type Hex, keccak256, parseAbi, stringToHex } from 'viem'
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { sandboxTokens } from '../../../src/chain/rpc/networks.ts'
import {
  type ChannelConfig,
  channelDomain,
  channelStruct,
  channelsAddress,
  channelTypes,
  hashChannel,
} from '../../../src/providers/payment-channels.ts'
import type { PublicAnswer, PublicRequest } from '../../../src/providers/public-fetch.ts'
import type { Kind } from '../kind.ts'
import { items, strangersAddress, text } from '../scene.ts'
import type { World } from '../world.ts'

const CHAIN_ID = 84_532
const PRICE = 1_000n
/** Within the tenth by which a known price may rise. */
const RAISED = 1_050n

/** Chances of what each does with a voucher, and at its channel's end. */
interface Conduct {
  /** Of an answer that is lost, once it has charged; of a voucher that it does not look at; of a lie about what it charged. */
  readonly loses?: number
  readonly refuses?: number
  readonly lies?: number
  readonly raises?: true
  readonly isFree?: true
  /** Claims at once what it has, now and then. */
  readonly claimsEarly?: number
  /** Gives nothing back, and claims the highest voucher that it ever saw, so much later; null: never. */
  readonly leavesMs?: number | null
}

const conducts: Readonly<Record<string, Conduct>> = {
  'channel-honest': {},
  'channel-loses': { loses: 0.3 },
  'channel-refuses': { refuses: 0.3 },
  'channel-raises': { raises: true },
  'channel-raises-and-claims': { raises: true, refuses: 0.2, leavesMs: 300_000 },
  'channel-claims-old': { claimsEarly: 0.5, loses: 0.2 },
  'channel-claims-late': { loses: 0.2, refuses: 0.2, leavesMs: 700_000 },
  'channel-lies': { lies: 0.4, leavesMs: 60_000 },
  'channel-free': { isFree: true },
  'channel-gone': { refuses: 0.4, leavesMs: null },
}

export function isByChannel(conduct: string): boolean {
  return conduct in conducts
}

interface Voucher {
  readonly cumulative: bigint
  readonly signature: Hex
}

/** A channel as its seller keeps it. @property taken the voucher for what it charged. @property best highest voucher that it ever saw. */
interface Kept {
  readonly id: Hex
  readonly config: ChannelConfig
  charged: bigint
  taken: Voucher
  best: Voucher
  isLeft: boolean
}

interface Shop {
  readonly signer: PrivateKeyAccount
  readonly payTo: string
  readonly channels: Map<Hex, Kept>
  price: bigint
  isGone: boolean
}

const none: Voucher = { cumulative: 0n, signature: '0x' }
const shops = new WeakMap<World, Map<string, Shop>>()

function findShop(world: World, run: string): Shop {
  const known = shops.get(world) ?? new Map<string, Shop>()
  shops.set(world, known)
  const shop = known.get(run) ?? {
    signer: privateKeyToAccount(keccak256(stringToHex(`channel seller ${run}`))),
    payTo: strangersAddress(`channel seller ${run}`),
    ...{ channels: new Map<Hex, Kept>(), price: PRICE, isGone: false },
  }
  known.set(run, shop)
  return shop
}

const abi = parseAbi([
  channelStruct,
  'struct Voucher { ChannelConfig channel; uint128 maxClaimableAmount; }',
  'struct VoucherClaim { Voucher voucher; bytes signature; uint128 totalClaimed; }',
  'function claimWithSignature(VoucherClaim[] claims, bytes authorizerSignature)',
  'function refundWithSignature(ChannelConfig config, uint128 amount, uint256 nonce, bytes receiverAuthorizerSignature)',
])

/** Claims as much of a voucher; nothing if the contract refuses it. */
async function claim(
  world: World,
  { signer }: Shop,
  { id, config }: Kept,
  { cumulative, signature }: Voucher,
): Promise<void> {
  if (cumulative === 0n) return
  const domain = channelDomain(CHAIN_ID)
  const entry = {
    channelId: id,
    maxClaimableAmount: cumulative,
    totalClaimed: cumulative,
  }
  const authorized = await world.scheduler.track(
    signer.signTypedData({
      ...{ domain, types: channelTypes, primaryType: 'ClaimBatch', message: { claims: [entry] } },
    }),
  )
  const voucher = { channel: config, maxClaimableAmount: cumulative }
  const args = [[{ voucher, signature, totalClaimed: cumulative }], authorized]
  await call(world, 'claimWithSignature', args)
}

/** Gives back what is not claimed. */
async function giveBack(world: World, { signer }: Shop, { id: channelId, config }: Kept): Promise<void> {
  const { balance, claimed } = await world.network.chain.channelState(channelId, 'latest')
  const refundOf = async (nonce: bigint) => {
    const message = { channelId, nonce, amount: balance - claimed }
    const signature = await world.scheduler.track(
      signer.signTypedData({
        ...{ domain: channelDomain(CHAIN_ID), types: channelTypes, primaryType: 'Refund', message },
      }),
    )
    await call(world, 'refundWithSignature', [config, balance - claimed, nonce, signature])
  }
  if (balance > claimed) await refundOf(0n)
}

async function call({ scheduler, network }: World, functionName: string, args: unknown): Promise<void> {
  const input = { address: channelsAddress, abi, functionName, args }
  await scheduler.track(network.mine({ kind: 'writeContract', input } as never)).catch(() => {})
}

/** Answers a request to a seller by channel. */
export async function answerByChannel(
  world: World,
  { url, headers }: PublicRequest,
  { conduct, run }: { conduct: string; run: string },
): Promise<PublicAnswer> {
  const { random, scheduler } = world
  const does = conducts[conduct] ?? {}
  const shop = findShop(world, run)
  if (does.leavesMs === null && shop.isGone) throw hungUp()
  if (does.raises && random.chance(0.3)) shop.price = shop.price === PRICE ? RAISED : PRICE
  const header = headers['payment-signature']
  if (header === undefined) return ask(String(url), shop)
  const { payload, accepted } = JSON.parse(Buffer.from(header, 'base64').toString()) as {
    payload: {
      type: string
      channelConfig: ChannelConfig
      voucher: { maxClaimableAmount: string; signature: Hex }
    }
    accepted: { amount: string }
  }
  const id = hashChannel(payload.channelConfig, CHAIN_ID)
  const channel = shop.channels.get(id) ?? {
    ...{ id, config: payload.channelConfig, charged: 0n, isLeft: false },
    ...{ taken: none, best: none },
  }
  shop.channels.set(id, channel)
  const voucher = {
    cumulative: BigInt(payload.voucher.maxClaimableAmount),
    signature: payload.voucher.signature,
  }
  if (payload.type === 'refund') return end(world, shop, { channel, does, url: String(url) })
  if (voucher.cumulative > channel.best.cumulative) channel.best = voucher
  if (does.refuses !== undefined && random.chance(does.refuses)) {
    shop.isGone = does.leavesMs === null
    return answer(503)
  }
  if (does.lies !== undefined && random.chance(does.lies)) {
    const said = [
      0n,
      1n,
      voucher.cumulative - 1n,
      voucher.cumulative,
      voucher.cumulative + PRICE,
      10n ** 30n - 1n,
    ]
    return ask(String(url), shop, { id, charged: random.oneOf(said) })
  }
  if (does.isFree) return answer(200)
  if (
    voucher.cumulative !== channel.charged + BigInt(accepted.amount) ||
    BigInt(accepted.amount) !== shop.price
  )
    return ask(String(url), shop, channel)
  channel.charged = voucher.cumulative
  channel.taken = voucher
  if (does.claimsEarly !== undefined && random.chance(does.claimsEarly))
    await claim(world, shop, channel, voucher)
  if (does.loses !== undefined && random.chance(does.loses)) throw hungUp()
  await scheduler.sleep(scheduler.current, random.below(50), 'handler')
  return answer(200)
}

/** Its channel is to end. */
async function end(
  world: World,
  shop: Shop,
  { channel, does: { leavesMs }, url }: { channel: Kept; does: Conduct; url: string },
): Promise<PublicAnswer> {
  if (leavesMs !== undefined) {
    if (leavesMs !== null && !channel.isLeft)
      world.scheduler.after(
        world.driver,
        leavesMs,
        'late claim',
        () => void claim(world, shop, channel, channel.best),
      )
    channel.isLeft = true
    return answer(403)
  }
  await claim(world, shop, channel, channel.taken)
  await giveBack(world, shop, channel)
  return ask(url, shop, channel)
}

function ask(
  url: string,
  { signer, payTo, price }: Shop,
  channel?: Pick<Kept, 'id' | 'charged'>,
): PublicAnswer {
  const { address, name, version } = sandboxTokens.USDC
  const state = channel && {
    channelState: { channelId: channel.id, chargedCumulativeAmount: String(channel.charged) },
  }
  const offer = {
    ...{ scheme: 'batch-settlement', network: 'eip155:84532', asset: address, payTo, amount: String(price) },
    maxTimeoutSeconds: 60,
    extra: { name, version, receiverAuthorizer: signer.address, withdrawDelay: 900, ...state },
  }
  const required = { x402Version: 2, error: '', resource: { url }, accepts: [offer] }
  const header = Buffer.from(JSON.stringify(required)).toString('base64')
  return { ...answer(402), headers: [['payment-required', header]] }
}

function answer(status: number): PublicAnswer {
  const body = status === 200 ? '{"called":1}' : ''
  return { status, headers: [], body: Buffer.from(body), truncated: false, bytes: body.length }
}

function hungUp(): Error {
  return Object.assign(new Error('the connection broke'), {
    ...{ name: 'PublicFetchError', problem: 'protocol', sent: true },
  })
}

export const channelSellers: readonly Kind[] = [
  {
    name: 'channel purchase',
    weight: 5,
    run: async (scene, random) => {
      const { bearer } = random.oneOf(random.oneOf(scene.accounts).keys)
      const id = scene.nextName('channel-purchase')
      const url = `http://127.0.0.1:9999/${random.oneOf(Object.keys(conducts))}/${id}`
      const bought = { id, payTo: strangersAddress(`channel seller ${id}`), most: 0n }
      scene.boughtChannels.push(bought)
      let delivered = 0
      const buy = async (name: string) => {
        bought.most += RAISED
        const answered = await scene.call(random, 'POST', '/api/purchases', {
          headers: { ...bearer, 'idempotency-key': name },
          body: { url, maxAmount: '0.00105' },
          tries: 6,
        })
        if (answered?.body.status === 'delivered') delivered += 1
      }
      const wanted = 2 + random.below(4)
      for (let times = 0; times < wanted; times += 1) {
        const name = `${id}-${times}`
        await (random.chance(0.3) ? Promise.all([buy(name), buy(`${name}-too`)]) : buy(name))
      }
      // The others end when they are idle.
      if (random.chance(0.6)) {
        const listed = await scene.call(random, 'GET', '/api/channels', { headers: bearer, tries: 3 })
        for (const { id: open, status } of items(listed?.body.channels))
          if (status === 'open' && random.chance(0.5))
            await scene.call(random, 'POST', `/api/channels/${text(open)}/close`, {
              headers: bearer,
              tries: 3,
            })
      }
      return delivered > 0
    },
  },
]

/** The highest voucher of a channel that its seller has seen. */
export function findHighest(world: World, run: string, id: Hex): bigint {
  return shops.get(world)?.get(run)?.channels.get(id)?.best.cumulative ?? 0n
}
