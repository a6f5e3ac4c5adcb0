import { expect, it } from 'vitest'
import { createPoller } from '../../../src/core/base/poller.ts'

const never = new AbortController().signal

it('polls once a round for all waiters, and not at all without waiters', async () => {
  const asked: (readonly string[])[] = []
  const there = new Map<string, number>()
  const lookout = createPoller<number>({
    everyMs: 5,
    look: async (ids) => {
      asked.push(ids)
      return new Map(ids.flatMap((id) => (there.has(id) ? [[id, there.get(id) ?? 0] as const] : [])))
    },
  })
  const all = Array.from({ length: 400 }, (_, at) => lookout.until(`id-${at % 200}`, never))
  const given = new AbortController()
  const aborted = lookout.until('gone', given.signal)
  await expect.poll(() => asked.length).toBeGreaterThan(2)
  expect(asked.at(-1)).toHaveLength(201)
  given.abort()
  expect(await aborted).toBeUndefined()
  for (let at = 0; at < 200; at += 1) there.set(`id-${at}`, at)
  expect(await Promise.all(all)).toEqual(Array.from({ length: 400 }, (_, at) => at % 200))
  const rounds = asked.length
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(asked.length).toBe(rounds)
})

it('rejects the waiters when polling fails', async () => {
  const lookout = createPoller({ everyMs: 5, look: () => Promise.reject(new Error('away')) })
  await expect(lookout.until('a', never)).rejects.toThrow('away')
})
