/** Sellers that agents buy from: honest ones, and those who lie, hang up, settle late, forget or change the payee. */
import type { Hex } from 'viem'
import { sandboxTokens } from '../../../src/chain/rpc/networks.ts'
import type { PublicAnswer, PublicRequest } from '../../../src/providers/public-fetch.ts'
import type { Kind } from '../kind.ts'
import { type Scene, strangersAddress } from '../scene.ts'
import type { Owner } from '../scheduler.ts'
import { answerByChannel, isByChannel } from './channel-sellers.ts'
import { answerMetered, isMetered } from './metered-sellers.ts'
import { answerRefunding, isRefunding } from './refunding-sellers.ts'
import { type Authorization, useAuthorization } from './use-authorization.ts'

/** Where all sellers are paid. */
export const SELLER = '0x976ea74026e726554db657fa54763abd0c3a0aa9'
const PRICE = '1000'
/** The most that buyers accept, in smallest units. */
export const MOST = 10_000

const conducts = [
  ...['honest', 'honest', 'honest'],
  ...['drop-before', 'drop-after', '504-after', 'late', 'forgotten', 'changes', 'asks-more', 'dear'],
]
const asset = sandboxTokens.USDC.address

/** Makes the world's strangers sell. */
export function openShops({ world }: Scene): void {
  const paid = new Set<string>()
  const visits = new Map<string, number>()
  world.answerStranger = async (owner: Owner, request: PublicRequest): Promise<PublicAnswer> => {
    const { url, headers } = request
    await world.scheduler.sleep(owner, world.random.below(200), 'seller')
    const [, conduct = '', run = ''] = new URL(url).pathname.split('/')
    const terms = ({ payTo = SELLER, amount = PRICE } = {}) => challenge(String(url), { payTo, amount })
    if (isRefunding(conduct)) return answerRefunding(world, request, { conduct, run })
    if (isByChannel(conduct)) return answerByChannel(world, request, { conduct, run })
    const header = headers['payment-signature']
    const visit = (visits.get(run) ?? 0) + (header === undefined ? 0 : 1)
    visits.set(run, visit)
    if (isMetered(conduct)) return answerMetered(world, request, { conduct, visit, payTo: SELLER })
    if (header === undefined) return terms(conduct === 'dear' ? { amount: String(5 * MOST) } : {})
    const { payload } = JSON.parse(Buffer.from(header, 'base64').toString()) as {
      payload: { authorization: Authorization; signature: Hex }
    }
    const settle = () =>
      useAuthorization(world, payload.authorization, payload.signature).then(
        () => void paid.add(run),
        () => {},
      )
    switch (conduct) {
      case 'changes':
        return terms({ payTo: strangersAddress('another payee') })
      case 'asks-more':
        return terms({ amount: '5000' })
      case 'late':
        world.scheduler.after(world.driver, 3_000, 'late settlement', () => void settle())
        return answer(504, '')
      case 'drop-before':
        if (visit === 1) throw hungUp()
        break
      default:
    }
    await settle()
    if (conduct === 'drop-after' && visit === 1) throw hungUp()
    if (conduct === '504-after' && visit === 1) return answer(504, '')
    if (conduct === 'forgotten' || !paid.has(run)) return terms()
    return answer(200, '{"report":"rain"}', [['content-type', 'application/json']])
  }
}

export const sellers: readonly Kind[] = [
  {
    name: 'purchase',
    weight: 10,
    run: async (scene, random) => {
      const { bearer } = random.oneOf(random.oneOf(scene.accounts).keys)
      const id = scene.nextName('purchase')
      const answer = await scene.call(random, 'POST', '/api/purchases', {
        headers: { ...bearer, 'idempotency-key': id },
        body: { url: `http://127.0.0.1:9999/${random.oneOf(conducts)}/${id}`, maxAmount: '0.01' },
        tries: 6,
        isOpen: ({ body }) => body.status === 'undelivered' || body.status === 'settlement_pending',
      })
      return answer?.body.status === 'delivered'
    },
  },
]

function challenge(url: string, { payTo, amount }: { payTo: string; amount: string }): PublicAnswer {
  const offer = {
    scheme: 'exact',
    network: 'eip155:84532',
    asset,
    payTo,
    amount,
    maxTimeoutSeconds: 60,
    extra: { name: 'USDC', version: '2' },
  }
  const required = { x402Version: 2, error: '', resource: { url }, accepts: [offer] }
  return answer(402, '', [['payment-required', Buffer.from(JSON.stringify(required)).toString('base64')]])
}

function answer(status: number, body: string, headers: PublicAnswer['headers'] = []): PublicAnswer {
  return { status, headers, body: Buffer.from(body), truncated: false, bytes: body.length }
}

function hungUp(): Error {
  const error = new Error('the connection broke')
  return Object.assign(error, { name: 'PublicFetchError', problem: 'protocol', sent: true })
}
