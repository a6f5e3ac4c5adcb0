/** People whose wallets their own EVM keys guard, or will after a hand-over: they sign each transfer, and some sign it twice. */
import { createHash } from 'node:crypto'
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import type { AuthorizedOperation, Submission } from '../../../src/providers/chain/port.ts'
import type { Kind } from '../kind.ts'
import { type Bearer, formatCents, items, type Scene, strangersAddress, succeed, text } from '../scene.ts'
import type { Seeded } from '../seeded.ts'

const FUNDS = '200'

export interface KeyedOwner {
  readonly accountId: string
  readonly bearer: Bearer
  readonly key: PrivateKeyAccount
  /** Its purchases are paid from an escrow once the wallet is handed over. */
  readonly cardIds: readonly string[]
  isHandedOver: boolean
}

/** Signs a person in by e-mail and puts money into the wallet. */
export async function openKeyedOwner(scene: Scene, random: Seeded): Promise<void> {
  const destination = `${scene.nextName('owner')}@example.com`
  const start = { body: { channel: 'email', destination } }
  const { challengeId } = await succeed(scene.call(random, 'POST', '/api/auth/otp/start', start))
  const outbox = await succeed(scene.call(random, 'GET', '/sandbox/outbox'))
  const code = items(outbox.messages).find((message) => message.destination === destination)?.code
  const verify = { body: { challengeId, code } }
  const { sessionToken, account } = await succeed(scene.call(random, 'POST', '/api/auth/otp/verify', verify))
  const bearer = { authorization: `Bearer ${text(sessionToken)}` }
  const { safeAddress } = await succeed(scene.call(random, 'GET', '/api/wallets', { headers: bearer }))
  const faucet = { body: { address: safeAddress, token: 'USDC', amount: FUNDS } }
  await succeed(scene.call(random, 'POST', '/sandbox/faucet', faucet))
  const card = await scene.call(random, 'POST', '/api/cards', {
    headers: bearer,
    body: { limits: { daily: '500', perPurchase: '100' } },
  })
  const cardIds = typeof card?.body.id === 'string' ? [card.body.id] : []
  const secret = createHash('sha256').update(`${destination} of ${scene.world.seed}`).digest('hex')
  const accountId = text((account as Record<string, unknown>).id)
  scene.keyedOwners.push({
    accountId,
    bearer,
    key: privateKeyToAccount(`0x${secret}`),
    cardIds,
    isHandedOver: false,
  })
}

export async function handOver(scene: Scene, random: Seeded, owner: KeyedOwner): Promise<boolean> {
  const { bearer: headers, key } = owner
  const { address } = key
  const add = (body: object) =>
    scene.call(random, 'POST', '/api/wallets/signers', { headers, body, tries: 4 })
  const asked = await add({ address })
  if (asked?.body.typedData === undefined) return false
  const signature = await key.signTypedData(asked.body.typedData as never)
  const added = await add({ address, signature })
  owner.isHandedOver ||= added?.status === 200
  return owner.isHandedOver
}

/** The signature of one transfer sent with the terms of another. */
async function sendOther(scene: Scene, random: Seeded, { bearer, key }: KeyedOwner): Promise<boolean> {
  const { to, id } = scene.newTransfer(0)
  const ask = { destination: to, amount: formatCents(1 + random.below(100)) }
  const asked = { headers: bearer, body: ask, tries: 4 }
  const intent = await scene.call(random, 'POST', '/api/wallets/transfer/intent', asked)
  if (intent?.body.typedData === undefined) return false
  const signature = await key.signTypedData(intent.body.typedData as never)
  const other = random.chance(0.5)
    ? { ...ask, amount: '9.99' }
    : { ...ask, destination: strangersAddress(`${id}!`) }
  const answer = await scene.call(random, 'POST', '/api/wallets/transfer', {
    headers: { ...bearer, 'idempotency-key': id },
    body: { ...other, intentId: intent.body.intentId, signature },
    tries: 6,
  })
  if (answer?.status === 200) scene.found.push(`A signature is for what it says. – ${answer.text}`)
  return answer !== undefined && answer.status !== 200
}

async function transfer(scene: Scene, random: Seeded, { bearer, key }: KeyedOwner): Promise<boolean> {
  const row = scene.newTransfer(1 + random.below(2_000))
  const terms = { destination: row.to, amount: formatCents(row.cents) }
  const intent = await scene.call(random, 'POST', '/api/wallets/transfer/intent', {
    headers: bearer,
    body: terms,
    tries: 4,
  })
  if (intent?.body.typedData === undefined) return false
  const signature = await key.signTypedData(intent.body.typedData as never)
  scene.transfers.push(row)
  const send = (name: string) =>
    scene.call(random, 'POST', '/api/wallets/transfer', {
      headers: { ...bearer, 'idempotency-key': name },
      body: { ...terms, intentId: intent.body.intentId, signature },
    })
  // A signature is good for one transfer, whatever key of idempotency it comes with.
  const [answer] = await Promise.all([send(row.id), random.chance(0.3) ? send(`${row.id}-again`) : undefined])
  row.answer = answer
  return answer?.status === 200
}

export const keyedOwners: readonly Kind[] = [
  {
    name: 'hand-over',
    weight: 1,
    run: async (scene, random) => {
      const owner = random.oneOf(scene.keyedOwners)
      return !owner.isHandedOver && handOver(scene, random, owner)
    },
  },
  {
    name: 'transfer beside the gateway',
    weight: 2,
    // Its owner can empty a wallet at any moment.
    run: async (scene, random) => {
      const { accountId, key, isHandedOver } = random.oneOf(scene.keyedOwners)
      if (!isHandedOver) return false
      const { world } = scene
      const id = scene.nextName('alone')
      const owner = { kind: 'eoa', address: key.address } as const
      const input: AuthorizedOperation = {
        wallet: { accountId, origin: { kind: 'gateway' }, owner },
        id,
        call: {
          kind: 'transfer',
          token: 'USDC',
          to: random.chance(0.3)
            ? (random.oneOf(scene.accounts).walletAddress as `0x${string}`)
            : strangersAddress(id),
          units: BigInt(1 + random.below(60_000_000)),
        },
        validUntil: new Date(world.scheduler.now + 60_000),
        authorization: { kind: 'eoa', signature: '0x' },
      }
      const submission = await world.scheduler.track(world.network.mine({ kind: 'submit', input }))
      return (submission as Submission).status === 'submitted'
    },
  },
  {
    name: 'signed transfer',
    weight: 6,
    run: async (scene, random) => {
      const owner = random.oneOf(scene.keyedOwners)
      return owner.isHandedOver && transfer(scene, random, owner)
    },
  },
  {
    name: 'signature of another transfer',
    weight: 1,
    run: async (scene, random) => {
      const owner = random.oneOf(scene.keyedOwners)
      return owner.isHandedOver && sendOther(scene, random, owner)
    },
  },
]
