/** Sellers by the x402 scheme `upto`: those who take what was used, and those who say less, come late, take nothing, or lie about it. */
import { type Hex, parseAbi } from 'viem'
import { sandboxTokens, uptoProxyAddress } from '../../../src/chain/rpc/networks.ts'
import type { Address } from '../../../src/providers/chain/port.ts'
import type { PublicAnswer, PublicRequest } from '../../../src/providers/public-fetch.ts'
import type { Kind } from '../kind.ts'
import type { World } from '../world.ts'

/** The most that is taken, in smallest units. */
const MAXIMUM = 4_000n

/** What each takes: at once or later, and what it says that it took; null: nothing. */
const conducts = {
  'upto-honest': { takes: 700n, says: '700' },
  'upto-everything': { takes: MAXIMUM, says: String(MAXIMUM) },
  'upto-says-less': { takes: 3_000n, says: '1' },
  'upto-says-more': { takes: 1n, says: String(MAXIMUM) },
  'upto-late': { takes: 300n, says: null, lateMs: 5_000 },
  'upto-late-lie': { takes: 200n, says: '0', lateMs: 300 },
  'upto-free': { takes: 0n, says: '0' },
  'upto-never': { takes: 0n, says: null },
  'upto-greedy': { takes: MAXIMUM + 1n, says: String(MAXIMUM + 1n) },
} as const
type Conduct = keyof typeof conducts

export function isMetered(conduct: string): conduct is Conduct {
  return conduct in conducts
}

const settleAbi = parseAbi([
  'struct TokenPermissions { address token; uint256 amount; }',
  'struct PermitTransferFrom { TokenPermissions permitted; uint256 nonce; uint256 deadline; }',
  'struct Witness { address to; address facilitator; uint256 validAfter; }',
  'function settle(PermitTransferFrom permit, uint256 amount, address owner, Witness witness, bytes signature)',
])

interface Payment {
  readonly signature: Hex
  readonly permit2Authorization: {
    readonly from: Address
    readonly permitted: { readonly token: Address; readonly amount: string }
    readonly nonce: string
    readonly deadline: string
    readonly witness: { readonly to: Address; readonly facilitator: Address; readonly validAfter: string }
  }
}

/** @throws Error when the proxy refuses it. */
async function settle(
  { scheduler, network }: World,
  { signature, permit2Authorization }: Payment,
  units: bigint,
): Promise<void> {
  const { from, permitted, nonce, deadline, witness } = permit2Authorization
  const args = [
    {
      permitted: { token: permitted.token, amount: BigInt(permitted.amount) },
      nonce: BigInt(nonce),
      deadline: BigInt(deadline),
    },
    units,
    from,
    { ...witness, validAfter: BigInt(witness.validAfter) },
    signature,
  ]
  const input = { address: uptoProxyAddress, abi: settleAbi, functionName: 'settle', args }
  await scheduler.track(network.mine({ kind: 'writeContract', input }))
}

/** Answers a request to a metered seller. @param visit how often it was paid for. */
export async function answerMetered(
  world: World,
  { url, headers }: PublicRequest,
  { conduct, visit, payTo }: { conduct: Conduct; visit: number; payTo: string },
): Promise<PublicAnswer> {
  const header = headers['payment-signature']
  if (header === undefined) return challenge(world, String(url), payTo)
  const { payload } = JSON.parse(Buffer.from(header, 'base64').toString()) as { payload: Payment }
  const { takes, says, ...when } = conducts[conduct]
  const take = () => settle(world, payload, takes).catch(() => {})
  if (takes > 0n && 'lateMs' in when)
    world.scheduler.after(world.driver, when.lateMs, 'late settlement', () => void take())
  else if (takes > 0n) await take()
  // Half of the first answers are lost.
  if (visit === 1 && world.random.chance(0.5))
    throw Object.assign(new Error('the connection broke'), {
      name: 'PublicFetchError',
      problem: 'protocol',
      sent: true,
    })
  const receipt = { success: true, transaction: takes === 0n ? '' : `0x${'1'.repeat(64)}`, amount: says }
  if (says === '0') receipt.transaction = ''
  return answer(
    200,
    '{"used":1}',
    says === null ? [] : [['payment-response', Buffer.from(JSON.stringify(receipt)).toString('base64')]],
  )
}

function challenge({ network }: World, url: string, payTo: string): PublicAnswer {
  const offer = {
    scheme: 'upto',
    network: 'eip155:84532',
    asset: sandboxTokens.USDC.address,
    payTo,
    amount: String(MAXIMUM),
    maxTimeoutSeconds: 60,
    extra: {
      name: 'USDC',
      version: '2',
      assetTransferMethod: 'permit2',
      facilitatorAddress: network.chain.signer.address,
    },
  }
  const required = { x402Version: 2, error: '', resource: { url }, accepts: [offer] }
  return answer(402, '', [['payment-required', Buffer.from(JSON.stringify(required)).toString('base64')]])
}

function answer(status: number, body: string, headers: PublicAnswer['headers'] = []): PublicAnswer {
  return { status, headers, body: Buffer.from(body), truncated: false, bytes: body.length }
}

export const meteredSellers: readonly Kind[] = [
  {
    name: 'metered purchase',
    weight: 6,
    run: async (scene, random) => {
      const { bearer } = random.oneOf(random.oneOf(scene.accounts).keys)
      const id = scene.nextName('metered')
      const bought = await scene.call(random, 'POST', '/api/purchases', {
        headers: { ...bearer, 'idempotency-key': id },
        body: {
          url: `http://127.0.0.1:9999/${random.oneOf(Object.keys(conducts))}/${id}`,
          maxAmount: '0.01',
        },
        tries: 6,
        isOpen: ({ body }) => body.status === 'undelivered',
      })
      return bought?.body.status === 'delivered'
    },
  },
]
