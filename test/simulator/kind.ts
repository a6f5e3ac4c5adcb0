import type { Scene } from './scene.ts'
import type { Seeded } from './seeded.ts'

/**
 * A kind of operation. @property weight how often it comes. @property isFault it can be left out to find the shortest history.
 * @property run does it once; true if it had an effect. All of its choices come from `random`, so that it is the same operation when
 * others are left out.
 */
export interface Kind {
  readonly name: string
  readonly weight: number
  readonly isFault?: true
  readonly run: (scene: Scene, random: Seeded) => Promise<boolean>
}
