/** Faults: gateways crash, blocks are replaced, clocks are wrong or jump. */
import type { Kind } from '../kind.ts'

const MAX_SKEW_MS = 10_000
const MAX_TRIES = 100

export const faults: readonly Kind[] = [
  {
    name: 'crash',
    weight: 3,
    isFault: true,
    run: async ({ world }, random) => {
      // Half of them in the midst of a transaction, where most is left half done.
      const isInMidst = random.chance(0.5)
      for (let tries = 0; isInMidst && world.database.isIdle && tries < MAX_TRIES; tries += 1)
        await world.pause(1)
      if (world.running.length === 0) return false
      const { holder } = world.database
      const holding = isInMidst ? world.running.find(({ owner }) => owner === holder) : undefined
      const gateway = holding ?? random.oneOf(world.running)
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
