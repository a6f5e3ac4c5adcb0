import { expect, it } from 'vitest'
import { spendPolicy } from '../../../policies/policy.ts'
import { agentView, viewAgent } from '../../../src/books/spending/agent-view.ts'
import { readOwnerCap, setOwnerCap } from '../../../src/books/spending/owner-cap.ts'
import { ownerCapView, viewOwnerCap } from '../../../src/books/spending/owner-cap-view.ts'
import { releaseSpend } from '../../../src/books/spending/release.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import { pastUsage, showUsage, usageView } from '../../../src/books/spending/usage.ts'
import type { AccessKey } from '../../../src/core/base/principal.ts'
import { onBothEngines } from '../../engines.ts'
import { buildSpend, noon, openAccount, openKey } from './scene.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const daysAgo = (days: number) => new Date(noon.getTime() - days * DAY_MS)
const policy = spendPolicy.parse({
  perTransaction: { max: '2' },
  dailyBudget: { max: '5' },
  categories: { allow: ['transfer'] },
})

onBothEngines('what was used', (database) => {
  const open = async () => {
    const accountId = await openAccount(database(), 100_000_000n)
    return { accountId, keyId: await openKey(database(), accountId) }
  }
  const spend = async (scene: { accountId: string; keyId: string }, units: bigint, at = noon) => {
    const request = buildSpend(scene, units, { at })
    await reserveSpend(database(), request)
    return request.decisionId
  }

  it('usage by a key today is shown with the remainder and the reset time', async () => {
    const scene = await open()
    const show = async (now = noon) =>
      usageView.parse(await showUsage(database(), { keyId: scene.keyId, policy }, now))
    const fresh = { used: '0', remaining: null, count: 0 }
    expect(await show()).toEqual({
      ...fresh,
      day: '2026-11-20',
      remaining: '5',
      resetsAt: '2026-11-21T00:00:00.000Z',
      week: { ...fresh, resetsAt: '2026-11-23T00:00:00.000Z' },
      month: { ...fresh, resetsAt: '2026-12-01T00:00:00.000Z' },
      total: fresh,
    })
    await spend(scene, 1_500_000n)
    await spend(scene, 2_000_000n)
    await spend(await open(), 1_000_000n)
    expect(await show()).toMatchObject({ used: '3.5', remaining: '1.5', count: 2 })
    expect(await show(daysAgo(-1))).toMatchObject({ day: '2026-11-21', used: '0', count: 0 })
  })

  it('usage by a key this week and this month is shown beside today', async () => {
    const scene = await open()
    const longer = {
      ...policy,
      weeklyBudget: { max: '8' },
      monthlyBudget: { max: '9', maxCount: 5 },
      totalBudget: { max: '20' },
    }
    for (const days of [0, 4, 5, 19, 20, -3]) await spend(scene, 1_000_000n, daysAgo(days))
    expect(await showUsage(database(), { keyId: scene.keyId, policy: longer }, noon)).toMatchObject({
      used: '1',
      count: 1,
      // From Monday, the 16th, to Sunday, the 22nd.
      week: { used: '2', remaining: '6', count: 2, resetsAt: '2026-11-23T00:00:00.000Z' },
      // The 1st, 15th, 16th, 20th and 23rd of November.
      month: { used: '5', remaining: '4', count: 5 },
      total: { used: '6', remaining: '14', count: 6 },
    })
  })

  it('usage by a key has no negative remainder, and none without a policy', async () => {
    const scene = await open()
    await spend(scene, 6_000_000n)
    expect(await showUsage(database(), { keyId: scene.keyId, policy }, noon)).toMatchObject({
      used: '6',
      remaining: '0',
    })
    expect(await showUsage(database(), { keyId: scene.keyId, policy: null }, noon)).toMatchObject({
      used: '6',
      remaining: null,
    })
  })

  it('usage on the days of the last month is listed newest first, without today and without idle days', async () => {
    const scene = await open()
    for (const [days, units] of [
      [0, 1n],
      [1, 2_000_000n],
      [30, 3_000_000n],
      [31, 4n],
    ] as const)
      await spend(scene, units, daysAgo(days))
    await spend(scene, 500_000n, daysAgo(1))
    await releaseSpend(database(), { decisionId: await spend(scene, 5n, daysAgo(2)), at: noon })
    await spend(await open(), 6n, daysAgo(1))
    expect(await pastUsage(database(), scene.keyId, noon)).toEqual([
      { day: '2026-11-19', used: '2.5', count: 2 },
      { day: '2026-10-21', used: '3', count: 1 },
    ])
  })

  it('usage by all keys of an account counts against its cap', async () => {
    const scene = await open()
    const other = { ...scene, keyId: await openKey(database(), scene.accountId) }
    const read = (isLocked = false) =>
      readOwnerCap(database(), { accountId: scene.accountId, isLocked, now: noon })
    const ends = { day: '2026-11-21', week: '2026-11-23', month: '2026-12-01' }
    const buildCap = (period: keyof typeof ends, maxMicros: bigint | null, usedMicros: bigint) => ({
      maxMicros,
      usedMicros,
      resetsAt: new Date(ends[period]),
    })
    expect(await read()).toEqual({
      day: buildCap('day', null, 0n),
      week: buildCap('week', null, 0n),
      month: buildCap('month', null, 0n),
      refundsRefill: true,
    })
    await spend(scene, 1_000_000n)
    await spend(other, 2_000_000n)
    await spend(other, 4_000_000n, daysAgo(1))
    await spend(await open(), 8_000_000n)
    const caps = { day: 5_000_000n, week: null, month: 20_000_000n }
    await setOwnerCap(database(), { accountId: scene.accountId, caps })
    expect(await read()).toEqual({
      day: buildCap('day', 5_000_000n, 3_000_000n),
      week: buildCap('week', null, 7_000_000n),
      month: buildCap('month', 20_000_000n, 7_000_000n),
      refundsRefill: true,
    })
    expect(await read(true)).toEqual(await read())
    expect(await reserveSpend(database(), buildSpend(scene, 2_000_001n))).toMatchObject({
      verdict: 'deny',
      violations: [{ rule: 'owner_budget' }],
    })
    // The day before and other accounts are excluded.
    expect(await reserveSpend(database(), buildSpend(scene, 2_000_000n))).toMatchObject({ verdict: 'allow' })
    expect(await reserveSpend(database(), buildSpend(scene, 1n))).toMatchObject({ verdict: 'deny' })
    const week = { day: null, week: 9_000_000n, month: 8_000_000n }
    await setOwnerCap(database(), { accountId: scene.accountId, caps: week })
    expect(await reserveSpend(database(), buildSpend(scene, 1n))).toMatchObject({
      violations: [
        { rule: 'owner_budget', limit: '9', used: '9', resetsAt: '2026-11-23T00:00:00.000Z' },
        { rule: 'owner_budget', limit: '8', used: '9', remaining: '0', resetsAt: '2026-12-01T00:00:00.000Z' },
      ],
    })
    const none = { day: null, week: null, month: null }
    await setOwnerCap(database(), { accountId: scene.accountId, caps: none })
    expect(await reserveSpend(database(), buildSpend(scene, 2_000_001n))).toMatchObject({ verdict: 'allow' })
  })

  it('usage by all keys is shown with the remainder of the cap', () => {
    const resetsAt = new Date('2026-11-21T00:00:00.000Z')
    const free = { maxMicros: null, usedMicros: 7n, resetsAt }
    const show = (maxMicros: bigint | null, usedMicros: bigint) =>
      ownerCapView.parse(
        viewOwnerCap(
          {
            day: { maxMicros, usedMicros, resetsAt },
            week: { ...free, maxMicros: 9n },
            month: free,
            refundsRefill: true,
          },
          [],
        ),
      )
    const end = { resetsAt: '2026-11-21T00:00:00.000Z' }
    expect(show(5_000_000n, 3_500_000n)).toEqual({
      dailyBudget: { max: '5' },
      weeklyBudget: { max: '0.000009' },
      monthlyBudget: null,
      refundsRefill: true,
      approvals: [],
      used: '3.5',
      remaining: '1.5',
      ...end,
      week: { used: '0.000007', remaining: '0.000002', ...end },
      month: { used: '0.000007', remaining: null, ...end },
    })
    expect(show(5_000_000n, 6_000_000n)).toMatchObject({ used: '6', remaining: '0' })
    expect(show(null, 3_000_000n)).toMatchObject({ dailyBudget: null, used: '3', remaining: null })
  })

  it('is in the owner’s view of an agent', async () => {
    const scene = await open()
    await spend(scene, 1_000_000n)
    const agent: AccessKey = {
      id: scene.keyId,
      kind: 'agent',
      name: 'Invoice bot',
      thumbprint: 'thumb',
      publicKey: 'public',
      scopes: ['wallets:transfer'],
      status: 'active',
      policy,
      policyVersion: 3,
      policyHash: 'hash',
      createdAt: noon,
      expiresAt: daysAgo(-7),
    }
    const show = async (key: AccessKey) => agentView.parse(await viewAgent(database(), key, noon))
    expect(await show(agent)).toEqual({
      agentId: scene.keyId,
      path: [],
      earmarked: null,
      setAside: '0',
      task: null,
      keyId: 'thumb',
      name: 'Invoice bot',
      algorithm: 'ed25519',
      connection: 'signed',
      status: 'active',
      scopes: ['wallets:transfer'],
      policy,
      policyVersion: 3,
      usage: await showUsage(database(), { keyId: scene.keyId, policy }, noon),
      createdAt: '2026-11-20T12:00:00.000Z',
      expiresAt: '2026-11-27T12:00:00.000Z',
      pausedAt: null,
      firstUsedAt: null,
    })
    const grant = { ...agent, thumbprint: null, publicKey: null, policy: undefined, expiresAt: null }
    expect(await show(grant)).toMatchObject({
      keyId: null,
      algorithm: null,
      policy: null,
      usage: { used: '1', remaining: null },
      expiresAt: null,
    })
  })

  it('locks its cap, so that concurrent changes are serialized', async () => {
    const { accountId } = await open()
    await setOwnerCap(database(), { accountId, caps: { day: 1n, week: null, month: null } })
    await database().transaction(async (connection) => {
      const { day } = await readOwnerCap(connection, { accountId, isLocked: true, now: noon })
      const [lock] = await connection.call<{ locked: boolean }>(
        {
          name: 'test_account_locked',
          text: 'select xmax::text <> $2 as locked from account where id = $1',
        },
        [accountId, '0'],
      )
      expect([day.maxMicros, lock?.locked]).toEqual([1n, true])
    })
  })
})
