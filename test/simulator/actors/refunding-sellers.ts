/** Sellers that deliver nothing and take requests for refunds: those who pay back, and those who pay twice, a half, others, or nobody. */
import { type Hex, keccak256, stringToHex } from 'viem'
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { sandboxTokens } from '../../../src/chain/rpc/networks.ts'
import { signedPaymentTypes as types } from '../../../src/core/base/signed-payment-types.ts'
import type { Address } from '../../../src/providers/chain/port.ts'
import type { PublicAnswer, PublicRequest } from '../../../src/providers/public-fetch.ts'
import type { Kind } from '../kind.ts'
import { strangersAddress } from '../scene.ts'
import type { World } from '../world.ts'
import { type Authorization, useAuthorization } from './use-authorization.ts'

const seller = privateKeyToAccount(keccak256(stringToHex('sellers that pay back')))
/** Where these sellers are paid. */
export const REFUNDING_SELLER = seller.address
const stranger = privateKeyToAccount(keccak256(stringToHex('a stranger who sends money')))
const PRICE = 1_000n

/** What each sends, in parts of the price, after it was asked. */
const conducts = {
  'refund-pays': { from: seller, parts: [1_000n] },
  'refund-twice': { from: seller, parts: [1_000n, 1_000n] },
  'refund-half': { from: seller, parts: [500n] },
  'refund-by-stranger': { from: stranger, parts: [1_000n] },
  'refund-elsewhere': { from: seller, parts: [1_000n], to: strangersAddress('elsewhere') },
  'refund-promises': { from: seller, parts: [] },
  'refund-refuses': null,
} as const
type Conduct = keyof typeof conducts

export function isRefunding(conduct: string): conduct is Conduct {
  return conduct in conducts
}

/** Payers by the run of a purchase. */
const payers = new WeakMap<World, Map<string, Address>>()

/** Answers a request to such a seller: for goods, or for a refund. */
export async function answerRefunding(
  world: World,
  { url, method, headers }: PublicRequest,
  { conduct, run }: { conduct: Conduct; run: string },
): Promise<PublicAnswer> {
  const known = payers.get(world) ?? new Map<string, Address>()
  payers.set(world, known)
  if (method === 'POST') {
    const terms = conducts[conduct]
    if (terms === null) return answer(403)
    const payer = known.get(run)
    if (payer !== undefined)
      world.scheduler.after(world.driver, 1_000, 'refund', () => void sendBack(world, { terms, run, payer }))
    return answer(202)
  }
  const header = headers['payment-signature']
  if (header === undefined) return challenge(String(url), `/${conduct}/${run}/refund`)
  const { payload } = JSON.parse(Buffer.from(header, 'base64').toString()) as {
    payload: { authorization: Authorization; signature: Hex }
  }
  known.set(run, payload.authorization.from)
  await useAuthorization(world, payload.authorization, payload.signature).catch(() => {})
  return answer(404)
}

interface Terms {
  readonly from: PrivateKeyAccount
  readonly parts: readonly bigint[]
  readonly to?: Address
}

async function sendBack(
  world: World,
  { terms, run, payer }: { terms: Terms; run: string; payer: Address },
): Promise<void> {
  if (terms.from === stranger)
    await world.scheduler.track(
      world.network.mine({ kind: 'mint', input: [{ token: 'USDC', to: stranger.address, units: PRICE }] }),
    )
  for (const [part, units] of terms.parts.entries()) {
    const { address, name, version } = sandboxTokens.USDC
    const message = {
      from: terms.from.address,
      to: terms.to ?? payer,
      value: units,
      validAfter: 0n,
      validBefore: 1n << 40n,
      // One for each part: a request that comes again sends nothing more.
      nonce: keccak256(stringToHex(`${run} ${part}`)),
    }
    const signature = await world.scheduler.track(
      terms.from.signTypedData({
        domain: { name, version, chainId: 84532, verifyingContract: address },
        types,
        primaryType: 'TransferWithAuthorization',
        message,
      }),
    )
    const authorization = {
      ...message,
      value: String(units),
      validAfter: '0',
      validBefore: String(message.validBefore),
    }
    await useAuthorization(world, authorization, signature).catch(() => {})
  }
}

export const refundingSellers: readonly Kind[] = [
  {
    name: 'recourse',
    weight: 5,
    run: async (scene, random) => {
      const { bearer } = random.oneOf(random.oneOf(scene.accounts).keys)
      const id = scene.nextName('recourse')
      const conduct = random.oneOf(Object.keys(conducts))
      const bought = await scene.call(random, 'POST', '/api/purchases', {
        headers: { ...bearer, 'idempotency-key': id },
        body: { url: `http://127.0.0.1:9999/${conduct}/${id}`, maxAmount: '0.01' },
        tries: 6,
        isOpen: ({ body }) => body.status === 'settlement_pending',
      })
      const purchaseId = bought?.body.purchaseId
      if (typeof purchaseId !== 'string') return false
      const open = () =>
        scene.call(random, 'POST', '/api/recourse', {
          headers: bearer,
          body: { object: { kind: 'purchase', id: purchaseId }, reason: 'not_delivered' },
          tries: 6,
        })
      // Two people press at once.
      const [one, other] = await Promise.all([open(), random.chance(0.3) ? open() : undefined])
      const [first, second] = [one?.body.recourseId, other?.body.recourseId]
      if (first !== undefined && second !== undefined && first !== second)
        scene.found.push(`A payment has one recourse. – ${purchaseId} has ${first} and ${second}`)
      return one?.status === 200
    },
  },
]

function challenge(url: string, refundUrl: string): PublicAnswer {
  const { address, name, version } = sandboxTokens.USDC
  const offer = {
    scheme: 'exact',
    network: 'eip155:84532',
    asset: address,
    payTo: seller.address,
    amount: String(PRICE),
    maxTimeoutSeconds: 60,
    extra: { name, version, refundUrl },
  }
  const required = { x402Version: 2, error: '', resource: { url }, accepts: [offer] }
  const header = Buffer.from(JSON.stringify(required)).toString('base64')
  return { ...answer(402), headers: [['payment-required', header]] }
}

function answer(status: number): PublicAnswer {
  return { status, headers: [], body: Buffer.from(''), truncated: false, bytes: 0 }
}
