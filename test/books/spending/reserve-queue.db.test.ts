import { expect, it } from 'vitest'
import { createReserveQueue } from '../../../src/books/spending/reserve-queue.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import type { Connection, Database, Parameter, Statement } from '../../../src/storage/database.ts'
import { onBothEngines } from '../../engines.ts'
import { openAccount, openKey, spendOf, usageOf } from './scene.ts'

onBothEngines('the queue of spends', (database) => {
  const open = async (units = 1_000n) => {
    const accountId = await openAccount(database(), units)
    return { accountId, keyId: await openKey(database(), accountId) }
  }
  /** A database wrapper that records the batch size of each call. */
  const watched = (fail: (size: number) => Error | undefined = () => undefined) => {
    const sizes: number[] = []
    const connection: Connection & Pick<Database, 'engine'> = {
      engine: database().engine,
      kysely: database().kysely,
      gather: database().gather,
      call: async <Row>(statement: Statement, parameters: readonly Parameter[]) => {
        const size = JSON.parse(String(parameters[0])).length
        sizes.push(size)
        const error = fail(size)
        if (error !== undefined) throw error
        return database().call<Row>(statement, parameters)
      },
    }
    return { reserve: createReserveQueue(connection), sizes }
  }
  /** Long enough for the queue to send what it has, too short for an answer from a server. */
  const nextTurn = () =>
    database().engine === 'pglite' ? new Promise((resolve) => setImmediate(resolve)) : Promise.resolve()
  const times = <Result>(count: number, start: (index: number) => Promise<Result>) =>
    Promise.all(Array.from({ length: count }, (_, index) => start(index)))

  it('sends the spends of a moment together, at most 64', async () => {
    const scene = await open()
    const { reserve, sizes } = watched()
    const verdicts = await times(100, () => reserve(spendOf(scene, 7n)))
    expect(sizes).toEqual([64, 36])
    expect(verdicts.every(({ verdict }) => verdict === 'allow')).toBe(true)
    expect(await usageOf(database(), scene.keyId)).toEqual({ usedMicros: 700n, count: 100 })
    await reserve(spendOf(scene, 7n))
    expect(sizes).toEqual([64, 36, 1])
  })

  it('sends accounts in separate batches while connections are free, and pending ones together', async () => {
    const { reserve, sizes } = watched()
    const scenes = await times(9, () => open())
    const reserving = []
    for (const scene of scenes) {
      reserving.push(reserve(spendOf(scene, 7n)))
      await Promise.resolve()
    }
    const verdicts = await Promise.all(reserving)
    expect(verdicts.every(({ verdict }) => verdict === 'allow')).toBe(true)
    expect(sizes).toEqual(database().engine === 'pglite' ? [9] : [1, 1, 1, 1, 5])
  })

  it('decides the spends of an account in their order of arrival', async () => {
    const scene = await open(50n)
    const { reserve } = watched()
    const verdicts = await times(100, (index) => reserve(spendOf(scene, index < 50 ? 1n : 2n)))
    expect(verdicts.map(({ verdict }) => verdict === 'allow')).toEqual(verdicts.map((_, index) => index < 50))
  })

  it('rejects only the request that cannot be decided', async () => {
    const scene = await open()
    const { reserve, sizes } = watched()
    const taken = spendOf(scene, 1n)
    const results = await Promise.allSettled([taken, taken, spendOf(scene, 2n)].map(reserve))
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(sizes).toEqual([3, 2, 1, 1, 1])
    expect(await usageOf(database(), scene.keyId)).toEqual({ usedMicros: 3n, count: 2 })
  })

  it('halves a batch that raised, and decides the others in order', async () => {
    const scene = await open()
    const { reserve, sizes } = watched()
    const first = spendOf(scene, 1n)
    const requests = Array.from({ length: 65 }, () => spendOf(scene, 1n))
    // One of the first 64 repeats the decision of another.
    requests[0] = first
    requests[40] = first
    const results = await Promise.allSettled(requests.map(reserve))
    expect(results.flatMap(({ status }, index) => (status === 'rejected' ? [index] : []))).toEqual([40])
    expect(sizes.slice(0, 2)).toEqual([64, 32])
    expect(sizes).toHaveLength(2 + 2 * 6)
    expect(await usageOf(database(), scene.keyId)).toEqual({ usedMicros: 64n, count: 64 })
  })

  it('rejects the whole batch when the database is lost, and continues with the next', async () => {
    const scene = await open()
    const lost = new Failure('provider_unavailable', 'The database is unreachable or overloaded.')
    const { reserve, sizes } = watched((size) => (size > 1 ? lost : undefined))
    const first = reserve(spendOf(scene, 1n))
    await nextTurn()
    const results = await Promise.allSettled([first, ...[2, 3].map(() => reserve(spendOf(scene, 1n)))])
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected'])
    expect(sizes).toEqual([1, 2])
    expect(await reserve(spendOf(scene, 1n))).toMatchObject({ verdict: 'allow' })
  })
})
