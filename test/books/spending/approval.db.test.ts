import { expect, it } from 'vitest'
import { balances } from '../../../src/books/ledger/balances.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import { onBothEngines } from '../../engines.ts'
import { buildSpend, openAccount, openKey, readUsage, unlimited } from './scene.ts'

const needed = { needsApproval: true }
const approved = { isApproved: true }

onBothEngines('a spend that needs approval', (database) => {
  const open = async (dailyMaxMicros: bigint | null = null) => {
    const accountId = await openAccount(database(), 100n)
    const keyId = await openKey(database(), accountId)
    return { accountId, keyId, limits: { ...unlimited, dailyMaxMicros } }
  }
  const nameCall = (keyId: string, fingerprint = 'same') => ({ principal: keyId, key: 'a', fingerprint })

  it('holds nothing, counts nothing and is recorded; a repeat gets the same verdict', async () => {
    const scene = await open()
    const request = buildSpend(scene, 60n, { ...needed, idempotency: nameCall(scene.keyId) })
    const { decisionId } = request
    expect(await reserveSpend(database(), request)).toEqual({
      verdict: 'approval_required',
      decisionId,
      replayed: false,
    })
    expect(await balances(database(), scene.accountId)).toMatchObject([{ available: 100n, held: 0n }])
    expect(await readUsage(database(), scene.keyId)).toEqual({ usedMicros: 0n, count: 0 })
    const again = buildSpend(scene, 60n, { ...needed, idempotency: nameCall(scene.keyId) })
    expect(await reserveSpend(database(), again)).toEqual({
      verdict: 'approval_required',
      decisionId,
      replayed: true,
    })
    const rows = await database()
      .kysely.selectFrom('decision')
      .select(['id', 'verdict', 'violations', 'available_units'])
      .where('key_id', '=', scene.keyId)
      .execute()
    expect(rows).toEqual([
      { id: decisionId, verdict: 'approval_required', violations: [], available_units: null },
    ])
  })

  it('is denied for other violations, and refused without the funds', async () => {
    const scene = await open(50n)
    expect(await reserveSpend(database(), buildSpend(scene, 60n, needed))).toMatchObject({
      verdict: 'deny',
      violations: [{ rule: 'daily_budget' }],
    })
    expect(await reserveSpend(database(), buildSpend(await open(), 101n, needed))).toMatchObject({
      verdict: 'insufficient_funds',
      available: { units: 100n },
    })
  })

  it('is held once when it is approved, in place of the requesting call', async () => {
    const scene = await open()
    const idempotency = nameCall(scene.keyId)
    await reserveSpend(database(), buildSpend(scene, 60n, { ...needed, idempotency }))
    const request = buildSpend(scene, 60n, { ...approved, idempotency })
    expect(await reserveSpend(database(), request)).toEqual({
      verdict: 'allow',
      decisionId: request.decisionId,
    })
    for (const changes of [needed, approved])
      expect(await reserveSpend(database(), buildSpend(scene, 60n, { ...changes, idempotency }))).toEqual({
        verdict: 'repeated',
        decisionId: request.decisionId,
      })
    expect(await readUsage(database(), scene.keyId)).toEqual({ usedMicros: 60n, count: 1 })
  })

  it('is approved for exactly the requesting call', async () => {
    const scene = await open()
    await reserveSpend(database(), buildSpend(scene, 60n, { ...needed, idempotency: nameCall(scene.keyId) }))
    const other = buildSpend(scene, 70n, { ...approved, idempotency: nameCall(scene.keyId, 'other') })
    expect(await reserveSpend(database(), other)).toEqual({ verdict: 'fingerprint_mismatch' })
  })
})
