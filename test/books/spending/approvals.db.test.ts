import { expect, it } from 'vitest'
import { approvalView, viewApproval } from '../../../src/books/approvals/approval-view.ts'
import {
  type ApprovalCall,
  decideApproval,
  findApproval,
  findApprovalRequestedAt,
  listApprovals,
  requestApproval,
  storeApprovalOutcome,
  unfinishedApprovals,
} from '../../../src/books/approvals/approvals.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import { newId } from '../../../src/core/base/ids.ts'
import { onBothEngines } from '../../engines.ts'
import { buildSpend, noon, openAccount, openKey } from './scene.ts'

const after = (seconds: number) => new Date(noon.getTime() + seconds * 1000)
const firstPage = { limit: 50, after: null }

onBothEngines('the approvals of an account', (database) => {
  const open = async () => {
    const accountId = await openAccount(database(), 100n)
    return { accountId, keyId: await openKey(database(), accountId) }
  }
  type Scene = Awaited<ReturnType<typeof open>>
  /** A call that needs approval, with a decision of its own. */
  const openApproval = async (scene: Scene, changes: Partial<ApprovalCall> = {}) => {
    const request = buildSpend(scene, 1n, { needsApproval: true })
    await reserveSpend(database(), request)
    const approval = await requestApproval(
      { database: database(), newId },
      {
        ...scene,
        decisionId: request.decisionId,
        operation: 'wallets.transfer',
        input: '{"amount":"1.50"}',
        fingerprint: 'this call',
        idempotencyKey: null,
        awaitsCaller: false,
        reason: null,
        violations: [],
        ttlSeconds: 600,
        at: noon,
        isAsked: false,
        isReplayed: false,
        ...changes,
      },
    )
    if (approval === undefined) throw new Error('too many approvals are open')
    return { approval, isNew: approval.decisionId === request.decisionId, decisionId: request.decisionId }
  }
  const decide = (scene: Scene, id: string, status: 'approved' | 'rejected', at = after(1)) =>
    decideApproval(database(), { keyId: null, note: null, accountId: scene.accountId, id, status, at })

  it('start as a pending call with its whole request', async () => {
    const scene = await open()
    const { approval, decisionId } = await openApproval(scene)
    expect(approval).toEqual({
      id: approval.id,
      ...scene,
      askerId: null,
      needed: 1,
      decisionId,
      operation: 'wallets.transfer',
      input: '{"amount":"1.50"}',
      payee: null,
      idempotencyKey: null,
      reason: null,
      violations: [],
      note: null,
      status: 'pending',
      usedBy: null,
      answer: null,
      problem: null,
      awaitsCaller: false,
      createdAt: noon,
      expiresAt: after(600),
      decidedAt: null,
      cardId: null,
      endedAt: null,
    })
    expect(approval.id).toMatch(/^appr_/)
  })

  it('are shared by equal calls while pending', async () => {
    const scene = await open()
    const { approval: first } = await openApproval(scene)
    expect((await openApproval(scene, { at: after(599) })).approval).toEqual(first)
    expect((await openApproval(scene, { fingerprint: 'another call' })).isNew).toBe(true)
    expect((await openApproval(await open())).isNew).toBe(true)
    expect((await openApproval(scene, { idempotencyKey: 'a' })).isNew).toBe(true)
    const asked = await openApproval(scene, { fingerprint: 'asked', isAsked: true, reason: 'Due.' })
    const called = await openApproval(scene, { fingerprint: 'asked', idempotencyKey: 'a' })
    expect(called.approval).toMatchObject({ id: asked.approval.id, idempotencyKey: 'a', reason: 'Due.' })
    expect((await openApproval(scene, { fingerprint: 'asked', idempotencyKey: 'b' })).isNew).toBe(true)
    expect((await openApproval(scene, { at: after(600) })).isNew).toBe(true)
  })

  it('are created anew once the first was decided', async () => {
    const scene = await open()
    const { approval } = await openApproval(scene)
    await decide(scene, approval.id, 'approved')
    expect((await openApproval(scene)).isNew).toBe(true)
  })

  it('approvals that were rejected answer the same call for as long as they could have been approved', async () => {
    const scene = await open()
    const { approval } = await openApproval(scene)
    await decide(scene, approval.id, 'rejected')
    expect((await openApproval(scene, { at: after(599) })).approval).toMatchObject({
      id: approval.id,
      status: 'rejected',
    })
    expect((await openApproval(scene, { idempotencyKey: 'a' })).isNew).toBe(true)
    expect((await openApproval(scene, { fingerprint: 'another', at: after(599) })).isNew).toBe(true)
    expect((await openApproval(scene, { at: after(600) })).isNew).toBe(true)
  })

  it('are replaced when the call breaks a rule by now that their owner has not seen', async () => {
    const scene = await open()
    const { approval } = await openApproval(scene, { idempotencyKey: 'a' })
    const broken = {
      rule: 'daily_budget',
      limit: '5',
      used: '5',
      requested: '1',
      remaining: '0',
      resetsAt: null,
    }
    const asked = { isAsked: true, reason: 'Due.', violations: [broken] }
    const { approval: next, isNew } = await openApproval(scene, asked)
    expect([isNew, next.idempotencyKey, next.reason]).toEqual([true, 'a', 'Due.'])
    const owner = { accountId: scene.accountId, keyId: null, now: noon }
    expect(await findApproval(database(), { ...owner, id: approval.id })).toMatchObject({
      status: 'withdrawn',
    })
    expect((await openApproval(scene, asked)).approval).toEqual(next)
  })

  it('approvals with an idempotency key belong to one decision, whatever its outcome', async () => {
    const scene = await open()
    const { approval, decisionId } = await openApproval(scene, { idempotencyKey: 'a' })
    expect((await openApproval(scene, { idempotencyKey: 'a', decisionId })).approval).toEqual(approval)
    expect((await openApproval(scene, { idempotencyKey: 'a', decisionId, at: after(600) })).approval).toEqual(
      {
        ...approval,
        status: 'expired',
      },
    )
    expect((await openApproval(scene, { idempotencyKey: 'b' })).isNew).toBe(true)
    expect((await openApproval(scene)).isNew).toBe(true)
  })

  it('are one when several processes create one for the same decision concurrently', async () => {
    const scene = await open()
    const { decisionId } = buildSpend(scene, 1n)
    await reserveSpend(database(), buildSpend(scene, 1n, { needsApproval: true, decisionId }))
    const all = await Promise.all(
      Array.from({ length: 4 }, () => openApproval(scene, { idempotencyKey: 'a', decisionId })),
    )
    expect(new Set(all.map(({ approval }) => approval.id)).size).toBe(1)
  })

  it('are found by their account and by their key only', async () => {
    const scene = await open()
    const { approval } = await openApproval(scene)
    const find = (owner: { accountId: string; keyId: string | null }, now = noon) =>
      findApproval(database(), { ...owner, id: approval.id, now })
    const otherScene = await open()
    expect(await find(scene)).toEqual(approval)
    expect(await find({ ...scene, keyId: null })).toEqual(approval)
    expect(await find({ ...scene, keyId: otherScene.keyId })).toBeUndefined()
    expect(await find({ ...otherScene, keyId: null })).toBeUndefined()
    expect(await find(scene, after(599.999))).toMatchObject({ status: 'pending' })
    expect(await find(scene, after(600))).toEqual({ ...approval, status: 'expired' })
  })

  it('record the time of the last request', async () => {
    const scene = await open()
    const readRequestedAt = (changes: object = {}) =>
      findApprovalRequestedAt(database(), { ...scene, fingerprint: 'this call', ...changes })
    expect(await readRequestedAt()).toBeUndefined()
    await openApproval(scene)
    await openApproval(scene, { at: after(700) })
    await openApproval(scene, { at: after(900), fingerprint: 'another call' })
    expect(await readRequestedAt()).toEqual(after(700))
    expect(await readRequestedAt({ keyId: await openKey(database(), scene.accountId) })).toBeUndefined()
    expect(await readRequestedAt({ accountId: await openAccount(database(), 0n) })).toBeUndefined()
  })

  it('are listed newest first, in pages and by status', async () => {
    const scene = await open()
    const calls = ['old', 'rejected', 'approved', 'waiting']
    const ids: string[] = []
    for (const [index, fingerprint] of calls.entries()) {
      const ttlSeconds = fingerprint === 'old' ? 60 : 600
      ids.push((await openApproval(scene, { fingerprint, at: after(index), ttlSeconds })).approval.id)
    }
    await decide(scene, ids[1] ?? '', 'rejected', after(10))
    await decide(scene, ids[2] ?? '', 'approved', after(10))
    await openApproval(await open())
    const list = async (parts: object = {}) => {
      const filter = { accountId: scene.accountId, status: undefined, page: firstPage, now: after(60) }
      return (await listApprovals(database(), { ...filter, ...parts })).map(({ id, status }) => [
        calls[ids.indexOf(id)],
        status,
      ])
    }
    expect(await list()).toEqual([
      ['waiting', 'pending'],
      ['approved', 'approved'],
      ['rejected', 'rejected'],
      ['old', 'expired'],
    ])
    expect(await list({ status: 'pending' })).toEqual([['waiting', 'pending']])
    expect(await list({ status: 'expired' })).toEqual([['old', 'expired']])
    expect(await list({ status: 'approved' })).toEqual([['approved', 'approved']])
    expect(await list({ status: 'rejected' })).toEqual([['rejected', 'rejected']])
    expect(await list({ now: after(59), status: 'expired' })).toEqual([])
    expect(await list({ page: { limit: 1, after: null } })).toHaveLength(2)
    expect(await list({ page: { limit: 50, after: ids[2] ?? '' } })).toEqual([
      ['rejected', 'rejected'],
      ['old', 'expired'],
    ])
  })

  it('are decided once, by their account, before they expire', async () => {
    const scene = await open()
    const { approval } = await openApproval(scene)
    expect(await decide(await open(), approval.id, 'approved')).toBeUndefined()
    expect(await decide(scene, approval.id, 'approved', after(600))).toBeUndefined()
    expect(await decide(scene, approval.id, 'approved', after(599))).toEqual({
      ...approval,
      status: 'approved',
      decidedAt: after(599),
    })
    expect(await decide(scene, approval.id, 'rejected')).toBeUndefined()
    expect(await decide(scene, (await openApproval(scene)).approval.id, 'rejected')).toMatchObject({
      status: 'rejected',
    })
  })

  it('keep the first outcome of the call, and none of a call that may not run', async () => {
    const keep = (id: string, outcome: { answer: string } | { problem: string }) =>
      storeApprovalOutcome(database(), { id, outcome, now: noon })
    const scene = await open()
    const { approval: paid } = await openApproval(scene, { fingerprint: 'paid' })
    const { approval: refused } = await openApproval(scene, { fingerprint: 'refused' })
    const { approval: waiting } = await openApproval(scene, { fingerprint: 'waiting' })
    for (const { id } of [paid, refused]) await decide(scene, id, 'approved')
    expect(await keep(paid.id, { answer: 'done' })).toMatchObject({ answer: 'done', problem: null })
    expect(await keep(paid.id, { answer: 'done again' })).toMatchObject({ answer: 'done', problem: null })
    expect(await keep(paid.id, { problem: 'late' })).toMatchObject({ answer: 'done', problem: null })
    expect(await keep(refused.id, { problem: 'no funds' })).toMatchObject({
      answer: null,
      problem: 'no funds',
    })
    expect(await keep(refused.id, { answer: 'late' })).toMatchObject({ answer: null, problem: 'no funds' })
    expect(await keep(waiting.id, { answer: 'early' })).toMatchObject({ status: 'pending', answer: null })
    expect(await findApproval(database(), { ...scene, id: waiting.id, now: noon })).toEqual(waiting)
  })

  it('are unfinished while an approved call has no outcome', async () => {
    const scene = await open()
    const ids: string[] = []
    for (const fingerprint of ['answered', 'refused', 'open', 'open too', 'waiting', 'rejected'])
      ids.push((await openApproval(scene, { fingerprint, at: after(ids.length) })).approval.id)
    const [answered = '', refused = '', one = '', two = '', , rejected = ''] = ids
    for (const id of [answered, refused, one, two]) await decide(scene, id, 'approved', after(10))
    await decide(scene, rejected, 'rejected', after(10))
    await storeApprovalOutcome(database(), { id: answered, outcome: { answer: 1 }, now: noon })
    await storeApprovalOutcome(database(), { id: refused, outcome: { problem: 1 }, now: noon })
    const listUnfinished = async (before: Date) =>
      (await unfinishedApprovals(database(), { before, retriedSince: noon, after: '', limit: 50 }))
        .map(({ id }) => id)
        .filter((id) => ids.includes(id))
    expect(await listUnfinished(after(11))).toEqual([one, two])
    expect(await listUnfinished(after(10))).toEqual([])
    expect(
      await unfinishedApprovals(database(), { before: after(11), retriedSince: noon, after: '', limit: 1 }),
    ).toHaveLength(1)
  })

  it('are shown with parsed input and formatted times', async () => {
    const scene = await open()
    const { approval } = await openApproval(scene)
    const view = {
      approvalId: approval.id,
      status: 'pending',
      agentId: scene.keyId,
      operation: 'wallets.transfer',
      input: { amount: '1.50' },
      decisionId: approval.decisionId,
      answer: null,
      problem: null,
      createdAt: '2026-11-20T12:00:00.000Z',
      expiresAt: '2026-11-20T12:10:00.000Z',
      reason: null,
      violations: [],
      note: null,
      decidedAt: null,
      personId: null,
      needed: 1,
      agreed: 0,
    }
    expect(approvalView.parse(viewApproval(approval))).toEqual(view)
    await decide(scene, approval.id, 'approved')
    const outcome = { answer: { transferId: 'tx_1' } }
    const done = await storeApprovalOutcome(database(), { id: approval.id, outcome, now: noon })
    expect(approvalView.parse(viewApproval(done))).toMatchObject({
      status: 'approved',
      answer: { transferId: 'tx_1' },
      decidedAt: '2026-11-20T12:00:01.000Z',
    })
  })
})
