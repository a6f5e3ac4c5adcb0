import { expect, it } from 'vitest'
import { spendPolicy } from '../../policies/policy.ts'
import type { AccessKey } from '../../src/base/principal.ts'
import { agentView, viewAgent } from '../../src/spending/agent-view.ts'
import { readOwnerCap, setOwnerCap } from '../../src/spending/owner-cap.ts'
import { ownerCapView, viewOwnerCap } from '../../src/spending/owner-cap-view.ts'
import { releaseSpend } from '../../src/spending/release.ts'
import { reserveSpend } from '../../src/spending/reserve.ts'
import { pastUsage, showUsage, usageView } from '../../src/spending/usage.ts'
import { onBothEngines } from '../engines.ts'
import { noon, openAccount, openKey, spendOf } from './scene.ts'

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
    const request = spendOf(scene, units, { at })
    await reserveSpend(database(), request)
    return request.decisionId
  }

  it('by a key today is shown with the remainder and the reset time', async () => {
    const scene = await open()
    const show = async (now = noon) =>
      usageView.parse(await showUsage(database(), { keyId: scene.keyId, policy }, now))
    const fresh = { day: '2026-11-20', used: '0', remaining: '5', count: 0 }
    expect(await show()).toEqual({ ...fresh, resetsAt: '2026-11-21T00:00:00.000Z' })
    await spend(scene, 1_500_000n)
    await spend(scene, 2_000_000n)
    await spend(await open(), 1_000_000n)
    expect(await show()).toMatchObject({ used: '3.5', remaining: '1.5', count: 2 })
    expect(await show(daysAgo(-1))).toMatchObject({ day: '2026-11-21', used: '0', count: 0 })
  })

  it('by a key has no negative remainder, and none without a policy', async () => {
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

  it('on the days of the last month is listed newest first, without today and without idle days', async () => {
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

  it('by all keys of an account counts against its cap', async () => {
    const scene = await open()
    const other = { ...scene, keyId: await openKey(database(), scene.accountId) }
    const read = (isLocked = false) =>
      readOwnerCap(database(), { accountId: scene.accountId, isLocked, now: noon })
    const resetsAt = new Date('2026-11-21T00:00:00.000Z')
    expect(await read()).toEqual({ maxMicros: null, usedMicros: 0n, resetsAt })
    await spend(scene, 1_000_000n)
    await spend(other, 2_000_000n)
    await spend(other, 4_000_000n, daysAgo(1))
    await spend(await open(), 8_000_000n)
    await setOwnerCap(database(), { accountId: scene.accountId, maxMicros: 5_000_000n })
    expect(await read()).toEqual({ maxMicros: 5_000_000n, usedMicros: 3_000_000n, resetsAt })
    expect(await read(true)).toEqual(await read())
    expect(await reserveSpend(database(), spendOf(scene, 2_000_001n))).toMatchObject({
      verdict: 'deny',
      violations: [{ rule: 'owner_budget' }],
    })
    // The day before and other accounts are excluded.
    expect(await reserveSpend(database(), spendOf(scene, 2_000_000n))).toMatchObject({ verdict: 'allow' })
    expect(await reserveSpend(database(), spendOf(scene, 1n))).toMatchObject({ verdict: 'deny' })
    await setOwnerCap(database(), { accountId: scene.accountId, maxMicros: null })
    expect(await reserveSpend(database(), spendOf(scene, 2_000_001n))).toMatchObject({ verdict: 'allow' })
  })

  it('by all keys is shown with the remainder of the cap', () => {
    const resetsAt = new Date('2026-11-21T00:00:00.000Z')
    const show = (maxMicros: bigint | null, usedMicros: bigint) =>
      ownerCapView.parse(viewOwnerCap({ maxMicros, usedMicros, resetsAt }))
    expect(show(5_000_000n, 3_500_000n)).toEqual({
      dailyBudget: { max: '5' },
      used: '3.5',
      remaining: '1.5',
      resetsAt: '2026-11-21T00:00:00.000Z',
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
      keyId: 'thumb',
      name: 'Invoice bot',
      algorithm: 'ed25519',
      status: 'active',
      scopes: ['wallets:transfer'],
      policy,
      policyVersion: 3,
      usage: await showUsage(database(), { keyId: scene.keyId, policy }, noon),
      createdAt: '2026-11-20T12:00:00.000Z',
      expiresAt: '2026-11-27T12:00:00.000Z',
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
    await setOwnerCap(database(), { accountId, maxMicros: 1n })
    await database().transaction(async (connection) => {
      const { maxMicros } = await readOwnerCap(connection, { accountId, isLocked: true, now: noon })
      const [lock] = await connection.call<{ locked: boolean }>(
        {
          name: 'test_account_locked',
          text: 'select xmax::text <> $2 as locked from account where id = $1',
        },
        [accountId, '0'],
      )
      expect([maxMicros, lock?.locked]).toEqual([1n, true])
    })
  })
})
