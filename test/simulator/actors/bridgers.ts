/** Agents with money on two chains: they move USDC, and pay on one with what the other has. With a bridge that is late, loses or lies. */
import { sql } from 'kysely'
import { type AttestedMessage, bridgeModes } from '../../../src/providers/attester/port.ts'
import { createSandboxAttester } from '../../../src/providers/attester/sandbox.ts'
import { cctpAbi, cctpOn, isSameBurn, sandboxTransmitterAddress } from '../../../src/providers/cctp.ts'
import type { Chains } from '../../../src/providers/chain/chains.ts'
import type { Hex } from '../../../src/providers/chain/port.ts'
import type { Kind } from '../kind.ts'
import { formatCents, type Scene, succeed, text } from '../scene.ts'
import type { Seeded } from '../seeded.ts'
import { AWAY, HOME, type World } from '../world.ts'
import { sendTransfer } from './owners.ts'

/** Ends the trouble of the bridge. */
export async function mendBridge(scene: Scene, random: Seeded): Promise<void> {
  await succeed(scene.call(random, 'POST', '/sandbox/bridge', { body: { mode: 'normal' } }))
}

interface Burned {
  readonly hash: Hex
  readonly to: string
}

async function listBurned({ world }: Scene): Promise<readonly Burned[]> {
  const { rows } = await sql<Burned>`select transaction_hash as hash, to_chain as to from swap_order
    where state = 'bridging' order by id desc limit 5`.execute(world.database.books.kysely)
  return rows
}

/** Asks for the attestation of a burn until there is one, as anybody may. */
async function findAttested(
  { world, pause }: { world: World; pause: () => Promise<void> },
  { hash, to }: Burned,
): Promise<AttestedMessage | undefined> {
  const { network, away, database, scheduler } = world
  const [from, source] = to === AWAY ? ([network, HOME] as const) : ([away, AWAY] as const)
  const attester = createSandboxAttester({
    chains: { all: [from.chain] } as unknown as Chains,
    database: database.books,
    clock: () => new Date(scheduler.now),
  })
  for (let tries = 0; tries < 20; tries += 1) {
    const asked = attester.find({ source: cctpOn(source).domain, transactionHash: hash })
    const [found] = await scheduler.track(asked)
    const sent = (await scheduler.track(from.chain.transaction(hash)))?.sent ?? []
    // What a lying attester signs would be minted to somebody else, and the burn never ends.
    if (found !== undefined && sent.some(({ message }) => isSameBurn(found.message, message))) return found
    await pause()
  }
  return undefined
}

/** Moves money of an agent to the other chain. */
async function bridge(scene: Scene, random: Seeded): Promise<boolean> {
  const key = { ...random.oneOf(random.oneOf(scene.accounts).keys) }
  const [from, to] = random.chance(0.7) ? [HOME, AWAY] : [AWAY, HOME]
  const name = scene.nextName('bridge')
  const call = {
    headers: { ...key.bearer, 'idempotency-key': name },
    body: {
      sell: { chain: from, token: 'USDC', amount: formatCents(1 + random.below(500)) },
      buy: { chain: to, token: 'USDC' },
    },
  }
  const order = () => scene.call(random, 'POST', '/api/swaps/orders', call)
  const [answer, twin] = await Promise.all([order(), random.chance(0.3) ? order() : undefined])
  if (answer?.status === 200 && twin?.status === 200 && answer.body.swapId !== twin.body.swapId)
    scene.found.push(`${name}: two swaps for one idempotency key: ${answer.text} and ${twin.text}`)
  if (answer?.status === 200 && key.isStopped)
    scene.found.push(`A stopped key spends nothing. – ${key.id} made ${text(answer.body.swapId)}`)
  // Jobs take it further meanwhile.
  if (answer?.body.status === 'bridging') await scene.pause(6_000 + random.below(12_000))
  return answer?.status === 200
}

export const bridgers: readonly Kind[] = [
  {
    name: 'bridge',
    weight: 5,
    run: bridge,
  },
  {
    name: 'transfer from any chain',
    weight: 6,
    run: async (scene, random) => {
      const key = { ...random.oneOf(random.oneOf(scene.accounts).keys) }
      const isSent = await sendTransfer(scene, random, {
        headers: key.bearer,
        cents: 1 + random.below(600),
        chain: AWAY,
      })
      if (isSent && key.isStopped)
        scene.found.push(`A stopped key spends nothing. – ${key.id} sent a transfer`)
      return isSent
    },
  },
  {
    // Anybody may deliver a message, and nobody may change or repeat one.
    name: 'mint by a stranger',
    weight: 3,
    run: async (scene, random) => {
      const { scheduler, network, away } = scene.world
      const bridging = bridge(scene, random)
      const pause = () => scene.pause(100 + random.below(400))
      let burned: readonly Burned[] = []
      for (let tries = 0; tries < 40 && burned.length === 0; tries += 1) {
        await pause()
        burned = await scheduler.track(listBurned(scene))
      }
      const [chosen] = burned.length === 0 ? [] : [random.oneOf(burned)]
      const attested = chosen && (await findAttested({ world: scene.world, pause }, chosen))
      if (chosen === undefined || attested === undefined) {
        await bridging
        return false
      }
      const { message, attestation } = attested
      const isForged = random.chance(0.3)
      const byte = (Number.parseInt(attestation.slice(64, 66), 16) + 1) % 256
      const forged: Hex = `0x${attestation.slice(2, 64)}${byte.toString(16).padStart(2, '0')}${attestation.slice(66)}`
      const input = {
        ...{ address: sandboxTransmitterAddress, abi: cctpAbi, functionName: 'receiveMessage' },
        args: [message, isForged ? forged : attestation],
      }
      const target = chosen.to === AWAY ? away : network
      const isDelivered = await scheduler.track(target.mine({ kind: 'writeContract', input })).then(
        () => true,
        () => false,
      )
      if (isDelivered && isForged)
        scene.found.push(
          `Nobody else speaks for the attester. – a forged message of ${chosen.hash} was delivered`,
        )
      await bridging
      return isDelivered
    },
  },
  {
    name: 'trouble of the bridge',
    weight: 3,
    isFault: true,
    run: async (scene, random) => {
      const mode = random.oneOf(['normal', ...bridgeModes])
      const answer = await scene.call(random, 'POST', '/sandbox/bridge', { body: { mode }, tries: 3 })
      await scene.pause(random.below(15_000))
      return answer?.status === 200
    },
  },
  {
    name: 'reorganization of the other chain',
    weight: 1,
    isFault: true,
    run: async ({ world }, random) =>
      (await world.scheduler.track(world.away.reorganize(1 + random.below(4)))) > 0,
  },
]
