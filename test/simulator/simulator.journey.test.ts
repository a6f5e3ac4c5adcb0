/** The simulator itself: the same seed is the same history, and a defect that is put back is found. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bundleGateway, editFunction, removeBundle } from './bundle.ts'
import { mutants } from './mutants/all.ts'
import type { Run } from './simulate.ts'
import { openWorkers, type Workers } from './workers.ts'

describe('the simulator', () => {
  let workers: Workers
  let bundle: string
  beforeAll(async () => {
    workers = await openWorkers(2)
    bundle = await bundleGateway('tested', [])
  })
  afterAll(() => {
    workers?.close()
    removeBundle(bundle)
  })
  const build = (seed: number, change: Partial<Run> = {}): Run => ({
    seed,
    operations: 60,
    bundle,
    functions: [],
    kinds: [],
    without: [],
    hasFaults: true,
    ...change,
  })

  it('takes the same steps for the same seed, in one process and in two', async () => {
    const told = await Promise.all([1, 1, 1, 2].map((seed) => workers.run(build(seed))))
    expect(told.flatMap(({ found }) => found)).toEqual([])
    const [first, ...others] = told.map(({ trace, books, steps }) => ({ trace, books, steps }))
    expect(others.slice(0, 2)).toEqual([first, first])
    expect(others[2]?.trace).not.toBe(first?.trace)
  }, 300_000)

  it('finds that a key of idempotency is forgotten', async () => {
    const mutant = mutants.find(({ name }) => name === 'idempotency-forgotten')
    const functions = editFunction(mutant?.functions ?? [])
    const told = await Promise.all(
      [1, 2].map((seed) => workers.run(build(seed, { functions, operations: 100 }))),
    )
    expect(told.flatMap(({ found }) => found).join('\n')).toMatch(/two transfers for one idempotency key/)
  }, 300_000)

  it('knows the place of each defect in the source', async () => {
    for (const { name, edits = [], functions = [] } of mutants) {
      const edited = await bundleGateway(`tested-${name}`, edits)
      expect(editFunction(functions).length + edits.length, name).toBeGreaterThan(0)
      removeBundle(edited)
    }
  })
})
