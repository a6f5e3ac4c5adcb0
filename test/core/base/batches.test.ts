import fc from 'fast-check'
import { expect, it, vi } from 'vitest'
import { createBatches } from '../../../src/core/base/batches.ts'
import { Failure } from '../../../src/core/failures/failure.ts'

interface Call {
  readonly id: number
  readonly line: string
  /** `raises`: rolls its batch back. `lost`: nobody knows what became of its batch. */
  readonly kind: 'fine' | 'raises' | 'lost'
}

const calls = fc
  .array(
    fc.record({
      line: fc.constantFrom('a', 'b', 'c'),
      kind: fc.constantFrom<Call['kind']>('fine', 'fine', 'fine', 'fine', 'raises', 'lost'),
      /** Turns of the event loop before the next call arrives. */
      pause: fc.integer({ min: 0, max: 3 }),
    }),
    { maxLength: 150 },
  )
  .map((all) => all.map((one, id) => ({ ...one, id })))

it('answers each call once with its own answer, in the order of its line, and never sends a line twice at once', async () => {
  await fc.assert(
    fc.asyncProperty(calls, fc.integer({ min: 1, max: 4 }), async (given, concurrent) => {
      const done: Call[] = []
      const busy = new Set<string>()
      let running = 0
      const call = createBatches<Call, number>({
        concurrent,
        chooseLine: ({ line }) => line,
        send: async (batch) => {
          running += 1
          const lines = new Set(batch.map(({ line }) => line))
          expect(batch.length).toBeLessThanOrEqual(64)
          expect(running).toBeLessThanOrEqual(concurrent)
          for (const line of lines) expect(busy.has(line)).toBe(false)
          for (const line of lines) busy.add(line)
          await new Promise((resolve) => setImmediate(resolve))
          for (const line of lines) busy.delete(line)
          running -= 1
          if (batch.some(({ kind }) => kind === 'lost')) throw new Failure('provider_unavailable', 'Lost.')
          if (batch.some(({ kind }) => kind === 'raises')) throw new Error('raised')
          done.push(...batch)
          return batch.map(({ id }) => id)
        },
      })
      const answers: Promise<PromiseSettledResult<number>>[] = []
      for (const { pause, ...one } of given) {
        answers.push(
          call(one).then(
            (value) => ({ status: 'fulfilled', value }),
            (reason) => ({ status: 'rejected', reason }),
          ),
        )
        for (let turn = 0; turn < pause; turn += 1) await new Promise((resolve) => setImmediate(resolve))
      }
      const results = await Promise.all(answers)
      for (const [id, result] of results.entries()) {
        const kind = given[id]?.kind
        if (kind === 'raises') expect(result.status).toBe('rejected')
        // A call is only ever rejected for its own sake, or with a batch whose outcome is unknown.
        if (result.status === 'fulfilled') expect(result.value).toBe(id)
        else if (kind === 'fine') expect(result.reason).toBeInstanceOf(Failure)
      }
      const answered = results.flatMap(({ status }, id) => (status === 'fulfilled' ? [id] : []))
      expect(done.map(({ id }) => id).sort((one, other) => one - other)).toEqual(answered)
      for (const line of ['a', 'b', 'c']) {
        const order = done.filter((one) => one.line === line).map(({ id }) => id)
        expect(order).toEqual([...order].sort((one, other) => one - other))
      }
    }),
    { numRuns: 200 },
  )
})

it('rejects the calls that wait behind a batch that hung, and no others', async ({ onTestFinished }) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] })
  onTestFinished(() => {
    vi.useRealTimers()
  })
  const lost = new Failure('provider_unavailable', 'The database is unreachable or overloaded.')
  const sent: string[][] = []
  const call = createBatches<string, string>({
    concurrent: 2,
    chooseLine: (request) => request.slice(0, 1),
    send: async (batch) => {
      sent.push([...batch])
      if (batch.includes('a1')) {
        await new Promise((resolve) => setTimeout(resolve, 2_100))
        throw lost
      }
      return batch
    },
  })
  const first = call('a1')
  await Promise.resolve()
  const answers = Promise.allSettled([first, call('a2'), call('b1')])
  await vi.advanceTimersByTimeAsync(2_100)
  expect(await answers).toMatchObject([
    { status: 'rejected', reason: lost },
    { status: 'rejected', reason: lost },
    { status: 'fulfilled', value: 'b1' },
  ])
  expect(sent).toEqual([['a1'], ['b1']])
  expect(await call('a3')).toBe('a3')
})

it('rejects all when too few answers come back, and sends nothing again', async () => {
  const sizes: number[] = []
  const call = createBatches<string, string>({
    concurrent: 1,
    chooseLine: (request) => request,
    send: async (batch) => {
      sizes.push(batch.length)
      return batch.slice(1)
    },
  })
  const results = await Promise.allSettled(['a', 'b', 'c'].map(call))
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  expect(sizes).toEqual([3])
})
