/** Faults: gateways crash, blocks are replaced, clocks are wrong or jump. */
import type { Kind } from '../kind.ts'
import type { Owner } from '../scheduler.ts'
import type { World } from '../world.ts'

const MAX_SKEW_MS = 10_000
/** How long a crash waits for the midst of a transaction. */
const MIDST_MS = 3_000

async function findMidst(world: World, after: number): Promise<Owner | undefined> {
  const { owner, cancel } = world.database.midst(after)
  const found = await Promise.race([owner, world.pause(MIDST_MS)])
  cancel()
  return found ?? undefined
}

export const faults: readonly Kind[] = [
  {
    name: 'crash',
    weight: 3,
    isFault: true,
    run: async ({ world }, random) => {
      // Most of them between two statements of a transaction, where most is left half done.
      const holder = random.chance(0.75) ? await findMidst(world, 2 + random.below(4)) : undefined
      if (world.running.length === 0) return false
      const gateway = world.running.find(({ owner }) => owner === holder) ?? random.oneOf(world.running)
      await world.kill(gateway)
      await world.pause(200 + random.below(4_000))
      world.start(gateway.index)
      return true
    },
  },
  {
    name: 'reorganization',
    weight: 1,
    isFault: true,
    run: async ({ world }, random) =>
      (await world.scheduler.track(world.network.reorganize(1 + random.below(4)))) > 0,
  },
  {
    name: 'network split',
    weight: 1,
    isFault: true,
    // Two halves of the chain's network meet again, and what is minutes old is replaced.
    run: async ({ world }, random) => {
      world.scheduler.now += 60_000 + random.below(60_000)
      return (await world.scheduler.track(world.network.reorganize(1 + random.below(16)))) > 0
    },
  },
  {
    name: 'clock jump',
    weight: 1,
    isFault: true,
    run: async ({ world }, random) => {
      if (random.chance(0.5))
        random.oneOf(world.gateways).owner.skew = random.below(2 * MAX_SKEW_MS) - MAX_SKEW_MS
      else world.scheduler.now += random.below(120_000)
      return true
    },
  },
]
