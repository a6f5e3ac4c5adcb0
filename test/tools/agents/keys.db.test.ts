import { beforeAll, beforeEach, expect, it } from 'vitest'
import type { Services } from '../../../src/kernel/context.ts'
import { run } from '../../../src/kernel/run.ts'
import { findKey } from '../../../src/people/identity/store.ts'
import create from '../../../tools/agents/keys/create.ts'
import get from '../../../tools/agents/keys/get.ts'
import list from '../../../tools/agents/keys/list.ts'
import pause from '../../../tools/agents/keys/pause.ts'
import remove from '../../../tools/agents/keys/remove.ts'
import update from '../../../tools/agents/keys/update.ts'
import usage from '../../../tools/agents/keys/usage.ts'
import mfa from '../../../tools/security/mfa.ts'
import wallet from '../../../tools/wallets/get.ts'
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

const after = (seconds: number) => new Date(noon.getTime() + seconds * 1000)
const policy = {
  perTransaction: { max: '5' },
  dailyBudget: { max: '12', maxCount: 10 },
  categories: { allow: ['transfer'] },
}

onBothEngines('an owner’s agents', (database) => {
  let services: Services
  let owner: SignedIn
  let id: string
  const refusal = (code: string) => expect.objectContaining({ code })
  const registration = async () => ({
    name: 'Invoice bot',
    publicKey: (await newAgent()).jwk.x,
    scopes: ['wallets:read', 'wallets:transfer'],
    policy,
  })
  const change = (members: object, caller = owner, at = noon) =>
    caller.call(update, { id, ...members }, { at })
  const spend = async (amount: string) => {
    const found = await findKey(database(), { id })
    if (found === undefined) throw new Error('the key is missing')
    const principal = { kind: 'key' as const, ...found }
    return run(transfer, buildCall(services, principal), {
      destination: `0x${'1'.repeat(40)}`,
      amount,
      signature: 'sandbox',
    })
  }

  beforeAll(async () => {
    services = await servicesOn(database())
  })
  beforeEach(async () => {
    owner = await newGuest(services)
    id = String((await owner.call(create, await registration())).body.agentId)
  })

  it('are listed and read with policy and usage, by their owner alone', async () => {
    await spend('2')
    const { body } = await owner.call(get, { id })
    expect(body).toMatchObject({
      agentId: id,
      name: 'Invoice bot',
      status: 'active',
      policy: { dailyBudget: { max: '12' } },
      policyVersion: 1,
      usage: { used: '2', remaining: '10', count: 1 },
      expiresAt: null,
    })
    expect((await owner.call(list, {})).body).toEqual({ keys: [body], nextCursor: null })
    const outsider = await newSignedIn(services)
    expect((await outsider.call(list, {})).body).toEqual({ keys: [], nextCursor: null })
    for (const [tool, input] of [
      [get, { id }],
      [usage, { id }],
      [pause, { id }],
      [remove, { id }],
      [update, { id, name: 'Mine' }],
    ] as const)
      await expect(outsider.call(tool, input)).rejects.toEqual(refusal('not_found'))
  })

  it('show the time of their first call, also of a denied one, and no event tells of it', async () => {
    expect((await owner.call(get, { id })).body).toMatchObject({ firstUsedAt: null })
    const events = () =>
      database().kysely.selectFrom('event').select('type').where('object_id', '=', id).execute()
    const before = await events()
    await expect(spend('50')).rejects.toMatchObject({ code: 'policy_denied' })
    expect((await owner.call(get, { id })).body).toMatchObject({ firstUsedAt: noon.toISOString() })
    const found = await findKey(database(), { id })
    if (found === undefined) throw new Error('the key is missing')
    const later = buildCall(services, { kind: 'key', ...found })
    await run(wallet, { ...later, now: after(60) }, {})
    expect((await owner.call(get, { id })).body).toMatchObject({ firstUsedAt: noon.toISOString() })
    expect((await owner.call(list, {})).body).toMatchObject({ keys: [{ firstUsedAt: noon.toISOString() }] })
    expect(await events()).toEqual(before)
  })

  it('are tightened from the next spend, and keep their usage', async () => {
    await spend('4')
    const { body } = await change({ policy: { ...policy, dailyBudget: { max: '5' } } })
    expect(body).toMatchObject({ policyVersion: 2, usage: { used: '4', remaining: '1' } })
    await expect(spend('2')).rejects.toMatchObject({
      code: 'policy_denied',
      members: { violations: [{ rule: 'daily_budget', limit: '5', used: '4', remaining: '1' }] },
    })
    await expect(spend('1')).resolves.toBeDefined()
  })

  it('keep the policy that another editor has changed meanwhile', async () => {
    const looser = { ...policy, dailyBudget: { max: '100' } }
    await change({ policy: { ...policy, dailyBudget: { max: '5' } }, expectedVersion: 1 })
    await expect(change({ policy: looser, expectedVersion: 1 })).rejects.toEqual(refusal('conflict'))
    await expect(change({ expectedVersion: 2 })).rejects.toEqual(refusal('invalid_request'))
    expect((await owner.call(get, { id })).body).toMatchObject({
      policyVersion: 2,
      policy: { dailyBudget: { max: '5' } },
    })
    expect((await change({ policy: looser, expectedVersion: 2 })).body).toMatchObject({ policyVersion: 3 })
  })

  it('are renamed without a new version of their policy', async () => {
    expect((await change({ name: 'Bot' })).body).toMatchObject({ name: 'Bot', policyVersion: 1 })
  })

  it('are loosened only with a fresh second factor, in every respect', async () => {
    const secret = readSecret((await owner.call(mfa, { action: 'enroll' })).body.otpauthUri)
    await owner.call(mfa, { action: 'activate', code: computeTotp(secret, noon) })
    const stale = await signInAgain(services, owner.accountId)
    for (const looser of [
      { policy: { ...policy, perTransaction: { max: '6' } } },
      { policy: { ...policy, dailyBudget: { max: '12' } } },
      { policy: { ...policy, categories: { allow: ['transfer', 'card'] } } },
      { scopes: ['wallets:read', 'wallets:transfer', 'fx:pay'] },
    ])
      await expect(change(looser, stale)).rejects.toEqual(refusal('step_up_required'))
    for (const tighter of [
      { policy: { ...policy, perTransaction: { max: '4' } } },
      { scopes: ['wallets:read'] },
      { expiresAt: after(3600).toISOString() },
      { status: 'paused' },
    ])
      await expect(change(tighter, stale)).resolves.toBeDefined()
    for (const looser of [
      { status: 'active' },
      { expiresAt: null },
      { expiresAt: after(7200).toISOString() },
    ]) {
      await expect(change(looser, stale)).rejects.toEqual(refusal('step_up_required'))
      await expect(change(looser, owner)).resolves.toBeDefined()
      await change({ expiresAt: after(3600).toISOString(), status: 'paused' }, stale)
    }
  })

  it('are paused at once, and resumed', async () => {
    expect((await owner.call(pause, { id })).body).toMatchObject({ status: 'paused', policyVersion: 1 })
    await expect(spend('1')).rejects.toMatchObject({
      code: 'policy_denied',
      members: { violations: [{ rule: 'paused' }] },
    })
    await change({ name: 'Still stopped' })
    expect((await owner.call(get, { id })).body.status).toBe('paused')
    await change({ status: 'active' })
    await expect(spend('1')).resolves.toBeDefined()
  })

  it('are revoked permanently', async () => {
    await expect(owner.call(remove, { id })).resolves.toMatchObject({ body: { revoked: true } })
    expect(await findKey(database(), { id })).toBeUndefined()
    for (const [tool, input] of [
      [remove, { id }],
      [update, { id, status: 'active' }],
    ] as const)
      await expect(owner.call(tool, input)).rejects.toEqual(refusal('not_found'))
    expect((await owner.call(get, { id })).body).toMatchObject({ agentId: id, status: 'revoked' })
    const second = String((await owner.call(create, await registration())).body.agentId)
    expect((await owner.call(update, { id: second, status: 'revoked' })).body).toMatchObject({
      status: 'revoked',
    })
    expect((await owner.call(list, {})).body).toEqual({ keys: [], nextCursor: null })
  })

  it('cannot get a spending scope without a policy, nor an expiry in the past', async () => {
    for (const wrong of [
      { policy: null },
      {},
      { expiresAt: after(-1).toISOString() },
      { policy: { ...policy, perTransaction: { max: '13' } } },
      { status: 'locked' },
    ])
      await expect(change(wrong)).rejects.toEqual(refusal('invalid_request'))
    await expect(change({ policy: null, scopes: ['wallets:read'] })).resolves.toMatchObject({
      body: { policy: null },
    })
  })

  it('report their usage by day', async () => {
    await spend('3')
    await database()
      .kysely.insertInto('budget_usage')
      .values([
        { key_id: id, day: '2026-11-18', used_micros: 2_500_000n, count: 2 },
        { key_id: id, day: '2026-10-01', used_micros: 1n, count: 1 },
      ])
      .execute()
    expect((await owner.call(usage, { id })).body).toEqual({
      agentId: id,
      usage: expect.objectContaining({ day: '2026-11-20', used: '3', count: 1 }),
      days: [{ day: '2026-11-18', used: '2.5', count: 2 }],
      categories: [{ category: 'transfer', used: '3', count: 1 }],
      payees: expect.any(Array),
      decisions: { allowed: 1, denied: 0, approvalRequired: 0 },
    })
  })
})
