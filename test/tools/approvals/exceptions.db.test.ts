/** Exceptions: an agent asks its owner for exactly one call that its policy denies. */
import { beforeAll, beforeEach, expect, it } from 'vitest'
import { z } from 'zod'
import { balances } from '../../../src/books/ledger/balances.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import { parseJson } from '../../../src/core/base/json.ts'
import { createAskOwner } from '../../../src/kernel/ask-owner.ts'
import type { Services } from '../../../src/kernel/context.ts'
import { run } from '../../../src/kernel/run.ts'
import { createRunApproved, finishApprovals } from '../../../src/kernel/run-approved.ts'
import type { Tool } from '../../../src/kernel/tool.ts'
import { findIssuedKey, findKey } from '../../../src/people/identity/store.ts'
import { showDecisions } from '../../../src/records/decisions/show-decisions.ts'
import createKey from '../../../tools/agents/keys/create.ts'
import pause from '../../../tools/agents/keys/pause.ts'
import remove from '../../../tools/agents/keys/remove.ts'
import update from '../../../tools/agents/keys/update.ts'
import decide from '../../../tools/approvals/decide.ts'
import get from '../../../tools/approvals/get.ts'
import request from '../../../tools/approvals/request.ts'
import withdraw from '../../../tools/approvals/withdraw.ts'
import guest from '../../../tools/auth/guest.ts'
import { tools } from '../../../tools/index.ts'
import mfa from '../../../tools/security/mfa.ts'
import transfer from '../../../tools/wallets/transfer.ts'
import { buildSpend } from '../../books/spending/scene.ts'
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
}
const payee = `0x${'1'.repeat(40)}`
const reason = 'Invoice 17 is due today.'

onBothEngines('an exception', (database) => {
  let services: Services
  let owner: SignedIn
  let keyId: string

  beforeAll(async () => {
    services = await servicesOn(database(), {
      runApproved: createRunApproved((name) => tools.find((tool) => tool.name === name)),
      askOwner: createAskOwner(tools),
    })
  })
  const register = async (changes: object = {}) => {
    const input = {
      name: 'Invoice bot',
      publicKey: (await newAgent()).jwk.x,
      scopes: ['wallets:transfer'],
      policy,
      ...changes,
    }
    return String((await owner.call(createKey, input)).body.agentId)
  }
  beforeEach(async () => {
    const { body } = await run(guest, buildCall(services, { kind: 'public' }), {})
    const { account } = z.object({ account: z.object({ id: z.string() }) }).parse(body)
    owner = await signInAgain(services, account.id)
    keyId = await register()
  })

  interface How {
    readonly idempotencyKey?: string
    readonly at?: Date
    readonly id?: string
  }
  const asKey = async (tool: Tool, input: object, { idempotencyKey, at = noon, id = keyId }: How = {}) => {
    const found = await findKey(database(), { id })
    if (found === undefined) throw new Error('the key is missing')
    const changes = { idempotencyKey: idempotencyKey ?? null, now: at }
    return run(tool, buildCall(services, { kind: 'key', ...found }, changes), input)
  }
  const call = (amount: string, to = payee) => ({ destination: to, amount, token: 'USDC' })
  const ask = async (input: object, how: How = {}) => {
    const { body } = await asKey(request, { operation: 'wallets_transfer', input, reason }, how)
    return z.looseObject({ approvalId: z.string() }).parse(body)
  }
  const approve = (id: string, at = noon) => owner.call(decide, { id, decision: 'approve' }, { at })
  const available = async () =>
    (await balances(database(), owner.accountId)).find(({ asset }) => asset === 'USDC')?.available
  const usedToday = async () =>
    (
      await database()
        .kysely.selectFrom('budget_usage')
        .select('used_micros')
        .where('key_id', '=', keyId)
        .executeTakeFirst()
    )?.used_micros ?? 0n
  const full = 1_000_000_000n

  it('shows its owner the violated rules and the reason, and holds and counts nothing', async () => {
    await expect(asKey(transfer, call('120'))).rejects.toMatchObject({ code: 'policy_denied' })
    const asked = await ask(call('120'))
    const rules = [
      { rule: 'per_transaction', limit: '50', requested: '120' },
      { rule: 'daily_budget', limit: '100', requested: '120' },
    ]
    expect(asked).toMatchObject({
      approvalUrl: `https://bursar.example/approvals/${asked.approvalId}`,
      status: 'pending',
      violations: rules,
      expiresAt: after(86_400).toISOString(),
    })
    const seen = await owner.call(get, { id: asked.approvalId })
    expect(seen.body).toMatchObject({ status: 'pending', reason, violations: rules, input: call('120') })
    expect([await available(), await usedToday()]).toEqual([full, 0n])
  })

  it('shows its owner an amount that was sent as a number', async () => {
    const { approvalId: id } = await ask({ ...call(''), amount: parseJson('120.10') })
    expect((await owner.call(get, { id })).body).toMatchObject({ input: call('120.10') })
    expect((await approve(id)).body).toMatchObject({ problem: null, answer: { amount: '120.1' } })
  })

  it('runs once when it is approved, is counted, and is recorded with its approval and the rules', async () => {
    const { approvalId: id } = await ask(call('120'))
    const { body } = await owner.call(decide, { id, decision: 'approve', note: 'Only this once.' })
    expect(body).toMatchObject({ status: 'approved', problem: null, note: 'Only this once.' })
    const { decisionId } = z.object({ decisionId: z.string() }).parse(body.answer)
    expect([await available(), await usedToday()]).toEqual([880_000_000n, 120_000_000n])
    // A key does not see who agreed.
    const { people: _, ...seen } = body
    expect((await asKey(get, { id })).body).toEqual(seen)
    await expect(approve(id)).resolves.toMatchObject({ body: { answer: { decisionId } } })
    expect(await available()).toBe(880_000_000n)
    // The budget is used up for other calls, and the same call is denied again.
    await expect(asKey(transfer, call('1'))).rejects.toMatchObject({ code: 'policy_denied' })
    await expect(asKey(transfer, call('120'))).rejects.toMatchObject({ code: 'policy_denied' })
    const { decisions } = await showDecisions(services, {
      accountId: owner.accountId,
      keyId,
      id: null,
      object: null,
      verdict: 'allow',
      page: { limit: 10, after: null },
    })
    expect(decisions).toMatchObject([
      {
        decisionId,
        receipt: expect.any(String),
        violations: [{ rule: 'per_transaction' }, { rule: 'daily_budget' }],
      },
    ])
    const receipt = JSON.parse(
      Buffer.from(String(decisions[0]?.receipt).split('.')[1] ?? '', 'base64url').toString(),
    )
    expect(JSON.stringify(receipt)).toContain(id)
    expect(JSON.stringify(receipt)).toContain('per_transaction')
  })

  it('needs a fresh second factor of its owner, and no key can approve', async () => {
    const secret = readSecret((await owner.call(mfa, { action: 'enroll' })).body.otpauthUri)
    await owner.call(mfa, { action: 'activate', code: computeTotp(secret, noon) })
    const stale = await signInAgain(services, owner.accountId)
    const { approvalId: id } = await ask(call('60'))
    const input = { id, decision: 'approve' }
    await expect(stale.call(decide, input)).rejects.toMatchObject({ code: 'step_up_required' })
    await expect(asKey(decide, input)).rejects.toMatchObject({ code: 'insufficient_scope' })
    await expect((await newSignedIn(services)).call(decide, input)).rejects.toMatchObject({
      code: 'not_found',
    })
    expect(await available()).toBe(full)
  })

  it('moves the money once under concurrent approvals', async () => {
    const { approvalId } = await ask(call('60'))
    await Promise.allSettled(Array.from({ length: 6 }, () => approve(approvalId)))
    await expect(approve(approvalId)).resolves.toMatchObject({ body: { status: 'approved', problem: null } })
    expect([await available(), await usedToday()]).toEqual([940_000_000n, 60_000_000n])
  })

  it('is either approved or withdrawn', async () => {
    for (const amount of ['60', '61', '62', '63']) {
      const before = await available()
      const { approvalId: id } = await ask(call(amount))
      const [approved, withdrawn] = await Promise.allSettled([approve(id), asKey(withdraw, { id })])
      expect([approved.status, withdrawn.status].sort()).toEqual(['fulfilled', 'rejected'])
      const isPaid = approved.status === 'fulfilled'
      expect(await available()).toBe((before ?? 0n) - (isPaid ? BigInt(amount) * 1_000_000n : 0n))
      expect((await asKey(get, { id })).body).toMatchObject({ status: isPaid ? 'approved' : 'withdrawn' })
    }
  })

  it('is withdrawn by its own key, permanently', async () => {
    const { approvalId: id } = await ask(call('60'))
    await expect(asKey(withdraw, { id }, { id: await register() })).rejects.toMatchObject({
      code: 'not_found',
    })
    for (const _time of [1, 2])
      expect((await asKey(withdraw, { id })).body).toMatchObject({ approvalId: id, status: 'withdrawn' })
    await expect(approve(id)).rejects.toMatchObject({ code: 'conflict', members: { reason: 'withdrawn' } })
    const { approvalId: next } = await ask(call('60'))
    expect(next).not.toBe(id)
    await owner.call(decide, { id: next, decision: 'reject', note: 'Ask me next month.' })
    await expect(asKey(withdraw, { id: next })).rejects.toMatchObject({ code: 'conflict' })
    expect((await asKey(get, { id: next })).body).toMatchObject({
      status: 'rejected',
      note: 'Ask me next month.',
    })
    expect(await available()).toBe(full)
  })

  it('bypasses only what its owner saw: a limit that changed since denies it', async () => {
    const tighter = [
      { ...policy, perTransaction: { max: '40' } },
      { ...policy, counterparties: { deny: [payee] } },
      { ...policy, perTransaction: { max: '5' }, dailyBudget: { max: '50' } },
    ]
    for (const changed of tighter) {
      keyId = await register()
      const { approvalId } = await ask(call('60'))
      await owner.call(update, { id: keyId, policy: changed })
      expect((await approve(approvalId)).body).toMatchObject({
        answer: null,
        problem: { code: 'policy_denied' },
      })
    }
    expect(await available()).toBe(full)
    keyId = await register()
    const { approvalId } = await ask(call('60'))
    await owner.call(update, { id: keyId, policy: { ...policy, perTransaction: { max: '70' } } })
    expect((await approve(approvalId)).body).toMatchObject({ problem: null, answer: { amount: '60' } })
  })

  it('overrules a budget that filled up meanwhile only if that budget was shown', async () => {
    const { approvalId: shown } = await ask(call('120'))
    const { approvalId: hidden } = await ask(call('60'))
    await asKey(transfer, call('50'))
    await expect(approve(shown)).resolves.toMatchObject({ body: { problem: null } })
    await expect(approve(hidden)).resolves.toMatchObject({
      body: {
        problem: {
          code: 'policy_denied',
          violations: expect.arrayContaining([expect.objectContaining({ rule: 'daily_budget' })]),
        },
      },
    })
    expect(await available()).toBe(830_000_000n)
  })

  it('never bypasses AML, funds, scopes, a paused or a revoked key', async () => {
    await expect(ask(call('60', `0x${'1'.repeat(36)}9999`))).rejects.toMatchObject({ code: 'aml_blocked' })
    const other = { operation: 'cards.issue', input: {}, reason }
    await expect(asKey(request, other)).rejects.toMatchObject({ code: 'invalid_request' })
    const scoped = await register({ scopes: ['wallets:read'], policy })
    await expect(ask(call('60'), { id: scoped })).rejects.toMatchObject({ code: 'insufficient_scope' })
    await expect(
      owner.call(request, { operation: 'wallets.transfer', input: call('60'), reason }),
    ).rejects.toMatchObject({
      code: 'conflict',
    })
    const { approvalId: poor } = await ask(call('900'))
    await owner.call(transfer, { ...call('500'), signature: 'sandbox' })
    expect((await approve(poor)).body).toMatchObject({ problem: { code: 'insufficient_funds' } })
    const { approvalId: revoked } = await ask(call('60'))
    await database()
      .kysely.updateTable('approval')
      .set({ status: 'approved', decided_at: noon })
      .where('id', '=', revoked)
      .execute()
    await owner.call(pause, { id: keyId })
    expect((await approve(revoked)).body).toMatchObject({
      problem: {
        code: 'policy_denied',
        violations: expect.arrayContaining([expect.objectContaining({ rule: 'paused' })]),
      },
    })
    await expect(ask(call('60'))).rejects.toMatchObject({ code: 'insufficient_scope' })
    keyId = await register()
    const { approvalId: gone } = await ask(call('60'))
    await owner.call(remove, { id: keyId })
    expect((await approve(gone)).body).toMatchObject({ problem: { code: 'unknown_key' } })
    expect(await available()).toBe(500_000_000n)
  })

  it('is open at most ten times, and once for the same call, also under concurrency', async () => {
    const same = await Promise.all(Array.from({ length: 5 }, () => ask(call('60'))))
    expect(new Set(same.map(({ approvalId }) => approvalId)).size).toBe(1)
    const many = await Promise.allSettled(
      Array.from({ length: 14 }, (_, index) => ask(call(String(70 + index)))),
    )
    expect(many.filter(({ status }) => status === 'fulfilled')).toHaveLength(9)
    const refusals = many.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
    for (const refusal of refusals)
      expect(refusal).toMatchObject({ code: 'conflict', members: { reason: 'too_many_open' } })
    await asKey(withdraw, { id: String(same[0]?.approvalId) })
    await expect(ask(call('99'))).resolves.toMatchObject({ status: 'pending' })
  })

  it('is requested and withdrawn thirty times an hour at most', async () => {
    const floods = async (from: number, count: number) => {
      for (let index = 0; index < count; index += 1) {
        const { approvalId } = await ask(call(String(from + index)))
        await asKey(withdraw, { id: String(approvalId) })
      }
    }
    await floods(60, 30)
    await expect(ask(call('99'))).rejects.toMatchObject({ members: { reason: 'too_many_open' } })
    const other = await register()
    await expect(ask(call('99'), { id: other })).resolves.toMatchObject({ status: 'pending' })
    await database()
      .kysely.updateTable('approval')
      .set({ decided_at: after(-3_600) })
      .where('key_id', '=', keyId)
      .execute()
    await expect(ask(call('99'))).resolves.toMatchObject({ status: 'pending' })
  })

  it('counts with the approvals that policies require: ten open a key, a hundred an account', async () => {
    const needing = { policy: { ...policy, approval: { above: '1' } } }
    const pay = (id: string, amount: number) =>
      asKey(transfer, call(String(amount)), { id }).catch(({ code, members: { reason } }) =>
        [code, reason].join(' '),
      )
    const ids: string[] = []
    for (let count = 0; count < 11; count += 1) ids.push(await register(needing))
    const [first = '', ...others] = ids
    for (let amount = 2; amount < 11; amount += 1) expect(await pay(first, amount)).toBe('approval_required ')
    expect(await ask(call('60'), { id: first })).toMatchObject({ status: 'pending' })
    expect(await pay(first, 11)).toBe('conflict too_many_open')
    await expect(ask(call('61'), { id: first })).rejects.toMatchObject({ code: 'conflict' })
    // The same call is no further request.
    expect(await pay(first, 2)).toBe('approval_required ')
    const amounts = Array.from({ length: 10 }, (_, index) => index + 2)
    const opened = await Promise.all(others.flatMap((id) => amounts.map((amount) => pay(id, amount))))
    expect(opened.filter((answer) => answer === 'approval_required ')).toHaveLength(90)
    expect(opened.filter((answer) => answer === 'conflict too_many_open')).toHaveLength(10)
  })

  it('are fifty for a key with all keys below it, so that others of the account can ask', async () => {
    const needing = { policy: { ...policy, approval: { above: '1' } } }
    const root = await register(needing)
    const tree = [root]
    for (let count = 0; count < 6; count += 1) {
      const child = await register(needing)
      await database()
        .kysely.updateTable('access_key')
        .set({ path: [root], expires_at: after(3_600) })
        .where('id', '=', child)
        .execute()
      tree.push(child)
    }
    const pay = (id: string, amount: number) =>
      asKey(transfer, call(String(amount)), { id }).catch(({ code, members: { reason } }) =>
        [code, reason].join(' '),
      )
    const opened: unknown[] = []
    for (const id of tree) for (let amount = 2; amount < 12; amount += 1) opened.push(await pay(id, amount))
    expect(opened.filter((answer) => answer === 'approval_required ')).toHaveLength(50)
    expect(opened.filter((answer) => answer === 'conflict too_many_open')).toHaveLength(20)
    expect(await pay(await register(needing), 2)).toBe('approval_required ')
  })

  it('keeps the reason as one visible line, and needs one', async () => {
    const input = { operation: 'wallets.transfer', input: call('60') }
    const text = 'Pay\n\u202enow\u0007 <b>please</b>'
    const { body } = await asKey(request, { ...input, reason: text })
    expect((await asKey(get, { id: body.approvalId })).body).toMatchObject({
      reason: 'Pay now <b>please</b>',
    })
    for (const reason of ['', ' ', '\u200b', '\u3164\u2800', 'x'.repeat(501)])
      await expect(asKey(request, { ...input, reason })).rejects.toMatchObject({ code: 'invalid_request' })
  })

  it('expires, and is not started after that', async () => {
    keyId = await register({ policy: { ...policy, approval: { above: '10', ttlSec: 600 } } })
    const { approvalId } = await ask(call('60'))
    await expect(approve(approvalId, after(600))).rejects.toMatchObject({ members: { reason: 'expired' } })
    const { body } = await asKey(get, { id: approvalId }, { at: after(600) })
    expect(body).toMatchObject({ status: 'expired' })
    expect(await available()).toBe(full)
  })

  it('answers the call under its idempotency key, which was denied before', async () => {
    const denied = asKey(transfer, call('60'), { idempotencyKey: 'invoice-17' })
    await expect(denied).rejects.toMatchObject({ code: 'policy_denied' })
    const { approvalId } = await ask({ ...call('60'), idempotency_key: 'invoice-17' })
    const { body } = await approve(approvalId)
    const repeated = await asKey(transfer, call('60'), { idempotencyKey: 'invoice-17', at: after(60) })
    expect(repeated).toMatchObject({ replayed: true, body: body.answer })
    const other = asKey(transfer, call('61'), { idempotencyKey: 'invoice-17' })
    await expect(other).rejects.toMatchObject({ code: 'idempotency_key_reused' })
    expect(await available()).toBe(940_000_000n)
  })

  it('is finished by a job, however many others cannot be', async () => {
    const approveCall = async (amount: string, changes: { id?: string; operation?: string } = {}) => {
      const { approvalId: id } = await ask(call(amount))
      const set = { status: 'approved' as const, decided_at: noon, ...changes }
      await database().kysely.updateTable('approval').set(set).where('id', '=', id).execute()
      return id
    }
    for (let count = 0; count < 55; count += 1)
      await approveCall(`60.${count}1`, { id: `appr_00${count}`, operation: 'not.now' })
    const id = await approveCall('60')
    const later = { ...services, clock: () => after(10) }
    await finishApprovals(later, findIssuedKey, new AbortController().signal)
    expect((await asKey(get, { id })).body).toMatchObject({ answer: { amount: '60' } })
    await database().kysely.deleteFrom('approval').where('operation', '=', 'not.now').execute()
  })

  it('is finished by a job after a crash, once for life', async () => {
    const { approvalId } = await ask(call('60'))
    const rows = () => database().kysely.updateTable('approval').where('id', '=', approvalId)
    await rows().set({ status: 'approved', decided_at: noon }).execute()
    const later = { ...services, clock: () => after(10) }
    const finish = () => finishApprovals(later, findIssuedKey, new AbortController().signal)
    await finish()
    expect(await available()).toBe(940_000_000n)
    // The process ended before it stored the answer, and the idempotency key was swept.
    await rows().set({ answer: null }).execute()
    await database().kysely.deleteFrom('idempotency').where('principal', '=', keyId).execute()
    await finish()
    expect((await asKey(get, { id: approvalId })).body).toMatchObject({ answer: { amount: '60' } })
    expect([await available(), await usedToday()]).toEqual([940_000_000n, 60_000_000n])
  })

  it('keeps the answer of a call that was made, whatever happened to its key before the job', async () => {
    const withoutScope = async () => {
      const scopes = { scopes: ['wallets:read'] }
      await database().kysely.updateTable('access_key').set(scopes).where('id', '=', keyId).execute()
    }
    const revoke = () => owner.call(remove, { id: keyId })
    const expire = async () => {
      const set = { expires_at: after(1) }
      await database().kysely.updateTable('access_key').set(set).where('id', '=', keyId).execute()
    }
    for (const change of [withoutScope, revoke, expire]) {
      keyId = await register()
      const { approvalId: id } = await ask(call('60'))
      const { answer } = (await approve(id)).body
      await database().kysely.updateTable('approval').set({ answer: null }).where('id', '=', id).execute()
      await change()
      await finishApprovals(
        { ...services, clock: () => after(10) },
        findIssuedKey,
        new AbortController().signal,
      )
      expect((await owner.call(get, { id })).body).toMatchObject({ problem: null, answer })
    }
    expect(await available()).toBe(820_000_000n)
  })

  it('fails if its call is no longer one, as after a change of the configuration', async () => {
    const { approvalId: id } = await ask(call('60'))
    const input = JSON.stringify({ ...call('60'), token: 'GONE' })
    await database().kysely.updateTable('approval').set({ input }).where('id', '=', id).execute()
    expect((await approve(id)).body).toMatchObject({ answer: null, problem: { code: 'invalid_request' } })
  })

  it('overrules in the database only for its own key, operation and call, once it is approved', async () => {
    const { approvalId } = await ask(call('60'))
    const [row] = await database()
      .kysely.selectFrom('approval')
      .selectAll()
      .where('id', '=', approvalId)
      .execute()
    if (row === undefined) throw new Error('the approval is missing')
    const violations = [
      { rule: 'per_transaction', limit: '50', used: null, requested: '60', remaining: '50', resetsAt: null },
    ]
    const limits = { dailyMaxMicros: null, dailyMaxCount: null }
    const reserve = (changes: object, idempotency: object = {}) => {
      const { policyVersion, ...scene } = { accountId: owner.accountId, keyId, limits, policyVersion: 1 }
      const base = buildSpend(scene, 60_000_000n, {
        operation: 'wallets.transfer',
        violations,
        isApproved: true,
        approvalId,
        idempotency: { principal: keyId, key: approvalId, fingerprint: row.fingerprint, ...idempotency },
      })
      return reserveSpend(database(), { ...base, ...changes })
    }
    expect(await reserve({}, { key: 'too early' })).toMatchObject({ verdict: 'deny' })
    await database()
      .kysely.updateTable('approval')
      .set({ status: 'approved', decided_at: noon })
      .where('id', '=', approvalId)
      .execute()
    const worse = { ...violations[0], limit: '40' }
    const denied: [object, object][] = [
      [{ operation: 'transfers.gasless' }, { key: 'a' }],
      [{}, { key: 'b', fingerprint: 'another call' }],
      [{ violations: [worse] }, { key: 'c' }],
      [
        {
          violations: [
            ...violations,
            { ...worse, rule: 'aml_screening', limit: 'ofac', requested: 'blocked' },
          ],
        },
        { key: 'd' },
      ],
    ]
    for (const [changes, idempotency] of denied)
      expect(await reserve(changes, idempotency), JSON.stringify(changes)).toMatchObject({ verdict: 'deny' })
    const runs = await Promise.all([reserve({}), reserve({}), reserve({}, { key: 'another' })])
    expect(runs.map(({ verdict }) => verdict).sort()).toEqual(['allow', 'repeated', 'repeated'])
    expect(runs.find(({ verdict }) => verdict === 'allow')).toMatchObject({ overruled: violations })
    expect(await available()).toBe(940_000_000n)
  })
})
