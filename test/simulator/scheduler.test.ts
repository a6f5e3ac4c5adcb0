import { describe, expect, it } from 'vitest'
import { Scheduler, START } from './scheduler.ts'
import { seededBy } from './seeded.ts'

const newOwner = (name: string) => ({ name, skew: 0, isDead: false })

async function run(seed: number, set: (scheduler: Scheduler, seen: string[]) => void) {
  const scheduler = new Scheduler(seed, newOwner('world'))
  const seen: string[] = []
  set(scheduler, seen)
  while (await scheduler.step());
  return { seen, scheduler }
}

describe('the scheduler', () => {
  const set = (scheduler: Scheduler, seen: string[]) => {
    const owner = newOwner('g')
    for (const name of ['a', 'b', 'c', 'd', 'e']) scheduler.schedule(owner, name, () => seen.push(name))
  }

  it('runs ready tasks in an order that the seed decides', async () => {
    const orders = await Promise.all(
      [1, 1, 2, 3, 4].map(async (seed) => (await run(seed, set)).seen.join('')),
    )
    expect(orders[0]).toBe(orders[1])
    expect(new Set(orders).size).toBeGreaterThan(1)
    for (const order of orders) expect([...order].sort().join('')).toBe('abcde')
  })

  it('lets time pass only when nothing is ready, and in the order of the timers', async () => {
    const { seen, scheduler } = await run(1, (one, names) => {
      const owner = newOwner('g')
      const pauses = [50, 10, 40, 30, 20, 60, 5]
      for (const ms of pauses) one.after(owner, ms, 'timer', () => names.push(`${one.now - START}`))
      one.schedule(owner, 'now', () => names.push('now'))
    })
    expect(seen).toEqual(['now', '5', '10', '20', '30', '40', '50', '60'])
    expect(scheduler.now - START).toBe(60)
  })

  it('does not run a timer that was cancelled when it was already due', async () => {
    for (let seed = 0; seed < 20; seed += 1) {
      const { seen } = await run(seed, (scheduler, names) => {
        const owner = newOwner('g')
        let cancelSecond = () => {}
        const cancelFirst = scheduler.after(owner, 5, 'first', () => {
          names.push('first')
          cancelSecond()
        })
        cancelSecond = scheduler.after(owner, 5, 'second', () => {
          names.push('second')
          cancelFirst()
        })
      })
      expect(seen).toHaveLength(1)
    }
  })

  it('forgets the tasks and timers of an owner that is dropped', async () => {
    const { seen } = await run(1, (scheduler, names) => {
      const [dead, alive] = [newOwner('dead'), newOwner('alive')]
      scheduler.schedule(dead, 'task', () => names.push('task'))
      scheduler.after(dead, 5, 'timer', () => names.push('timer'))
      scheduler.after(alive, 6, 'timer', () => names.push('alive'))
      dead.isDead = true
      scheduler.drop(dead)
      scheduler.schedule(dead, 'late', () => names.push('late'))
    })
    expect(seen).toEqual(['alive'])
  })

  it('lets another task run between the effect of a call and its answer', async () => {
    const between: string[] = []
    for (let seed = 0; seed < 20; seed += 1) {
      const { seen } = await run(seed, (scheduler, names) => {
        const owner = newOwner('g')
        void scheduler
          .port(owner, 'call', async () => void names.push('effect'))
          .then(() => names.push('answer'))
        scheduler.schedule(owner, 'other', () => names.push('other'))
      })
      between.push(seen.join(' '))
    }
    expect(new Set(between)).toEqual(
      new Set(['effect other answer', 'other effect answer', 'effect answer other']),
    )
  })
})

it('draws equal numbers from equal seeds, and all that it may', () => {
  const draw = (seed: string) => {
    const random = seededBy(seed)
    return Array.from({ length: 200 }, () => random.below(6))
  }
  expect(draw('one')).toEqual(draw('one'))
  expect(draw('one')).not.toEqual(draw('two'))
  expect(new Set(draw('one'))).toEqual(new Set([0, 1, 2, 3, 4, 5]))
  expect(seededBy('one').fill(Buffer.alloc(8))).toEqual(seededBy('one').fill(Buffer.alloc(8)))
})
