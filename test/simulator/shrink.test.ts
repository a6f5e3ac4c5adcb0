import { expect, it } from 'vitest'
import { shrink } from './shrink.ts'
import type { Run } from './simulate.ts'

const run: Run = {
  seed: 1,
  operations: 40,
  bundle: '',
  functions: [],
  kinds: [],
  without: [],
  hasFaults: true,
}

it('leaves out what a broken promise does not need', async () => {
  const simulate = async ({ without, hasFaults }: Run) => {
    const isNeeded = (number: number) => !without.includes(number)
    const isBroken = isNeeded(7) && isNeeded(23)
    return { found: isBroken ? [`Money is kept. – faults ${hasFaults}`] : ['Another promise. – line'] }
  }
  const shortest = await shrink(run, { found: ['Money is kept. – first'], done: 40 }, simulate)
  const left = Array.from({ length: 40 }, (_, number) => number).filter(
    (number) => !shortest.run.without.includes(number),
  )
  expect(left).toEqual([7, 23])
  expect(shortest.run.hasFaults).toBe(false)
  expect(shortest.found).toEqual(['Money is kept. – faults false'])
})

it('returns the whole history where nothing can be left out', async () => {
  const simulate = async () => ({ found: [] })
  const shortest = await shrink(run, { found: ['Money is kept. – first'], done: 40 }, simulate)
  expect(shortest.run).toEqual(run)
})
