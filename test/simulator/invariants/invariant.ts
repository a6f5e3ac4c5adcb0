import type { Scene } from '../scene.ts'

/** What must hold whenever the world is at rest. @property sentence the promise. @property check names what breaks it. */
export interface Invariant {
  readonly sentence: string
  readonly check: (scene: Scene) => Promise<readonly string[]>
}

/** For messages. */
export function show(value: unknown): string {
  return JSON.stringify(value, (_name, each: unknown) => (typeof each === 'bigint' ? `${each}` : each))
}
