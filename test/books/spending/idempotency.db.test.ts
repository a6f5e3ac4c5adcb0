import { expect, it } from 'vitest'
import { sweepIdempotency, withIdempotency } from '../../../src/books/spending/idempotency.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import { onBothEngines } from '../../engines.ts'
import { buildSpend, noon, openAccount, openKey } from './scene.ts'

const call = (key: string, fingerprint = 'same', at = noon) => ({ principal: 'acct_1', key, fingerprint, at })
const nextDay = new Date('2026-11-21T12:00:00.001Z')

onBothEngines('withIdempotency', (database) => {
  it('runs the work once and repeats its answer', async () => {
    let runs = 0
    const work = async () => ({ runs: ++runs })
    expect(await withIdempotency(database(), call('a'), work)).toEqual({
      replayed: false,
      answer: { runs: 1 },
    })
    expect(await withIdempotency(database(), call('a'), work)).toEqual({
      replayed: true,
      answer: { runs: 1 },
    })
    expect(await withIdempotency(database(), { ...call('a'), principal: 'acct_2' }, work)).toMatchObject({
      replayed: false,
    })
  })

  it('stores an answer of null', async () => {
    await withIdempotency(database(), call('null'), async () => null)
    expect(await withIdempotency(database(), call('null'), async () => 1)).toEqual({
      replayed: true,
      answer: null,
    })
  })

  it('rejects the key with another request', async () => {
    await withIdempotency(database(), call('b'), async () => 1)
    await expect(withIdempotency(database(), call('b', 'other'), async () => 2)).rejects.toMatchObject({
      code: 'idempotency_key_reused',
    })
  })

  it('stores nothing of work that throws, so that it can be retried', async () => {
    const rail = { rail: 'wallet-transfer', enabled: false, updated_at: noon }
    const failing = withIdempotency(database(), call('c'), async (connection) => {
      await connection.kysely.insertInto('rail_control').values(rail).execute()
      throw new Error('boom')
    })
    await expect(failing).rejects.toThrow('boom')
    expect(await database().kysely.selectFrom('rail_control').selectAll().execute()).toEqual([])
    expect(await withIdempotency(database(), call('c'), async () => 'done')).toEqual({
      replayed: false,
      answer: 'done',
    })
  })

  it('expires after 24 hours', async () => {
    await withIdempotency(database(), call('d'), async () => 1)
    expect(await withIdempotency(database(), call('d', 'other', nextDay), async () => 2)).toEqual({
      replayed: false,
      answer: 2,
    })
  })

  it('shares its keys with spends: neither runs under a key of the other', async () => {
    const accountId = await openAccount(database(), 100n)
    const scene = { accountId, keyId: await openKey(database(), accountId) }
    const { at: _, ...idempotency } = call('e', 'spend')
    await reserveSpend(database(), buildSpend(scene, 1n, { idempotency }))
    await expect(withIdempotency(database(), call('e', 'write'), async () => 1)).rejects.toMatchObject({
      code: 'idempotency_key_reused',
    })
    await expect(withIdempotency(database(), call('e', 'spend'), async () => 1)).rejects.toMatchObject({
      code: 'idempotency_in_progress',
    })
    await withIdempotency(database(), call('f', 'write'), async () => 1)
    const { at: __, ...taken } = call('f', 'other')
    expect(await reserveSpend(database(), buildSpend(scene, 1n, { idempotency: taken }))).toEqual({
      verdict: 'fingerprint_mismatch',
    })
  })

  it('sweeps old keys, except those of open spends', async () => {
    await sweepIdempotency(database(), nextDay)
    const left = await database()
      .kysely.selectFrom('idempotency')
      .select('key')
      .where('created_at', '=', noon)
      .execute()
    expect(left).toEqual([{ key: 'e' }])
  })
})
