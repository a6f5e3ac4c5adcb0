import { expect, it } from 'vitest'
import { withClaimedIdempotency, withIdempotency } from '../../../src/books/spending/idempotency.ts'
import { onBothEngines } from '../../engines.ts'
import { noon } from './scene.ts'

const after = (seconds: number) => new Date(noon.getTime() + seconds * 1000)
const call = (key: string, { fingerprint = 'same', at = noon } = {}) => ({
  principal: 'acct_1',
  key,
  fingerprint,
  at,
})
const inProgress = {
  code: 'idempotency_in_progress',
  message: 'The first call with this idempotency key is still running.',
  members: { retryAfter: 1, hint: 'Repeat the same request after a second to get its response.' },
}
const reused = {
  code: 'idempotency_key_reused',
  message: 'This idempotency key was used with a different request.',
  members: { hint: 'Use a new idempotency key for a new request.' },
}

onBothEngines('claimingIdempotency', (database) => {
  /** A call that runs until it is released, with its answer and the function that releases it. */
  const begin = async (key: string) => {
    let finish: (answer: string) => void = () => {}
    let start = () => {}
    const started = new Promise<void>((resolve) => {
      start = resolve
    })
    const work = () =>
      new Promise<string>((resolve) => {
        finish = resolve
        start()
      })
    const ended = withClaimedIdempotency(database(), call(key), work)
    await started
    return { finish, ended }
  }

  it('runs the work once and repeats its answer', async () => {
    let runs = 0
    const work = async () => ({ runs: ++runs })
    const [first, second] = [call('a'), call('a', { at: after(3600) })]
    expect(await withClaimedIdempotency(database(), first, work)).toEqual({
      replayed: false,
      answer: { runs: 1 },
    })
    expect(await withClaimedIdempotency(database(), second, work)).toEqual({
      replayed: true,
      answer: { runs: 1 },
    })
    expect(await withIdempotency(database(), second, work)).toEqual({ replayed: true, answer: { runs: 1 } })
    expect(await withClaimedIdempotency(database(), { ...first, principal: 'acct_2' }, work)).toMatchObject({
      replayed: false,
    })
  })

  it('rejects a second call while the first runs, and another request always', async () => {
    const { finish, ended } = await begin('b')
    const again = (changes: object) =>
      withClaimedIdempotency(database(), call('b', changes), async () => 'second')
    await expect(again({})).rejects.toMatchObject(inProgress)
    await expect(again({ fingerprint: 'other' })).rejects.toMatchObject(reused)
    await expect(withIdempotency(database(), call('b'), async () => 1)).rejects.toMatchObject(inProgress)
    finish('first')
    expect(await ended).toEqual({ replayed: false, answer: 'first' })
    await expect(again({ fingerprint: 'other' })).rejects.toMatchObject(reused)
    expect(await again({})).toEqual({ replayed: true, answer: 'first' })
  })

  it('releases the key of work that throws', async () => {
    const failing = withClaimedIdempotency(database(), call('c'), () => Promise.reject(new Error('boom')))
    await expect(failing).rejects.toThrow('boom')
    const other = call('c', { fingerprint: 'other' })
    expect(await withClaimedIdempotency(database(), other, async () => 2)).toEqual({
      replayed: false,
      answer: 2,
    })
  })

  it('lets the same request, and no other, take over a claim that is two minutes old', async () => {
    const { finish, ended } = await begin('d')
    const again = (at: Date, fingerprint = 'same') =>
      withClaimedIdempotency(database(), call('d', { at, fingerprint }), async () => 'second')
    await expect(again(after(4))).rejects.toMatchObject(inProgress)
    await expect(again(after(30))).rejects.toMatchObject({ members: { retryAfter: 91 } })
    await expect(again(after(120))).rejects.toMatchObject(inProgress)
    await expect(again(after(121), 'other')).rejects.toMatchObject(reused)
    expect(await again(after(121))).toEqual({ replayed: false, answer: 'second' })
    // The first was only slow: the second's answer stays.
    finish('first')
    await ended
    expect(await again(after(122))).toEqual({ replayed: true, answer: 'second' })
  })

  it('expires after 24 hours', async () => {
    await withClaimedIdempotency(database(), call('e'), async () => 1)
    const nextDay = call('e', { fingerprint: 'other', at: after(24 * 3600 + 1) })
    expect(await withClaimedIdempotency(database(), nextDay, async () => 2)).toEqual({
      replayed: false,
      answer: 2,
    })
  })
})
