/** Histories that once broke a promise: files that the gate runs again, whatever the seeds plan by now. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { planOperations, type Run } from './simulate.ts'

const directory = fileURLToPath(new URL('seeds', import.meta.url))

/** @property broke the promise and how it was broken. */
const kept = z.strictObject({
  seed: z.number(),
  broke: z.string(),
  operations: z.number(),
  hasFaults: z.boolean(),
  plan: z.array(z.strictObject({ number: z.number(), kind: z.string() })),
})

export type Kept = Pick<Run, 'seed' | 'operations' | 'hasFaults'> & Required<Pick<Run, 'plan'>>

export function readKept(): readonly Kept[] {
  return readdirSync(directory)
    .filter((name) => name.endsWith('.json'))
    .map((name) => kept.parse(JSON.parse(readFileSync(join(directory, name), 'utf8'))))
}

/** @returns the file's path. */
export function keep(run: Run, broke: string): string {
  const { seed, operations, hasFaults } = run
  const plan = planOperations(run).map(({ number, kind }) => ({ number, kind: kind.name }))
  const path = join(directory, `${seed}-${plan.length}.json`)
  const content = { seed, broke: broke.split('\n')[0] ?? '', operations, hasFaults, plan }
  writeFileSync(path, `${JSON.stringify(content, null, 2)}\n`)
  return path
}
