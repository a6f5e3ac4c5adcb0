/** The limit of equal spends: what it counts, whom it stops, and how its owner lets it go on. */
import { expect, it } from 'vitest'
import { nameRepeat, repeatViolation } from '../../../policies/budget.ts'
import { spendPolicy } from '../../../policies/policy.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import type { SpendRequest } from '../../../src/books/spending/spend-request.ts'
import { newId } from '../../../src/core/base/ids.ts'
import { onBothEngines } from '../../engines.ts'
import { buildSpend, noon, openAccount, openKey, unlimited } from './scene.ts'

const after = (seconds: number) => new Date(noon.getTime() + seconds * 1_000)
const repeat = { count: 3, seconds: 600 }
const policy = spendPolicy.parse({
  perTransaction: { max: 1 },
  dailyBudget: { max: 1 },
  categories: { allow: ['transfer'] },
  repeatLimit: { count: 3, perSec: 600 },
})
const facts = { category: 'transfer', asset: 'USDC', amount: '0.000005', counterparty: '0xaa', symbol: null }

onBothEngines('the limit of equal spends', (database) => {
  const open = async () => {
    const accountId = await openAccount(database(), 1_000n)
    return { accountId, keyId: await openKey(database(), accountId), limits: { ...unlimited, repeat } }
  }
  type Scene = Awaited<ReturnType<typeof open>>
  const spend = (scene: Scene, seconds: number, changes: Partial<SpendRequest> = {}) =>
    reserveSpend(database(), buildSpend(scene, 5n, { facts, at: after(seconds), ...changes }))
  const readStatus = async ({ keyId }: Pick<Scene, 'keyId'>) =>
    (
      await database()
        .kysely.selectFrom('access_key')
        .select('status')
        .where('id', '=', keyId)
        .executeTakeFirst()
    )?.status
  const readRequests = (accountId: string) =>
    database()
      .kysely.selectFrom('approval')
      .select(['key_id', 'operation', 'input', 'status', 'decision_id'])
      .where('account_id', '=', accountId)
      .execute()
  const setStatus = (keyId: string, status: 'active' | 'paused') =>
    database().kysely.updateTable('access_key').set({ status }).where('id', '=', keyId).execute()

  it('pauses the key at one more within the span, and asks its owner once', async () => {
    const scene = await open()
    for (const at of [0, 60, 120]) expect(await spend(scene, at)).toMatchObject({ verdict: 'allow' })
    const refused = await spend(scene, 180)
    expect(refused).toMatchObject({
      verdict: 'deny',
      violations: [repeatViolation(policy, [0, 60, 120].map(after), after(180))],
    })
    expect(refused).toMatchObject({ violations: [{ rule: 'repeat_limit', limit: '3', used: '3' }] })
    expect(await readStatus(scene)).toBe('paused')
    // Whatever it tries next is refused, and asks nobody again.
    const other = await spend(scene, 181, { facts: { ...facts, amount: '7' } })
    expect(other).toMatchObject({ verdict: 'deny', violations: [{ rule: 'paused' }] })
    expect(await spend(scene, 182)).toMatchObject({ verdict: 'deny' })
    expect(await readRequests(scene.accountId)).toEqual([
      {
        key_id: scene.keyId,
        operation: 'agents.resume',
        input: JSON.stringify({ id: scene.keyId, status: 'active' }).replaceAll(/([:,])/g, '$1 '),
        status: 'pending',
        decision_id: 'decisionId' in refused ? refused.decisionId : '',
      },
    ])
    const events = await database()
      .kysely.selectFrom('event')
      .select('type')
      .where('agent_id', '=', scene.keyId)
      .where('type', '=', 'key.paused')
      .execute()
    expect(events).toHaveLength(1)
  })

  it('forgets the run when its owner resumes it', async () => {
    const scene = await open()
    for (const at of [0, 1, 2, 3]) await spend(scene, at)
    await setStatus(scene.keyId, 'active')
    expect(await readRequests(scene.accountId)).toMatchObject([{ status: 'withdrawn' }])
    for (const at of [4, 5, 6]) expect(await spend(scene, at)).toMatchObject({ verdict: 'allow' })
    expect(await spend(scene, 7)).toMatchObject({ verdict: 'deny' })
  })

  it('counts neither older spends nor others', async () => {
    const scene = await open()
    for (const at of [0, 1, 2]) await spend(scene, at)
    for (const other of [
      { ...facts, amount: '6' },
      { ...facts, counterparty: '0xbb' },
      { ...facts, category: 'x402' },
    ])
      expect(await spend(scene, 3, { facts: other })).toMatchObject({ verdict: 'allow' })
    expect(await spend(scene, 600)).toMatchObject({ verdict: 'allow' })
    expect(await spend(scene, 600)).toMatchObject({ verdict: 'deny' })
  })

  it('judges nothing that its owner sees, but counts it', async () => {
    const scene = await open()
    for (const at of [0, 1, 2]) await spend(scene, at)
    expect(await spend(scene, 3, { needsApproval: true })).toMatchObject({ verdict: 'approval_required' })
    expect(await readStatus(scene)).toBe('active')
    expect(await spend(scene, 4)).toMatchObject({ verdict: 'deny' })
  })

  it('stops the one key of a path that repeats what the others did, and resumes it alone', async () => {
    const scene = await open()
    const children: Scene[] = []
    for (let made = 0; made < 3; made += 1) {
      const keyId = newId('key', noon)
      await database()
        .kysely.insertInto('access_key')
        .values({
          id: keyId,
          account_id: scene.accountId,
          kind: 'agent',
          name: 'child',
          scopes: [],
          created_at: noon,
          path: [scene.keyId],
        })
        .execute()
      children.push({ ...scene, keyId })
    }
    const [first, second, third] = children
    if (first === undefined || second === undefined || third === undefined)
      throw new Error('There are three.')
    const below = (child: Scene, seconds: number) =>
      reserveSpend(
        database(),
        buildSpend({ ...child, limits: unlimited }, 5n, {
          facts,
          at: after(seconds),
          key: {
            id: child.keyId,
            policyVersion: 1,
            limits: unlimited,
            path: [{ id: scene.keyId, policyVersion: 1, budgets: [], cooldownSeconds: null, repeat }],
          },
        }),
      )
    for (const at of [0, 1]) expect(await below(first, at)).toMatchObject({ verdict: 'allow' })
    expect(await below(second, 2)).toMatchObject({ verdict: 'allow' })
    const denied = { verdict: 'deny', violations: [{ rule: 'repeat_limit', agentId: scene.keyId }] }
    // It has made none of the run.
    expect(await below(third, 3)).toMatchObject(denied)
    expect(await below(second, 3)).toMatchObject(denied)
    const statuses = [scene, first, second, third].map(readStatus)
    expect(await Promise.all(statuses)).toEqual(['active', 'active', 'paused', 'active'])
    await setStatus(second.keyId, 'active')
    expect(await below(second, 4)).toMatchObject({ verdict: 'allow' })
  })

  it('names equal spends as the policies do', async () => {
    const { rows } = await database()
      .kysely.getExecutor()
      .executeQuery<{ name: string }>({
        sql: 'select repeat_name($1::jsonb) as name',
        parameters: [JSON.stringify({ ...facts, counterparty: '0xAA' })],
        query: { kind: 'RawNode' } as never,
        queryId: { queryId: 'x' } as never,
      })
    const named = nameRepeat({
      category: 'transfer',
      amount: '0.000005',
      counterparty: '0xAA',
      symbol: null,
    })
    expect(JSON.parse(String(rows[0]?.name))).toEqual(JSON.parse(named))
  })
})
