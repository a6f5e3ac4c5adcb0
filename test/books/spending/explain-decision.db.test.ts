import { expect, it } from 'vitest'
import { spendPolicy } from '../../../policies/policy.ts'
import { explainDecision } from '../../../src/books/spending/explain-decision.ts'
import { releaseSpend } from '../../../src/books/spending/release.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import { newId } from '../../../src/core/base/ids.ts'
import { onBothEngines } from '../../engines.ts'
import { buildSpend, noon, openAccount, openKey } from './scene.ts'

const policy = spendPolicy.parse({
  perTransaction: { max: '10' },
  dailyBudget: { max: '20' },
  weeklyBudget: { max: '80' },
  categories: { allow: ['transfer'] },
})
const HASH = 'a'.repeat(64)
const DAY_MS = 86_400_000

onBothEngines('an explained decision', (database) => {
  const open = async () => {
    const accountId = await openAccount(database(), 1_000_000_000n)
    const keyId = await openKey(database(), accountId)
    await database()
      .kysely.updateTable('access_key')
      .set({ policy: JSON.stringify(policy), policy_hash: HASH })
      .where('id', '=', keyId)
      .execute()
    return { accountId, keyId }
  }
  type Scene = Awaited<ReturnType<typeof open>>
  const spend = async (scene: Scene, { at, dollars }: { at: Date; dollars: number }) => {
    const facts = {
      category: 'transfer',
      amount: String(dollars),
      asset: 'USDC',
      usdMicros: String(dollars * 1_000_000),
    }
    const request = buildSpend(scene, BigInt(dollars) * 1_000_000n, {
      facts,
      at,
      decisionId: newId('dec', at),
      policyHash: HASH,
    })
    await reserveSpend(database(), request)
    return request.decisionId
  }
  const after = (ms: number) => new Date(noon.getTime() + ms)
  const readRules = async ({ accountId }: Scene, id: string) => {
    const { rules } = await explainDecision(database(), { id, accountId })
    return Object.fromEntries(rules.map(({ rule, used, result }) => [rule, [used, result]]))
  }

  it('counts what the periods had used before it, and nothing that came after it or came back', async () => {
    const scene = await open()
    // The day before noon's is of the same ISO week.
    await spend(scene, { at: after(-DAY_MS), dollars: 5 })
    await spend(scene, { at: after(1_000), dollars: 3 })
    const back = await spend(scene, { at: after(2_000), dollars: 7 })
    await releaseSpend(database(), { decisionId: back, at: after(3_000) })
    const id = await spend(scene, { at: after(4_000), dollars: 2 })
    await spend(scene, { at: after(5_000), dollars: 9 })
    expect(await readRules(scene, id)).toEqual({
      per_transaction: [null, 'kept'],
      category: [null, 'kept'],
      daily_budget: ['3', 'kept'],
      weekly_budget: ['8', 'kept'],
    })
  })

  it('is not counted with the spends of another key', async () => {
    const scene = await open()
    const other = { ...scene, keyId: await openKey(database(), scene.accountId) }
    await spend(other, { at: after(1_000), dollars: 4 })
    const id = await spend(scene, { at: after(2_000), dollars: 1 })
    expect((await readRules(scene, id)).daily_budget).toEqual(['0', 'kept'])
  })

  it('lists only violated rules once the key has another policy', async () => {
    const scene = await open()
    const id = await spend(scene, { at: after(1_000), dollars: 1 })
    await database()
      .kysely.updateTable('access_key')
      .set({ policy_hash: 'b'.repeat(64), policy_version: 2 })
      .where('id', '=', scene.keyId)
      .execute()
    expect(await explainDecision(database(), { id, accountId: scene.accountId })).toEqual({
      policyVersion: 1,
      isComplete: false,
      rules: [],
    })
  })

  it('has no rules of agents when a person spent', async () => {
    const { accountId } = await open()
    const request = buildSpend({ accountId, keyId: null }, 10n, {
      facts: { category: 'transfer', amount: '0.00001', asset: 'USDC', usdMicros: '10' },
    })
    await reserveSpend(database(), request)
    expect(await explainDecision(database(), { id: request.decisionId, accountId })).toMatchObject({
      isComplete: true,
      rules: [],
    })
  })

  it('is not found in another account', async () => {
    const scene = await open()
    const id = await spend(scene, { at: after(1_000), dollars: 1 })
    const stranger = await openAccount(database(), 0n)
    await expect(explainDecision(database(), { id, accountId: stranger })).rejects.toMatchObject({
      code: 'not_found',
    })
  })
})
