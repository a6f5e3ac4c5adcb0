/** Payers without an account: they buy quotes by x402 and have deposits relayed, and sometimes use up their own nonce meanwhile. */
import { createHash } from 'node:crypto'
import { privateKeyToAccount } from 'viem/accounts'
import { sandboxTokens } from '../../../src/chain/rpc/networks.ts'
import { signedPaymentTypes } from '../../../src/core/base/signed-payment-types.ts'
import type { Address, Hex } from '../../../src/providers/chain/port.ts'
import type { Kind } from '../kind.ts'
import { items, type Scene, text } from '../scene.ts'
import type { Seeded } from '../seeded.ts'
import { type Authorization, useAuthorization } from './use-authorization.ts'

const usdc = sandboxTokens.USDC.address
const domain = { name: 'USDC', version: '2', chainId: 84_532, verifyingContract: usdc } as const
const VALID_S = 120
const RELAYED_UNITS = 2_000_000n
const FUNDS = 5_000_000n

interface Payer {
  readonly address: Address
  readonly sign: (to: Address, value: bigint) => Promise<{ signature: Hex; authorization: Authorization }>
  /** Spends the nonce on one unit to itself, beside the gateway. */
  readonly interfere: () => Promise<void>
}

async function newPayer({ world }: Scene, name: string): Promise<Payer> {
  const derive = (what: string): Hex =>
    `0x${createHash('sha256').update(`${what} ${name} of ${world.seed}`).digest('hex')}`
  const key = privateKeyToAccount(derive('payer'))
  const nonce = derive('nonce')
  const { address } = key
  await world.scheduler.track(
    world.network.mine({ kind: 'mint', input: [{ token: 'USDC', to: address, units: FUNDS }] }),
  )
  const sign = async (to: Address, value: bigint) => {
    const validBefore = BigInt(Math.floor(world.scheduler.now / 1_000) + VALID_S)
    const message = { from: address, to, value, validAfter: 0n, validBefore, nonce }
    const primaryType = 'TransferWithAuthorization'
    const signature = await key.signTypedData({ domain, types: signedPaymentTypes, primaryType, message })
    const texts = { value: `${value}`, validAfter: '0', validBefore: `${validBefore}` }
    return { signature, authorization: { ...message, ...texts } }
  }
  return {
    address,
    sign,
    interfere: async () => {
      const { signature, authorization } = await sign(address, 1n)
      await useAuthorization(world, authorization, signature).catch(() => {})
    },
  }
}

async function maybeInterfere(scene: Scene, random: Seeded, payer: Payer): Promise<void> {
  if (!random.chance(0.3)) return
  await scene.pause(random.below(400))
  await payer.interfere()
}

export const payers: readonly Kind[] = [
  {
    name: 'x402 sale',
    weight: 6,
    run: async (scene, random) => {
      const id = scene.nextName('payer')
      const payer = await newPayer(scene, id)
      const path = `/api/x402/fx?from=USD&to=EUR&amount=${1 + random.below(500)}`
      const offer = items((await scene.call(random, 'GET', path))?.body.accepts)[0]
      if (offer === undefined) return false
      const price = BigInt(text(offer.maxAmountRequired))
      const payload = await payer.sign(text(offer.payTo) as Address, price)
      scene.payments.push({ id, kind: 'sale', payer: payer.address, funds: FUNDS })
      const envelope = { x402Version: 1, scheme: 'exact', network: offer.network, payload }
      const [answer] = await Promise.all([
        scene.call(random, 'GET', path, {
          headers: { 'x-payment': Buffer.from(JSON.stringify(envelope)).toString('base64') },
          tries: 8,
        }),
        maybeInterfere(scene, random, payer),
      ])
      return answer?.status === 200
    },
  },
  {
    name: 'relay',
    weight: 5,
    run: async (scene, random) => {
      const id = scene.nextName('relay')
      const payer = await newPayer(scene, id)
      const { bearer, walletAddress } = random.oneOf(scene.accounts)
      const { signature, authorization } = await payer.sign(walletAddress as Address, RELAYED_UNITS)
      scene.payments.push({ id, kind: 'relay', payer: payer.address, funds: FUNDS })
      const [answer] = await Promise.all([
        scene.call(random, 'POST', '/api/transfers/gasless', {
          headers: { ...bearer, 'idempotency-key': id },
          body: { token: 'USDC', authorization: { ...authorization, signature } },
          tries: 8,
        }),
        maybeInterfere(scene, random, payer),
      ])
      return answer?.status === 200
    },
  },
]
