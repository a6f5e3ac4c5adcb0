import { expect, it } from 'vitest'
import { decideApproval, requestApproval } from '../../../src/books/approvals/approvals.ts'
import { findAllowedDecision, findDecisionFacts } from '../../../src/books/spending/decisions.ts'
import { pastSpends } from '../../../src/books/spending/past-spends.ts'
import { releaseSpend } from '../../../src/books/spending/release.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import { settleSpend } from '../../../src/books/spending/settle.ts'
import type { SpendRequest } from '../../../src/books/spending/spend-request.ts'
import { newId } from '../../../src/core/base/ids.ts'
import { onBothEngines } from '../../engines.ts'
import { buildSpend, noon, openAccount, openKey } from './scene.ts'

const facts = { category: 'transfer', amount: '1.5', asset: 'USDC', usdMicros: '1500000' }
const paused = {
  rule: 'paused',
  limit: null,
  used: null,
  requested: null,
  remaining: null,
  resetsAt: null,
} as const
const payee = `0x${'a'.repeat(40)}`

onBothEngines('the decisions of a key', (database) => {
  const open = async () => {
    const accountId = await openAccount(database(), 100n)
    return { accountId, keyId: await openKey(database(), accountId) }
  }
  type Scene = Awaited<ReturnType<typeof open>>
  let spends = 0
  /** Spends a second apart, so that their ids sort in order. */
  const spend = async (scene: Scene, changes: Partial<SpendRequest> = {}) => {
    spends += 1
    const at = new Date(noon.getTime() + spends * 1000)
    const request = buildSpend(scene, 10n, { facts, at, decisionId: newId('dec', at), ...changes })
    await reserveSpend(database(), request)
    return request.decisionId
  }
  const past = (scene: Scene, limit = 50) => pastSpends(database(), { ...scene, limit })

  it('are read as the original spends, oldest first', async () => {
    const scene = await open()
    const full = {
      ...facts,
      chain: 'base',
      counterparty: payee,
      mcc: '5411',
      symbol: 'VTI',
      approvalId: 'appr_1',
    }
    const first = await spend(scene, { facts: full, operation: 'cards.pay' })
    const second = await spend(scene)
    await spend({ ...scene, keyId: await openKey(database(), scene.accountId) })
    expect(await past(scene)).toEqual([
      {
        id: first,
        at: expect.any(Date),
        operation: 'cards.pay',
        amount: '1.5',
        spend: {
          category: 'transfer',
          asset: 'USDC',
          usdMicros: 1_500_000n,
          chain: 'base',
          counterparty: payee,
          mcc: '5411',
          symbol: 'VTI',
        },
        was: 'allow',
        isReturned: false,
        isApproved: true,
        beside: [],
      },
      {
        id: second,
        at: new Date(noon.getTime() + spends * 1000 - 1000),
        operation: 'wallets.transfer',
        amount: '1.5',
        spend: {
          category: 'transfer',
          asset: 'USDC',
          usdMicros: 1_500_000n,
          chain: null,
          counterparty: null,
          mcc: null,
          symbol: null,
        },
        was: 'allow',
        isReturned: false,
        isApproved: false,
        beside: [],
      },
    ])
    expect((await past(scene, 1)).map(({ id }) => id)).toEqual([second])
    expect(await past({ ...scene, accountId: await openAccount(database(), 0n) })).toEqual([])
  })

  it('have an unknown value unless it was recorded as whole millionths', async () => {
    const scene = await open()
    for (const usdMicros of [null, '-1', '1.5', 'x1', 15])
      await spend(scene, { facts: { ...facts, usdMicros } })
    expect((await past(scene)).map(({ spend: { usdMicros } }) => usdMicros)).toEqual(Array(5).fill(null))
  })

  it('report released spends', async () => {
    const scene = await open()
    await releaseSpend(database(), { decisionId: await spend(scene), at: noon })
    await settleSpend(database(), {
      decisionId: await spend(scene),
      destination: 'external:base-sepolia',
      at: noon,
    })
    expect((await past(scene)).map(({ isReturned }) => isReturned)).toEqual([true, false])
  })

  it('keep only the violations that are independent of the policy', async () => {
    const scene = await open()
    const amounts = { limit: '1', used: '2', requested: '3', remaining: '0', resetsAt: null }
    const violations = (['paused', 'category', 'owner_budget', 'per_transaction'] as const).map((rule) => ({
      rule,
      ...amounts,
    }))
    await spend(scene, { violations })
    expect(await past(scene)).toMatchObject([
      {
        was: 'deny',
        beside: [
          { rule: 'paused', ...amounts },
          { rule: 'owner_budget', ...amounts },
        ],
      },
    ])
  })

  it('omit the request of a granted approval, whose spend has a decision of its own', async () => {
    const scene = await open()
    const openApproval = async () => {
      const decisionId = await spend(scene, { needsApproval: true })
      const approval = await requestApproval(
        { database: database(), newId },
        {
          ...scene,
          decisionId,
          operation: 'wallets.transfer',
          input: '{}',
          fingerprint: decisionId,
          idempotencyKey: null,
          reason: null,
          violations: [],
          ttlSeconds: 60,
          at: noon,
          isAsked: false,
          awaitsCaller: false,
          isReplayed: false,
        },
      )
      return { decisionId, id: approval?.id ?? '' }
    }
    const [given, refused, waiting] = [await openApproval(), await openApproval(), await openApproval()]
    const { accountId } = scene
    await decideApproval(database(), {
      keyId: null,
      note: null,
      accountId,
      id: given.id,
      status: 'approved',
      at: noon,
    })
    await decideApproval(database(), {
      keyId: null,
      note: null,
      accountId,
      id: refused.id,
      status: 'rejected',
      at: noon,
    })
    expect((await past(scene)).map(({ id, was }) => [id, was])).toEqual([
      [refused.decisionId, 'approval_required'],
      [waiting.decisionId, 'approval_required'],
    ])
  })

  it('are found again with their facts', async () => {
    const decisionId = await spend(await open(), { facts: { ...facts, found: { rate: '1.1' } } })
    expect(await findDecisionFacts(database(), decisionId)).toEqual({ rate: '1.1' })
  })

  it('decisions that allowed a call are found by its idempotency key and input', async () => {
    const scene = await open()
    const nameCall = (key: string) => ({ principal: scene.keyId, key, fingerprint: 'same' })
    const allowed = await spend(scene, { idempotency: nameCall('a') })
    await spend(
      { ...scene, keyId: await openKey(database(), scene.accountId) },
      { idempotency: nameCall('other') },
    )
    await spend(scene, { idempotency: nameCall('denied'), violations: [paused] })
    const find = (changes: object = {}) => findAllowedDecision(database(), { ...nameCall('a'), ...changes })
    expect(await find()).toBe(allowed)
    expect(await find({ principal: 'key_other' })).toBeUndefined()
    expect(await find({ fingerprint: 'other' })).toBeUndefined()
    expect(await find({ key: 'b' })).toBeUndefined()
    expect(await find({ key: 'denied' })).toBeUndefined()
  })
})
