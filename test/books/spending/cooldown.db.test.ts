import { expect, it } from 'vitest'
import { cooldownViolation } from '../../../policies/budget.ts'
import { spendPolicy } from '../../../policies/policy.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import type { SpendRequest } from '../../../src/books/spending/spend-request.ts'
import { onBothEngines } from '../../engines.ts'
import { buildSpend, noon, openAccount, openKey, readUsage } from './scene.ts'

const payee = '0x00000000000000000000000000000000000000aa'
const hour = { cooldownSeconds: 3_600, counterparty: payee }
const after = (seconds: number) => new Date(noon.getTime() + seconds * 1_000)
const policy = spendPolicy.parse({
  perTransaction: { max: 1 },
  dailyBudget: { max: 1 },
  categories: { allow: ['transfer'] },
  counterparties: { newPayeeCooldownSec: 3_600 },
})

onBothEngines('the cool-down of a new payee', (database) => {
  const open = async (units = 100n) => {
    const accountId = await openAccount(database(), units)
    return { accountId, keyId: await openKey(database(), accountId) }
  }
  const readPayees = async (keyId: string) =>
    (
      await database()
        .kysely.selectFrom('payee')
        .select(['counterparty', 'first_seen_at'])
        .where('key_id', '=', keyId)
        .execute()
    ).map(({ counterparty, first_seen_at: firstSeenAt }) => [counterparty, firstSeenAt])
  const request = (scene: { accountId: string; keyId: string }, changes: Partial<SpendRequest>) =>
    reserveSpend(database(), buildSpend(scene, 5n, { ...hour, ...changes }))

  it('denies the first request, reports its end, and allows spends from then on', async () => {
    const scene = await open()
    const refused = await request(scene, { counterparty: payee.toUpperCase() })
    expect(refused).toMatchObject({
      verdict: 'deny',
      violations: [
        {
          rule: 'new_payee_cooldown',
          limit: '3600',
          used: null,
          requested: payee,
          remaining: null,
          resetsAt: '2026-11-20T13:00:00.000Z',
        },
      ],
    })
    expect(refused).toMatchObject({ violations: [cooldownViolation(policy, payee, null, noon)] })
    expect(await readUsage(database(), scene.keyId)).toEqual({ usedMicros: 0n, count: 0 })
    const early = await request(scene, { at: after(3_599.999) })
    expect(early).toMatchObject({ violations: [cooldownViolation(policy, payee, noon, after(3_599.999))] })
    expect(await request(scene, { at: after(3_600) })).toMatchObject({ verdict: 'allow' })
    expect(cooldownViolation(policy, payee, noon, after(3_600))).toBeUndefined()
    expect(await readPayees(scene.keyId)).toEqual([[payee, noon]])
  })

  it('records a payee although the request is denied for another reason', async () => {
    const scene = await open(0n)
    const other = {
      rule: 'asset',
      limit: 'EURC',
      used: null,
      requested: 'USDC',
      remaining: null,
      resetsAt: null,
    }
    expect(await request(scene, { violations: [other] })).toMatchObject({
      violations: [{ rule: 'asset' }, { rule: 'new_payee_cooldown' }],
    })
    expect(await request(scene, { at: after(3_600) })).toMatchObject({ verdict: 'insufficient_funds' })
    expect(await readPayees(scene.keyId)).toEqual([[payee, noon]])
  })

  it('is separate for each key', async () => {
    const scene = await open()
    const neighbour = { ...scene, keyId: await openKey(database(), scene.accountId) }
    await request(scene, {})
    expect(await request(neighbour, { at: after(3_600) })).toMatchObject({ verdict: 'deny' })
  })

  it('does not start for a paused key', async () => {
    const scene = await open()
    const set = (status: 'paused' | 'active') =>
      database().kysely.updateTable('access_key').set({ status }).where('id', '=', scene.keyId).execute()
    await set('paused')
    expect(await request(scene, {})).toMatchObject({
      violations: [{ rule: 'new_payee_cooldown' }, { rule: 'paused' }],
    })
    expect(await readPayees(scene.keyId)).toEqual([])
    await set('active')
    expect(await request(scene, { at: after(3_600) })).toMatchObject({ verdict: 'deny' })
    expect(await request(scene, { at: after(7_200) })).toMatchObject({ verdict: 'allow' })
  })

  it('always denies an unknown payee', async () => {
    const scene = await open()
    for (const at of [noon, after(3_600)])
      expect(await request(scene, { counterparty: null, at })).toMatchObject({
        violations: [{ rule: 'new_payee_cooldown', requested: null, resetsAt: null }],
      })
    expect(await readPayees(scene.keyId)).toEqual([])
  })

  it('writes nothing without the rule, for a stale policy and for a repeated call', async () => {
    const scene = await open()
    expect(await request(scene, { cooldownSeconds: null })).toMatchObject({ verdict: 'allow' })
    const stale = { id: scene.keyId, policyVersion: 9, limits: { dailyMaxMicros: null, dailyMaxCount: null } }
    expect(await request(scene, { key: stale })).toEqual({ verdict: 'stale_policy' })
    expect(await readPayees(scene.keyId)).toEqual([])
    const idempotency = { principal: scene.keyId, key: 'a', fingerprint: 'same' }
    const first = await request(scene, { idempotency })
    const again = await request(scene, {
      idempotency,
      at: after(3_600),
      counterparty: `${payee.slice(0, -1)}b`,
    })
    expect(again).toEqual({ ...first, replayed: true })
    expect(await readPayees(scene.keyId)).toEqual([[payee, noon]])
  })
})
