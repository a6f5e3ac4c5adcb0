import { beforeAll, beforeEach, expect, it } from 'vitest'
import { z } from 'zod'
import { balances } from '../../../src/books/ledger/balances.ts'
import type { Services } from '../../../src/kernel/context.ts'
import { run } from '../../../src/kernel/run.ts'
import { createRunApproved, finishApprovals } from '../../../src/kernel/run-approved.ts'
import { findIssuedKey, findKey } from '../../../src/people/identity/store.ts'
import { createChains } from '../../../src/providers/chain/chains.ts'
import { bookDeposit } from '../../../src/rails/wallets/open-wallet.ts'
import createKey from '../../../tools/agents/keys/create.ts'
import pause from '../../../tools/agents/keys/pause.ts'
import remove from '../../../tools/agents/keys/remove.ts'
import update from '../../../tools/agents/keys/update.ts'
import decide from '../../../tools/approvals/decide.ts'
import get from '../../../tools/approvals/get.ts'
import list from '../../../tools/approvals/list.ts'
import guest from '../../../tools/auth/guest.ts'
import { tools } from '../../../tools/index.ts'
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

const after = (seconds: number) => new Date(noon.getTime() + seconds * 1000)
const policy = {
  perTransaction: { max: '50' },
  dailyBudget: { max: '100' },
  categories: { allow: ['transfer'] },
  approval: { above: '10', ttlSec: 600 },
}
const payee = `0x${'1'.repeat(40)}`

onBothEngines('an approval', (database) => {
  let services: Services
  let owner: SignedIn
  let keyId: string

  beforeAll(async () => {
    const runApproved = createRunApproved((name) => tools.find((tool) => tool.name === name))
    services = await servicesOn(database(), { runApproved })
  })
  const registration = async () => ({
    name: 'Invoice bot',
    publicKey: (await newAgent()).jwk.x,
    scopes: ['wallets:transfer'],
    policy,
  })
  beforeEach(async () => {
    const { body } = await run(guest, buildCall(services, { kind: 'public' }), {})
    const { account } = z.object({ account: z.object({ id: z.string() }) }).parse(body)
    owner = await signInAgain(services, account.id)
    keyId = String((await owner.call(createKey, await registration())).body.agentId)
  })

  const asKey = async (id = keyId) => {
    const found = await findKey(database(), { id })
    if (found === undefined) throw new Error('the key is missing')
    return { kind: 'key' as const, ...found }
  }
  const spend = async (amount: string, how: { idempotencyKey?: string; at?: Date; to?: string } = {}) =>
    run(
      transfer,
      buildCall(services, await asKey(), {
        idempotencyKey: how.idempotencyKey ?? null,
        now: how.at ?? noon,
      }),
      { destination: how.to ?? payee, amount, signature: 'sandbox' },
    )
  const approvalRequired = async (promise: Promise<unknown>) => {
    const refusal = await promise.then(
      () => ({ code: 'allowed' }),
      (error: unknown) => error,
    )
    expect(refusal).toMatchObject({ code: 'approval_required' })
    return z
      .object({
        members: z.object({ approvalId: z.string(), approvalUrl: z.string(), reason: z.string().optional() }),
      })
      .parse(refusal).members
  }
  const approve = (id: string, at = noon) => owner.call(decide, { id, decision: 'approve' }, { at })
  const available = async () =>
    (await balances(database(), owner.accountId)).find(({ asset }) => asset === 'USDC')?.available

  it('is required above the amount only, holds and counts nothing, and names its URL', async () => {
    await expect(spend('10')).resolves.toBeDefined()
    const { approvalId, approvalUrl } = await approvalRequired(spend('10.01'))
    expect(approvalUrl).toBe(`https://bursar.example/approvals/${approvalId}`)
    expect(await available()).toBe(990_000_000n)
    const { body } = await owner.call(list, { status: 'pending' })
    expect(body).toMatchObject({
      approvals: [
        {
          approvalId,
          status: 'pending',
          agentId: keyId,
          operation: 'wallets.transfer',
          input: { destination: payee, amount: '10.01' },
          expiresAt: after(600).toISOString(),
          answer: null,
        },
      ],
    })
  })

  it('runs exactly that call once, and the agent gets the result by its key or by polling', async () => {
    const { approvalId } = await approvalRequired(spend('20', { idempotencyKey: 'invoice-1' }))
    const again = await approvalRequired(spend('20', { idempotencyKey: 'invoice-1' }))
    expect(again.approvalId).toBe(approvalId)
    const { body } = await approve(approvalId)
    expect(body).toMatchObject({ status: 'approved', problem: null, answer: { amount: '20', token: 'USDC' } })
    expect(await available()).toBe(980_000_000n)
    const repeated = await spend('20', { idempotencyKey: 'invoice-1', at: after(60) })
    expect(repeated).toMatchObject({ replayed: true })
    const { transferId } = z.object({ transferId: z.string() }).parse(repeated.body)
    expect(body.answer).toMatchObject({ transferId })
    const polled = await run(get, buildCall(services, await asKey()), { id: approvalId })
    // A key does not see who agreed.
    const { people: _, ...seen } = body
    expect(polled.body).toEqual(seen)
    await expect(approve(approvalId)).resolves.toMatchObject({ body: { answer: { transferId } } })
    expect(await available()).toBe(980_000_000n)
  })

  it('is shared by equal calls without an idempotency key, and separate for another call', async () => {
    const first = await approvalRequired(spend('20'))
    expect((await approvalRequired(spend('20'))).approvalId).toBe(first.approvalId)
    expect((await approvalRequired(spend('21'))).approvalId).not.toBe(first.approvalId)
    expect((await approvalRequired(spend('20', { to: `0x${'2'.repeat(40)}` }))).approvalId).not.toBe(
      first.approvalId,
    )
    expect((await approvalRequired(spend('20', { idempotencyKey: 'b' }))).approvalId).not.toBe(
      first.approvalId,
    )
    await approve(first.approvalId)
    expect(await available()).toBe(980_000_000n)
    expect((await approvalRequired(spend('20'))).approvalId).not.toBe(first.approvalId)
  })

  it('moves the money once under two concurrent approvals', async () => {
    const { approvalId } = await approvalRequired(spend('20', { idempotencyKey: 'twice' }))
    await Promise.allSettled(Array.from({ length: 6 }, () => approve(approvalId)))
    await expect(approve(approvalId)).resolves.toMatchObject({ body: { status: 'approved' } })
    expect(await available()).toBe(980_000_000n)
  })

  it('is rejected without a second factor, permanently', async () => {
    const { approvalId } = await approvalRequired(spend('20', { idempotencyKey: 'no' }))
    const reject = () => owner.call(decide, { id: approvalId, decision: 'reject' })
    await expect(reject()).resolves.toMatchObject({ body: { status: 'rejected', answer: null } })
    await expect(reject()).resolves.toMatchObject({ body: { status: 'rejected' } })
    await expect(approve(approvalId)).rejects.toMatchObject({
      code: 'conflict',
      members: { reason: 'rejected' },
    })
    await expect(spend('20', { idempotencyKey: 'no' })).rejects.toMatchObject({
      code: 'approval_rejected',
      members: { approvalId },
    })
    expect(await available()).toBe(1_000_000_000n)
  })

  it('expires without a decision', async () => {
    const { approvalId } = await approvalRequired(spend('20', { idempotencyKey: 'late' }))
    await expect(approve(approvalId, after(600))).rejects.toMatchObject({
      code: 'conflict',
      members: { reason: 'expired' },
    })
    const expired = await approvalRequired(spend('20', { idempotencyKey: 'late', at: after(601) }))
    expect(expired).toMatchObject({ approvalId, reason: 'expired' })
    const { body } = await owner.call(list, { status: 'expired' }, { at: after(600) })
    expect(body).toMatchObject({ approvals: [{ approvalId, status: 'expired' }] })
  })

  it.each([
    [
      'a policy that was tightened',
      () => owner.call(update, { id: keyId, policy: { ...policy, perTransaction: { max: '15' } } }),
      { code: 'policy_denied', violations: [{ rule: 'per_transaction' }] },
    ],
    [
      'an agent that was stopped',
      () => owner.call(pause, { id: keyId }),
      { code: 'policy_denied', violations: [{ rule: 'paused' }] },
    ],
    ['a key that was revoked', () => owner.call(remove, { id: keyId }), { code: 'unknown_key' }],
    [
      'spent money',
      () => owner.call(transfer, { destination: payee, amount: '990', signature: 'sandbox' }),
      { code: 'insufficient_funds' },
    ],
  ] as const)('is evaluated again when it runs: %s', async (_name, meanwhile, problem) => {
    const { approvalId } = await approvalRequired(spend('20', { idempotencyKey: 'judged' }))
    await meanwhile()
    const before = await available()
    const { body } = await approve(approvalId)
    expect(body).toMatchObject({ status: 'approved', answer: null, problem })
    expect(await available()).toBe(before)
  })

  it('is finished by a job when its process died, and not started after its expiry', async () => {
    const [kept, late] = [
      await approvalRequired(spend('20', { idempotencyKey: 'kept' })),
      await approvalRequired(spend('21')),
    ]
    const approved = { status: 'approved' as const, decided_at: noon }
    await database()
      .kysely.updateTable('approval')
      .set(approved)
      .where('account_id', '=', owner.accountId)
      .execute()
    await database()
      .kysely.updateTable('approval')
      .set({ expires_at: after(5) })
      .where('id', '=', late.approvalId)
      .execute()
    const later = { ...services, clock: () => after(10) }
    await finishApprovals(later, findIssuedKey, new AbortController().signal)
    await finishApprovals(later, findIssuedKey, new AbortController().signal)
    expect(await available()).toBe(980_000_000n)
    const { body } = await owner.call(list, {})
    expect(body).toMatchObject({
      approvals: expect.arrayContaining([
        expect.objectContaining({
          approvalId: kept.approvalId,
          answer: expect.objectContaining({ amount: '20' }),
        }),
        expect.objectContaining({
          approvalId: late.approvalId,
          answer: null,
          problem: expect.objectContaining({ code: 'conflict', reason: 'expired' }),
        }),
      ]),
    })
    const [decision] = await database()
      .kysely.selectFrom('decision')
      .select('facts')
      .where('key_id', '=', keyId)
      .where('verdict', '=', 'allow')
      .execute()
    expect(decision?.facts).toMatchObject({ approvalId: kept.approvalId })
  })

  it('is left to a gateway with its chain by one without', async () => {
    const second = { ...services.chain, name: 'arbitrum-sepolia' as const }
    const { accountId } = owner
    const funds = [{ asset: 'USDC', units: 50_000_000n }] as const
    await bookDeposit({ ...services, chain: second }, { accountId, funds, reference: accountId, at: noon })
    const both = { ...services, chains: createChains([services.chain, second]).chains }
    const input = { destination: payee, amount: '20', chain: second.name, signature: 'sandbox' }
    const { approvalId } = await approvalRequired(
      asKey().then((key) => run(transfer, buildCall(both, key), input)),
    )
    await database()
      .kysely.updateTable('approval')
      .set({ status: 'approved', decided_at: noon })
      .where('id', '=', approvalId)
      .execute()
    const finish = (on: Services) =>
      finishApprovals({ ...on, clock: () => after(10) }, findIssuedKey, new AbortController().signal)
    const show = async () => (await owner.call(list, {})).body.approvals
    await finish(services)
    expect(await show()).toMatchObject([{ approvalId, answer: null, problem: null }])
    await finish(both)
    expect(await show()).toMatchObject([{ approvalId, answer: { amount: '20', chain: second.name } }])
  })

  it('counts in the budget when it runs', async () => {
    const { approvalId } = await approvalRequired(spend('50', { idempotencyKey: 'one' }))
    const second = await approvalRequired(spend('50', { idempotencyKey: 'two' }))
    await spend('10', { idempotencyKey: 'small' })
    await expect(approve(approvalId)).resolves.toMatchObject({ body: { problem: null } })
    await expect(approve(second.approvalId)).resolves.toMatchObject({
      body: {
        answer: null,
        problem: { code: 'policy_denied', violations: [{ rule: 'daily_budget', used: '60' }] },
      },
    })
    await expect(spend('50', { idempotencyKey: 'two' })).rejects.toMatchObject({ code: 'policy_denied' })
  })

  it('is not requested for a call that is denied anyway', async () => {
    await expect(spend('51')).rejects.toMatchObject({ code: 'policy_denied' })
    const { body } = await owner.call(list, {})
    expect(body).toMatchObject({ approvals: [] })
  })

  it('needs a fresh second factor of its owner', async () => {
    const secret = readSecret((await owner.call(mfa, { action: 'enroll' })).body.otpauthUri)
    await owner.call(mfa, { action: 'activate', code: computeTotp(secret, noon) })
    const stale = await signInAgain(services, owner.accountId)
    const { approvalId } = await approvalRequired(spend('20'))
    await expect(stale.call(decide, { id: approvalId, decision: 'approve' })).rejects.toMatchObject({
      code: 'step_up_required',
    })
    await expect(approve(approvalId)).resolves.toBeDefined()
  })

  it('is hidden from other accounts and other keys, and cannot be decided by a key', async () => {
    const { approvalId: id } = await approvalRequired(spend('20'))
    const outsider = await newSignedIn(services)
    await expect(outsider.call(get, { id })).rejects.toMatchObject({ code: 'not_found' })
    for (const decision of ['approve', 'reject'])
      await expect(outsider.call(decide, { id, decision })).rejects.toMatchObject({ code: 'not_found' })
    const other = String((await owner.call(createKey, await registration())).body.agentId)
    await expect(run(get, buildCall(services, await asKey(other)), { id })).rejects.toMatchObject({
      code: 'not_found',
    })
    await expect(
      run(decide, buildCall(services, await asKey()), { id, decision: 'approve' }),
    ).rejects.toMatchObject({ code: 'insufficient_scope' })
    await expect(owner.call(get, { id })).resolves.toMatchObject({ body: { status: 'pending' } })
  })
})
