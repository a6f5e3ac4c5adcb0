import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { spendPolicy } from '../../../policies/policy.ts'
import { replay } from '../../../policies/replay.ts'
import type { Services } from '../../../src/kernel/context.ts'
import { run } from '../../../src/kernel/run.ts'
import { createRunApproved } from '../../../src/kernel/run-approved.ts'
import { findKey } from '../../../src/people/identity/store.ts'
import { createChains } from '../../../src/providers/chain/chains.ts'
import createKey from '../../../tools/agents/keys/create.ts'
import pause from '../../../tools/agents/keys/pause.ts'
import ownerGet from '../../../tools/agents/policy/get.ts'
import ownerSet from '../../../tools/agents/policy/set.ts'
import decide from '../../../tools/approvals/decide.ts'
import { tools } from '../../../tools/index.ts'
import simulate from '../../../tools/policy/simulate.ts'
import mfa from '../../../tools/security/mfa.ts'
import transfer from '../../../tools/wallets/transfer.ts'
import { onBothEngines } from '../../engines.ts'
import { newAgent } from '../../journeys/agent.ts'
import { buildCall, noon, servicesOn } from '../../kernel/scene.ts'
import {
  computeTotp,
  newSignedIn,
  readSecret,
  type SignedIn,
  signInAgain,
} from '../../people/identity/signed-in.ts'
import { newGuest } from '../new-guest.ts'

const policy = {
  perTransaction: { max: '50' },
  dailyBudget: { max: '100' },
  categories: { allow: ['transfer'] },
  approval: { above: '40' },
}
const payee = `0x${'1'.repeat(40)}`

onBothEngines('a simulated spend', (database) => {
  let services: Services
  let owner: SignedIn
  let keyId: string

  beforeAll(async () => {
    services = await servicesOn(database())
  })
  beforeEach(async () => {
    owner = await newGuest(services)
    keyId = await newKey()
  })
  const newKey = async () => {
    const publicKey = (await newAgent()).jwk.x
    const input = { name: 'Bot', publicKey, scopes: ['wallets:transfer'], policy }
    return String((await owner.call(createKey, input)).body.agentId)
  }
  const asKey = async (id = keyId) => {
    const found = await findKey(database(), { id })
    if (found === undefined) throw new Error('the key is missing')
    return { kind: 'key' as const, ...found }
  }
  let seconds = 0
  /** Creates keys a second apart, so that their order is defined. */
  const pay = async (amount: string, id = keyId) => {
    seconds += 1
    const now = new Date(noon.getTime() + seconds * 1000)
    const call = buildCall(services, await asKey(id), { now })
    return run(transfer, call, { destination: payee, amount, signature: 'x' })
  }
  const simulateSpend = (amount: string, more: object = { keyId }, members: object = {}) =>
    owner.call(simulate, { spend: { category: 'transfer', amount, ...members }, ...more })

  it('is evaluated like a real spend, without effect', async () => {
    await pay('30')
    const rows = async () => ({
      decisions: (await database().kysely.selectFrom('decision').select('id').execute()).length,
      usage: await database().kysely.selectFrom('budget_usage').selectAll().execute(),
      balances: await database().kysely.selectFrom('balance').selectAll().orderBy('account').execute(),
    })
    const before = await rows()
    expect((await simulateSpend('40')).body).toMatchObject({
      decision: 'allow',
      violations: [],
      usd: '40',
      replayed: null,
    })
    expect((await simulateSpend('40.5')).body).toMatchObject({ decision: 'approval_required' })
    expect((await simulateSpend('50.5')).body).toMatchObject({
      decision: 'deny',
      violations: [{ rule: 'per_transaction', limit: '50' }],
    })
    await owner.call(transfer, { destination: payee, amount: '960', signature: 'x' })
    const poorer = await rows()
    expect((await simulateSpend('20')).body).toMatchObject({
      decision: 'insufficient_funds',
      available: '10',
    })
    expect(await rows()).toEqual(poorer)
    expect(poorer.usage).toEqual(before.usage)
  })

  it('applies today’s counters, a pause, and the owner’s cap', async () => {
    await pay('40')
    await pay('40')
    expect((await simulateSpend('30')).body).toMatchObject({
      decision: 'deny',
      violations: [{ rule: 'daily_budget', used: '80', remaining: '20' }],
    })
    await owner.call(ownerSet, { dailyBudget: { max: '90' } })
    expect((await simulateSpend('15')).body).toMatchObject({
      violations: [{ rule: 'owner_budget', remaining: '10' }],
    })
    await owner.call(pause, { id: keyId })
    expect((await simulateSpend('5')).body).toMatchObject({ violations: [{ rule: 'paused' }] })
  })

  it('evaluates a draft policy, alone or against a key’s day', async () => {
    await pay('40')
    const draft = { ...policy, dailyBudget: { max: '60' } }
    expect((await simulateSpend('30', { keyId, policy: draft })).body).toMatchObject({
      decision: 'deny',
      violations: [{ rule: 'daily_budget', limit: '60', used: '40' }],
    })
    expect((await simulateSpend('30', { policy: draft })).body).toMatchObject({ decision: 'allow' })
    expect((await simulateSpend('30', { policy: draft }, { category: 'card' })).body).toMatchObject({
      violations: [{ rule: 'category' }],
    })
    expect(
      (await simulateSpend('30', { policy: { ...draft, dailyBudget: { max: '50', maxCount: 1 } } })).body,
    ).toMatchObject({ decision: 'allow' })
  })

  it('counts how many of a series pass, and says which fails first and why', async () => {
    await pay('30')
    const series = async (amount: string, count: number, more: object = { keyId }) =>
      (await simulateSpend(amount, { ...more, count })).body
    expect(await series('20', 5)).toMatchObject({
      decision: 'allow',
      allowed: 3,
      firstDenied: { number: 4, decision: 'deny', violations: [{ rule: 'daily_budget', used: '90' }] },
      threshold: null,
    })
    expect(await series('20', 3)).toMatchObject({ allowed: 3, firstDenied: null })
    expect(await series('45', 2)).toMatchObject({
      decision: 'approval_required',
      allowed: 0,
      firstDenied: { number: 1, decision: 'approval_required' },
      threshold: '40',
    })
    expect(await series('0.01', 1000)).toMatchObject({ allowed: 1000, firstDenied: null })
    const draft = { ...policy, dailyBudget: { max: '90', maxCount: 2 } }
    expect(await series('30', 9, { policy: draft })).toMatchObject({
      allowed: 2,
      firstDenied: { number: 3, violations: [{ rule: 'daily_count', used: '2' }] },
    })
    const longer = { ...policy, weeklyBudget: { max: '95' }, monthlyBudget: { max: '95', maxCount: 8 } }
    for (const of of [{ policy: longer }, { keyId, policy: longer }])
      expect(await series('30', 9, of)).toMatchObject({
        allowed: 'keyId' in of ? 2 : 3,
        firstDenied: {
          violations: expect.arrayContaining([
            expect.objectContaining({ rule: 'weekly_budget', limit: '95', used: '90', remaining: '5' }),
            expect.objectContaining({ rule: 'monthly_budget', used: '90' }),
          ]),
        },
      })
    await owner.call(transfer, { destination: payee, amount: '950', signature: 'x' })
    expect(await series('15', 3)).toMatchObject({
      allowed: 1,
      firstDenied: { number: 2, decision: 'insufficient_funds', available: '5' },
    })
  })

  it('checks address, sanctions and chain as the real call does', async () => {
    const to = (counterparty: string, more: object = {}) =>
      simulateSpend('10', { keyId }, { counterparty, ...more })
    expect((await to(payee)).body).toMatchObject({ decision: 'allow' })
    expect((await to(`0x${'1'.repeat(36)}9999`)).body).toMatchObject({
      decision: 'deny',
      violations: [{ rule: 'aml_screening' }],
    })
    await expect(to(payee, { chain: 'solana' })).rejects.toMatchObject({ code: 'chain_not_supported' })
    await expect(to('0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed')).rejects.toMatchObject({
      code: 'invalid_request',
      members: {
        issues: [{ path: 'spend.counterparty', message: expect.stringContaining('EIP-55 checksum') }],
        hint: expect.stringMatching(/Ask the payee .* never change its letters or their case/),
      },
    })
  })

  it('evaluates the sandbox’s name of a chain as the chain', async () => {
    const { chains } = createChains([services.chain], ['arbitrum-sepolia'], true)
    const there = await signInAgain({ ...services, chains }, owner.accountId)
    const judge = async (chain: string, allowed: string) => {
      const spend = { category: 'transfer', amount: '10', chain }
      return (await there.call(simulate, { spend, policy: { ...policy, chains: [allowed] } })).body
    }
    for (const chain of ['base', 'base-sepolia'])
      expect(await judge(chain, 'base-sepolia')).toMatchObject({ decision: 'allow', violations: [] })
    for (const chain of ['arbitrum', 'arbitrum-sepolia']) {
      expect(await judge(chain, 'base-sepolia')).toMatchObject({ violations: [{ rule: 'chain' }] })
      // No money is there.
      expect(await judge(chain, 'arbitrum-sepolia')).toMatchObject({ decision: 'insufficient_funds' })
    }
  })

  it('is available to a key for itself alone', async () => {
    const principal = await asKey()
    const simulateAsKey = (input: object) => run(simulate, buildCall(services, principal), input)
    const spend = { category: 'transfer', amount: '51' }
    expect((await simulateAsKey({ spend })).body).toMatchObject({
      decision: 'deny',
      policyHash: principal.key.policyHash,
    })
    expect((await simulateAsKey({ spend, keyId })).body).toMatchObject({ decision: 'deny' })
    await expect(simulateAsKey({ spend, keyId: await newKey() })).rejects.toMatchObject({ code: 'not_found' })
    await expect(simulateAsKey({ spend, policy })).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(simulateAsKey({ keyId, policy, replay: true })).rejects.toMatchObject({
      code: 'invalid_request',
    })
  })

  it('is not available for another account’s key', async () => {
    const outsider = await newSignedIn(services)
    const spend = { category: 'transfer', amount: '1' }
    await expect(outsider.call(simulate, { keyId, spend })).rejects.toMatchObject({ code: 'not_found' })
  })

  it.each([
    [{}],
    [{ spend: { category: 'transfer', amount: '1' } }],
    [{ keyId: 'key_x', replay: true }],
    [{ policy, replay: true }],
    [{ keyId: 'key_x', policy, replay: true, spend: { category: 'transfer', amount: '1' } }],
    [{ policy, spend: { category: 'gift', amount: '1' } }],
    [{ policy, spend: { category: 'transfer', amount: '1.0000001' } }],
    [{ policy, spend: { category: 'transfer', amount: '-1' } }],
  ])('rejects %j', async (input) => {
    await expect(owner.call(simulate, input)).rejects.toMatchObject({ code: 'invalid_request' })
  })

  it('applies the cool-down and the owner’s cap to a key that does not exist yet', async () => {
    await owner.call(ownerSet, { dailyBudget: { max: '20' } })
    const draft = { ...policy, counterparties: { newPayeeCooldownSec: 60 }, chains: ['base-sepolia'] }
    expect((await simulateSpend('30', { policy: draft }, { counterparty: payee })).body).toMatchObject({
      decision: 'deny',
      violations: [
        { rule: 'owner_budget', limit: '20' },
        { rule: 'new_payee_cooldown', limit: '60' },
      ],
    })
  })

  it('replays an unchanged policy without changes, regardless of pauses and approvals', async () => {
    const runApproved = createRunApproved((name) => tools.find((tool) => tool.name === name))
    services = { ...services, runApproved }
    const refusal = await pay('45').catch((error: unknown) => error)
    const { approvalId } = z.object({ members: z.object({ approvalId: z.string() }) }).parse(refusal).members
    await (await signInAgain(services, owner.accountId)).call(decide, { id: approvalId, decision: 'approve' })
    await owner.call(pause, { id: keyId })
    await expect(pay('1')).rejects.toMatchObject({ code: 'policy_denied' })
    expect((await owner.call(simulate, { keyId, policy, replay: true })).body).toMatchObject({
      replayed: 2,
      changed: [],
    })
  })

  it('lists past decisions that a draft would have changed', async () => {
    await pay('30')
    await expect(pay('60')).rejects.toMatchObject({ code: 'policy_denied' })
    await pay('35')
    const draft = {
      ...policy,
      perTransaction: { max: '60' },
      dailyBudget: { max: '60' },
      approval: { above: '60' },
    }
    const { body } = await owner.call(simulate, { keyId, policy: draft, replay: true })
    expect(body).toMatchObject({
      decision: null,
      replayed: 3,
      changed: [
        { amount: '35', was: 'allow', now: 'deny', violations: [{ rule: 'daily_budget', used: '30' }] },
      ],
    })
    const wider = { ...draft, dailyBudget: { max: '95' } }
    expect((await owner.call(simulate, { keyId, policy: wider, replay: true })).body).toMatchObject({
      changed: [
        { amount: '60', was: 'deny', now: 'allow' },
        { amount: '35', was: 'allow', now: 'deny' },
      ],
    })
    expect((await owner.call(simulate, { keyId, policy, replay: true })).body).toMatchObject({ changed: [] })
  })

  it('applies the owner’s cap over all keys: lowered at once, raised with a second factor', async () => {
    expect((await owner.call(ownerGet, {})).body).toMatchObject({
      dailyBudget: null,
      used: '0',
      remaining: null,
    })
    const other = await newKey()
    await pay('30')
    await pay('20', other)
    const secret = readSecret((await owner.call(mfa, { action: 'enroll' })).body.otpauthUri)
    await owner.call(mfa, { action: 'activate', code: computeTotp(secret, noon) })
    const stale = await signInAgain(services, owner.accountId)
    expect((await stale.call(ownerSet, { dailyBudget: { max: '60' } })).body).toMatchObject({
      dailyBudget: { max: '60' },
      used: '50',
      remaining: '10',
    })
    await expect(pay('11', other)).rejects.toMatchObject({
      members: { violations: [{ rule: 'owner_budget', limit: '60', used: '50', remaining: '10' }] },
    })
    for (const looser of [{ dailyBudget: { max: '61' } }, { dailyBudget: null }]) {
      await expect(stale.call(ownerSet, looser)).rejects.toMatchObject({ code: 'step_up_required' })
      await expect(owner.call(ownerSet, looser)).resolves.toBeDefined()
      await stale.call(ownerSet, { dailyBudget: { max: '60' } })
    }
    await expect(pay('10', other)).resolves.toBeDefined()
  })
})

describe('a replay', () => {
  const at = (hour: number) => new Date(Date.UTC(2026, 10, 20, hour))
  const spend = (micros: bigint, counterparty: string | null = payee) => ({
    category: 'transfer' as const,
    asset: 'USDC',
    usdMicros: micros,
    chain: 'base-sepolia',
    counterparty,
    mcc: null,
    symbol: null,
  })
  const judge = spendPolicy.parse({
    perTransaction: { max: '10' },
    dailyBudget: { max: '15' },
    categories: { allow: ['transfer'] },
    counterparties: { newPayeeCooldownSec: 3600 },
  })

  it('resets counters daily, applies the new-payee cool-down, and does not count reversals', () => {
    const plain = { isApproved: false, amount: '10', beside: [] }
    const past = [
      { id: 'a', at: at(1), spend: spend(10_000_000n), was: 'allow' as const, isReturned: false, ...plain },
      { id: 'b', at: at(3), spend: spend(10_000_000n), was: 'allow' as const, isReturned: true, ...plain },
      { id: 'c', at: at(4), spend: spend(10_000_000n), was: 'allow' as const, isReturned: false, ...plain },
      { id: 'd', at: at(5), spend: spend(10_000_000n), was: 'allow' as const, isReturned: false, ...plain },
      { id: 'e', at: at(26), spend: spend(10_000_000n), was: 'allow' as const, isReturned: false, ...plain },
      {
        id: 'f',
        at: at(27),
        spend: spend(1n, null),
        was: 'insufficient_funds' as const,
        isReturned: false,
        ...plain,
      },
      {
        id: 'g',
        at: at(28),
        spend: spend(1n),
        was: 'insufficient_funds' as const,
        isReturned: false,
        ...plain,
      },
    ]
    const now = replay(judge, past).map(({ id, now, violations }) => [
      id,
      now,
      violations.map(({ rule }) => rule),
    ])
    expect(now).toEqual([
      ['a', 'deny', ['new_payee_cooldown']],
      ['b', 'allow', []],
      ['c', 'allow', []],
      ['d', 'deny', ['daily_budget']],
      ['e', 'allow', []],
      ['f', 'deny', ['new_payee_cooldown']],
      ['g', 'insufficient_funds', []],
    ])
  })
})
