import type { Scene } from '../scene.ts'

/** A promise that holds whenever the world is at rest. @property sentence says it. @property check returns what breaks it. */
export interface Invariant {
  readonly sentence: string
  readonly check: (scene: Scene) => Promise<readonly string[]>
}

/** For messages. */
export function show(value: unknown): string {
  return JSON.stringify(value, (_name, each: unknown) => (typeof each === 'bigint' ? `${each}` : each))
}
