/** Payment channels on both chains: money leaves one by the seller's claims, the seller's consent, or the payer's own exit alone. */
import { randomBytes } from 'node:crypto'
import { encodeAbiParameters, encodeFunctionData, type Hex, keccak256, parseAbi, toHex } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startAnvilChain } from '../../src/chain/node/anvil.ts'
import { sandboxTokens } from '../../src/chain/rpc/networks.ts'
import { createSimulatedChain } from '../../src/chain/simulated/simulated.ts'
import { silentLog } from '../../src/core/base/log.ts'
import { signedPaymentTypes } from '../../src/core/base/signed-payment-types.ts'
import type { Chain } from '../../src/providers/chain/port.ts'
import {
  type ChannelConfig,
  channelDomain,
  channelStruct,
  channelsAddress,
  channelTypes,
  depositCollectorAddress,
  hashChannel,
} from '../../src/providers/payment-channels.ts'
import { hasAnvil } from '../rails/selling/x402/world.ts'

const abi = parseAbi([
  channelStruct,
  'struct Voucher { ChannelConfig channel; uint128 maxClaimableAmount; }',
  'struct VoucherClaim { Voucher voucher; bytes signature; uint128 totalClaimed; }',
  'function deposit(ChannelConfig config, uint128 amount, address collector, bytes collectorData)',
  'function claim(VoucherClaim[] claims)',
  'function claimWithSignature(VoucherClaim[] claims, bytes authorizerSignature)',
  'function settle(address receiver, address token)',
  'function initiateWithdraw(ChannelConfig config, uint128 amount)',
  'function finalizeWithdraw(ChannelConfig config)',
  'function refundWithSignature(ChannelConfig config, uint128 amount, uint256 nonce, bytes receiverAuthorizerSignature)',
])

const { address: token } = sandboxTokens.USDC
const DELAY = 900
const domain = channelDomain(84_532)

interface Arena {
  readonly chain: Chain
  now(): Promise<number>
  advance(seconds: number): Promise<void>
}

async function onSimulated(): Promise<Arena> {
  let now = Date.parse('2027-01-04T12:00:00Z')
  const chain = await createSimulatedChain({ clock: () => new Date(now), log: silentLog })
  return {
    chain,
    now: async () => now / 1000,
    advance: async (seconds) => {
      now += seconds * 1000
    },
  }
}

async function onAnvil(): Promise<Arena> {
  const chain = await startAnvilChain({
    name: 'base-sepolia',
    log: silentLog,
    binary: process.env.ANVIL_BIN,
    hasCards: false,
  })
  const ask = async (method: string, params: readonly unknown[]) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const headers = { 'content-type': 'application/json' }
    await fetch(chain.rpcUrl ?? '', { method: 'POST', headers, body })
  }
  return {
    chain,
    now: async () => (await chain.latestBlockAt()).getTime() / 1000,
    advance: async (seconds) => {
      await ask('evm_increaseTime', [seconds])
      await ask('evm_mine', [])
    },
  }
}

describe.each([
  { name: 'the simulated chain', open: onSimulated, skip: false },
  { name: 'a node', open: onAnvil, skip: !hasAnvil() },
])('channels on $name', ({ open, skip }) => {
  let arena: Arena
  const nonces = new Map<string, number>()
  beforeAll(async () => {
    if (!skip) arena = await open()
  }, 60_000)
  afterAll(() => arena?.chain.close())

  const send = async (
    account: PrivateKeyAccount,
    functionName: 'claim' | 'initiateWithdraw' | 'finalizeWithdraw',
    args: readonly unknown[],
  ) => {
    const nonce = nonces.get(account.address) ?? 0
    const data = encodeFunctionData({ abi, functionName, args: args as never })
    await arena.chain.callAs(account, { to: channelsAddress, data, nonce })
    nonces.set(account.address, nonce + 1)
  }
  const relay = (functionName: string, args: readonly unknown[]) =>
    arena.chain.signer.writeContract({ address: channelsAddress, abi, functionName, args })
  const usdc = (address: `0x${string}`) => arena.chain.readBalance('USDC', address)

  async function openChannel(amount: bigint) {
    const [payer, seller, authorizer] = [0, 1, 2].map(() => privateKeyToAccount(generatePrivateKey()))
    if (payer === undefined || seller === undefined || authorizer === undefined) throw new Error('no keys')
    await arena.chain.mint([{ token: 'USDC', to: payer.address, units: amount * 3n }])
    const config: ChannelConfig = {
      payer: payer.address,
      payerAuthorizer: payer.address,
      receiver: seller.address,
      receiverAuthorizer: authorizer.address,
      token,
      withdrawDelay: DELAY,
      salt: toHex(randomBytes(32)),
    }
    const id = hashChannel(config, 84_532)
    const deposit = await signDeposit(payer, id, amount)
    await relay('deposit', [config, amount, depositCollectorAddress, deposit])
    return { payer, seller, authorizer, config, id, deposit }
  }

  async function signDeposit(payer: PrivateKeyAccount, id: Hex, value: bigint): Promise<Hex> {
    const validBefore = BigInt((await arena.now()) + 600)
    const nonce = keccak256(encodeAbiParameters([{ type: 'bytes32' }, { type: 'uint256' }], [id, 0n]))
    const { name, version } = sandboxTokens.USDC
    const signature = await payer.signTypedData({
      domain: { name, version, chainId: 84_532, verifyingContract: token },
      types: signedPaymentTypes,
      primaryType: 'ReceiveWithAuthorization',
      message: {
        from: payer.address,
        to: depositCollectorAddress,
        value,
        validAfter: 0n,
        validBefore,
        nonce,
      },
    })
    return encodeAbiParameters(
      [{ type: 'uint256' }, { type: 'uint256' }, { type: 'uint256' }, { type: 'bytes' }],
      [0n, validBefore, 0n, signature],
    )
  }

  const claimOf = async (by: PrivateKeyAccount, config: ChannelConfig, max: bigint, total = max) => {
    const message = { channelId: hashChannel(config, 84_532), maxClaimableAmount: max }
    const signature = await by.signTypedData({ domain, types: channelTypes, primaryType: 'Voucher', message })
    return { voucher: { channel: config, maxClaimableAmount: max }, signature, totalClaimed: total }
  }

  it.skipIf(skip)('takes a deposit once, and into no other channel', async () => {
    const { config, id, deposit, payer } = await openChannel(1_000_000n)
    expect(await arena.chain.channelSupport()).toBe('supported')
    expect(await arena.chain.channelState(id, 'final')).toEqual({
      balance: 1_000_000n,
      claimed: 0n,
      withdrawal: undefined,
    })
    expect(await usdc(payer.address)).toBe(2_000_000n)
    const other = { ...config, receiver: payer.address }
    for (const channel of [config, other])
      await expect(
        relay('deposit', [channel, 1_000_000n, depositCollectorAddress, deposit]),
      ).rejects.toThrow()
    expect(await usdc(channelsAddress)).toBeGreaterThanOrEqual(1_000_000n)
    expect(await usdc(payer.address)).toBe(2_000_000n)
  })

  it.skipIf(skip)('pays a seller what the payer signed, and never more', async () => {
    const { config, id, payer, seller, authorizer } = await openChannel(1_000_000n)
    const stranger = privateKeyToAccount(generatePrivateKey())
    const good = await claimOf(payer, config, 300_000n)
    await expect(send(stranger, 'claim', [[good]])).rejects.toThrow()
    await expect(send(seller, 'claim', [[await claimOf(stranger, config, 300_000n)]])).rejects.toThrow()
    await expect(
      send(seller, 'claim', [[await claimOf(payer, config, 300_000n, 300_001n)]]),
    ).rejects.toThrow()
    await expect(send(seller, 'claim', [[await claimOf(payer, config, 1_000_001n)]])).rejects.toThrow()
    await send(seller, 'claim', [[good]])
    // An older voucher changes nothing.
    await send(seller, 'claim', [[await claimOf(payer, config, 200_000n)]])
    expect(await arena.chain.channelState(id, 'latest')).toMatchObject({ claimed: 300_000n })
    const entries = [{ channelId: id, maxClaimableAmount: 400_000n, totalClaimed: 350_000n }]
    const batch = await authorizer.signTypedData({
      domain,
      types: channelTypes,
      primaryType: 'ClaimBatch',
      message: { claims: entries },
    })
    const partial = await claimOf(payer, config, 400_000n, 350_000n)
    await expect(
      relay('claimWithSignature', [[await claimOf(payer, config, 400_000n)], batch]),
    ).rejects.toThrow()
    await relay('claimWithSignature', [[partial], batch])
    expect(await usdc(seller.address)).toBe(0n)
    await relay('settle', [seller.address, token])
    await relay('settle', [seller.address, token])
    expect(await usdc(seller.address)).toBe(350_000n)
  })

  it.skipIf(skip)('returns the rest by the seller’s consent, once', async () => {
    const { config, id, payer, seller, authorizer } = await openChannel(1_000_000n)
    await send(seller, 'claim', [[await claimOf(payer, config, 100_000n)]])
    const message = { channelId: id, nonce: 0n, amount: 900_000n }
    const signature = await authorizer.signTypedData({
      domain,
      types: channelTypes,
      primaryType: 'Refund',
      message,
    })
    await relay('refundWithSignature', [config, 900_000n, 0n, signature])
    await expect(relay('refundWithSignature', [config, 900_000n, 0n, signature])).rejects.toThrow()
    expect(await usdc(payer.address)).toBe(2_900_000n)
    expect(await arena.chain.channelState(id, 'final')).toMatchObject({
      balance: 100_000n,
      claimed: 100_000n,
    })
  })

  it.skipIf(skip)(
    'returns the rest to a payer that leaves alone, less what is claimed within the delay',
    async () => {
      const { config, id, payer, seller } = await openChannel(1_000_000n)
      await expect(send(seller, 'initiateWithdraw', [config, 1_000_000n])).rejects.toThrow()
      await send(payer, 'initiateWithdraw', [config, 1_000_000n])
      expect(await arena.chain.channelState(id, 'latest')).toMatchObject({
        withdrawal: { amount: 1_000_000n },
      })
      await expect(send(payer, 'finalizeWithdraw', [config])).rejects.toThrow()
      await send(seller, 'claim', [[await claimOf(payer, config, 250_000n)]])
      await arena.advance(DELAY + 1)
      await send(payer, 'finalizeWithdraw', [config])
      expect(await usdc(payer.address)).toBe(2_750_000n)
      expect(await arena.chain.channelState(id, 'latest')).toEqual({
        balance: 250_000n,
        claimed: 250_000n,
        withdrawal: undefined,
      })
      // A repeat under a used nonce sends nothing.
      nonces.set(payer.address, 1)
      await send(payer, 'finalizeWithdraw', [config])
      expect(await usdc(payer.address)).toBe(2_750_000n)
    },
  )
})
