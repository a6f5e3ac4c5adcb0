/** Payments that several people must agree to, over HTTP: agents' and people's own, and who tries to get around it. */
import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { overBothEngines } from './both-engines.ts'
import { inviteByMail, joinAccount, type Member, newPayer, signInAs } from './members.ts'
import { enrollMfa, newGuest, type Person, requestJson, signInByEmail } from './people.ts'

const payee = `0x${'1'.repeat(40)}`
const asked = z.looseObject({ approvalId: z.string() })
const outbox = z.object({ messages: z.array(z.object({ destination: z.string(), text: z.string() })) })
const journal = z.object({ entries: z.array(z.looseObject({ action: z.string(), actor: z.unknown() })) })

overBothEngines('quorums', { RATE_GUESTS: '1000/60' }, ({ gateway }) => {
  const origin = () => gateway().origin
  const join = (owner: Person, role: string) => joinAccount(origin(), owner, role)
  const setQuorum = (owner: Person, ...approvals: { above: string; count: number }[]) =>
    owner.send('PUT', '/api/agents/policy', { approvals })
  const transfer = (amount: string) => ({ destination: payee, amount, token: 'USDC' })
  const paySelf = (person: Person, amount: string, key: string) =>
    person.send(
      'POST',
      '/api/wallets/transfer',
      { ...transfer(amount), signature: 'sandbox' },
      { 'idempotency-key': key },
    )
  const approve = (person: Person, id: string, decision = 'approve') =>
    person.send('POST', `/api/approvals/${id}`, { decision })
  const pay = async (key: Awaited<ReturnType<typeof newPayer>>, amount: string) => {
    const idempotencyKey = randomUUID()
    const { status, body } = await key.send('POST', '/api/wallets/transfer', transfer(amount), {
      'idempotency-key': idempotencyKey,
    })
    return { status, body, idempotencyKey }
  }
  const ask = async (key: Awaited<ReturnType<typeof newPayer>>, amount: string) => {
    const { status, body } = await pay(key, amount)
    expect([status, body.code]).toEqual([403, 'approval_required'])
    return asked.parse(body).approvalId
  }

  it('asks so many different people for an agent’s payment, and nobody below the amount', async () => {
    const owner = await newGuest(origin())
    const [approver, viewer] = [await join(owner, 'approver'), await join(owner, 'viewer')]
    expect(await setQuorum(owner, { above: '100', count: 2 })).toMatchObject({
      status: 200,
      body: { approvals: [{ above: '100', count: 2 }], dailyBudget: null },
    })
    const key = await newPayer(origin(), owner)
    expect((await pay(key, '100')).status).toBe(200)
    const id = await ask(key, '101')
    expect(await key.send('GET', `/api/approvals/${id}`)).toMatchObject({
      body: { status: 'pending', needed: 2, agreed: 0 },
    })
    expect((await approve(viewer, id)).body.code).toBe('insufficient_role')
    const first = await approve(approver, id)
    expect(first).toMatchObject({
      status: 200,
      body: { status: 'pending', needed: 2, agreed: 1, people: [{ personId: approver.id }] },
    })
    // The same person twice is one person.
    expect(await approve(approver, id)).toMatchObject({ status: 200, body: { status: 'pending', agreed: 1 } })
    // Who it was is for people.
    expect((await key.send('GET', `/api/approvals/${id}`)).body).not.toHaveProperty('people')
    expect(await approve(owner, id)).toMatchObject({
      status: 200,
      body: { status: 'approved', agreed: 2, answer: { amount: '101' } },
    })
    const { body } = await owner.send('GET', '/api/security/journal')
    expect(journal.parse(body).entries.slice(0, 2)).toMatchObject([
      { action: 'approval.approved', actor: { id: owner.accountId } },
      { action: 'approval.agreed', actor: { id: approver.id } },
    ])
    // One no is enough.
    const second = await ask(key, '102')
    await approve(owner, second)
    expect(await approve(approver, second, 'reject')).toMatchObject({ body: { status: 'rejected' } })
    expect(await approve(owner, second)).toMatchObject({ status: 409 })
  })

  it('approves once, whoever presses at once', async () => {
    const owner = await newGuest(origin())
    const people = [
      owner,
      await join(owner, 'approver'),
      await join(owner, 'owner'),
      await join(owner, 'approver'),
    ]
    await setQuorum(owner, { above: '10', count: 2 })
    const key = await newPayer(origin(), owner)
    for (const amount of ['11', '12', '13']) {
      const id = await ask(key, amount)
      const answers = await Promise.all([...people, ...people].map((person) => approve(person, id)))
      // Those who come while the call runs are told so.
      const others = answers.filter(({ status }) => status !== 200).map(({ body }) => body.code)
      expect(others.filter((code) => code !== 'idempotency_in_progress')).toEqual([])
      const { body } = await owner.send('GET', `/api/approvals/${id}`)
      expect(body).toMatchObject({ status: 'approved', agreed: 2, needed: 2 })
    }
    const { body } = await owner.send('GET', '/api/wallets/transfers')
    expect(z.array(z.unknown()).parse(body.transfers)).toHaveLength(3)
    // One person pressing twice at once is one person.
    const id = await ask(key, '14')
    await Promise.all([1, 2, 3, 4].map(() => approve(owner, id)))
    expect((await owner.send('GET', `/api/approvals/${id}`)).body).toMatchObject({
      status: 'pending',
      agreed: 1,
    })
  })

  it('does not count whoever was removed, or may only read by now', async () => {
    const owner = await newGuest(origin())
    const [gone, lowered, last] = [
      await join(owner, 'approver'),
      await join(owner, 'approver'),
      await join(owner, 'approver'),
    ]
    await setQuorum(owner, { above: '10', count: 2 })
    const key = await newPayer(origin(), owner)
    const id = await ask(key, '11')
    await approve(gone, id)
    expect((await owner.send('DELETE', `/api/people/${gone.id}`)).status).toBe(200)
    expect(await approve(lowered, id)).toMatchObject({ body: { status: 'pending', agreed: 1 } })
    await owner.send('PATCH', `/api/people/${lowered.id}`, { role: 'viewer' })
    expect(await approve(last, id)).toMatchObject({ body: { status: 'pending', agreed: 1 } })
    // A yes does not come back with the person.
    const code = await inviteByMail(origin(), owner, gone.email, 'approver')
    const back = await signInByEmail(origin(), gone.email)
    expect((await back.send('POST', '/api/people/invitations/accept', { code })).status).toBe(200)
    expect((await owner.send('GET', `/api/approvals/${id}`)).body).toMatchObject({ agreed: 1 })
    expect(await approve(owner, id)).toMatchObject({ body: { status: 'approved', agreed: 2 } })
  })

  it('asks the others for a person’s own payment, which the person makes once they agreed', async () => {
    const owner = await newGuest(origin())
    const [approver, second] = [await join(owner, 'approver'), await join(owner, 'owner')]
    await setQuorum(owner, { above: '50', count: 2 })
    expect((await paySelf(owner, '50', 'small')).status).toBe(200)
    const refused = await paySelf(owner, '51', 'big')
    expect(refused).toMatchObject({ status: 403, body: { code: 'approval_required', reason: 'quorum' } })
    const id = asked.parse(refused.body).approvalId
    expect(await approve(owner, id)).toMatchObject({
      status: 409,
      body: { code: 'conflict', reason: 'own_request' },
    })
    expect(asked.parse((await paySelf(owner, '51', 'big')).body).approvalId).toBe(id)
    await approve(approver, id)
    expect((await paySelf(owner, '51', 'big')).status).toBe(403)
    expect(await approve(second, id)).toMatchObject({
      body: { status: 'approved', personId: owner.accountId, agentId: null },
    })
    // Exactly this payment, by this person, once.
    expect((await paySelf(owner, '52', 'other')).status).toBe(403)
    expect((await paySelf(second, '51', 'big')).status).toBe(403)
    const paid = await paySelf(owner, '51', 'big')
    expect(paid.status).toBe(200)
    expect((await paySelf(owner, '51', 'big')).body.transferId).toBe(paid.body.transferId)
    expect((await paySelf(owner, '51', 'again')).status).toBe(403)
    expect((await owner.send('GET', `/api/approvals/${id}`)).body).toMatchObject({ answer: { amount: '51' } })
  })

  it('is refused where it cannot be met, also by leaving, and loosens only with a proof', async () => {
    const owner = await newGuest(origin())
    expect(await setQuorum(owner, { above: '10', count: 2 })).toMatchObject({
      status: 409,
      body: { code: 'conflict', hint: expect.any(String) },
    })
    const [approver, viewer] = [await join(owner, 'approver'), await join(owner, 'viewer')]
    expect((await setQuorum(owner, { above: '10', count: 3 })).status).toBe(409)
    await owner.send('PUT', '/api/agents/policy', { dailyBudget: { max: '900' } })
    expect((await setQuorum(owner, { above: '10', count: 2 }, { above: '5', count: 1 })).status).toBe(200)
    expect((await owner.send('GET', '/api/agents/policy')).body).toMatchObject({
      dailyBudget: { max: '900' },
      approvals: [
        { above: '5', count: 1 },
        { above: '10', count: 2 },
      ],
    })
    // What is not named stays.
    expect(await owner.send('PUT', '/api/agents/policy', { weeklyBudget: { max: '2000' } })).toMatchObject({
      body: { dailyBudget: { max: '900' }, approvals: [{ count: 1 }, { count: 2 }] },
    })
    for (const [person, method, body] of [
      [approver, 'DELETE'],
      [owner, 'DELETE'],
      [owner, 'PATCH', { role: 'viewer' }],
    ] as const)
      expect(await person.send(method, `/api/people/${approver.id}`, body)).toMatchObject({
        status: 409,
        body: { code: 'conflict', reason: 'quorum' },
      })
    expect((await owner.send('DELETE', `/api/people/${viewer.id}`)).status).toBe(200)
    // Nobody else is there to agree to the owner's own.
    expect(await paySelf(owner, '11', 'alone')).toMatchObject({ status: 409, body: { reason: 'quorum' } })
    const second = await join(owner, 'owner')
    await enrollMfa(second)
    const stale = await signInByEmail(origin(), second.email)
    for (const approvals of [[], [{ above: '11', count: 2 }], [{ above: '10', count: 1 }]])
      expect(await stale.send('PUT', '/api/agents/policy', { approvals })).toMatchObject({ status: 401 })
    expect(
      (await stale.send('PUT', '/api/agents/policy', { approvals: [{ above: '4', count: 2 }] })).status,
    ).toBe(200)
  })

  it('tells everybody of the account by mail when it is loosened, and nobody when it is not', async () => {
    const owner = await signInAs(origin(), 'owner')
    await enrollMfa(owner)
    const people = [
      owner,
      await join(owner, 'owner'),
      await join(owner, 'approver'),
      await join(owner, 'viewer'),
    ]
    const stranger = await signInAs(origin(), 'stranger')
    const noticesTo = async ({ email }: Member) => {
      const { messages } = outbox.parse((await requestJson(origin(), 'GET', '/sandbox/outbox')).body)
      return messages.filter(
        ({ destination, text }) => destination === email && /^Fewer people, or none, must agree/.test(text),
      ).length
    }
    const told = async () => Promise.all([...people, stranger].map(noticesTo))
    const set = async (...approvals: { above: string; count: number }[]) =>
      expect((await setQuorum(owner, ...approvals)).status).toBe(200)
    await set({ above: '10', count: 2 })
    await set({ above: '5', count: 2 }, { above: '50', count: 3 })
    expect(await told()).toEqual([0, 0, 0, 0, 0])
    // More people for large payments do not make up for fewer for small ones.
    await set({ above: '6', count: 3 })
    await expect.poll(told).toEqual([1, 1, 1, 1, 0])
    await set({ above: '6', count: 3 })
    await set()
    await expect.poll(told).toEqual([2, 2, 2, 2, 0])
    // Who must not loosen it tells nobody.
    expect(await setQuorum(people[2] ?? owner, { above: '100', count: 2 })).toMatchObject({ status: 403 })
    expect(await told()).toEqual([2, 2, 2, 2, 0])
  })

  it('holds what waits already to a stricter quorum, and never to a looser one', async () => {
    const owner = await newGuest(origin())
    const approver = await join(owner, 'approver')
    await setQuorum(owner, { above: '10', count: 1 })
    const key = await newPayer(origin(), owner)
    const id = await ask(key, '20')
    await setQuorum(owner, { above: '10', count: 2 })
    await setQuorum(owner)
    expect(await approve(owner, id)).toMatchObject({ body: { status: 'pending', needed: 2, agreed: 1 } })
    expect(await approve(approver, id)).toMatchObject({ body: { status: 'approved' } })
    expect((await pay(key, '21')).status).toBe(200)
  })

  it('holds what was agreed to, and not yet paid, to a stricter quorum', async () => {
    const owner = await newGuest(origin())
    const approver = await join(owner, 'approver')
    await join(owner, 'approver')
    await setQuorum(owner, { above: '10', count: 1 })
    const id = asked.parse((await paySelf(owner, '20', 'agreed')).body).approvalId
    expect(await approve(approver, id)).toMatchObject({ body: { status: 'approved', needed: 1 } })
    await setQuorum(owner, { above: '10', count: 2 })
    expect(await paySelf(owner, '20', 'agreed')).toMatchObject({
      status: 403,
      body: { code: 'approval_required', reason: 'quorum' },
    })
    const { body } = await owner.send('GET', '/api/wallets/transfers')
    expect(body.transfers).toEqual([])
  })

  it('leaves changes of a policy that an agent asks for to owners', async () => {
    const owner = await newGuest(origin())
    const approver = await join(owner, 'approver')
    const key = await newPayer(origin(), owner)
    const wider = {
      perTransaction: { max: '900' },
      dailyBudget: { max: '1000' },
      categories: { allow: ['transfer'] },
    }
    const { body } = await key.send('POST', '/api/approvals', {
      operation: 'agents.policy',
      input: { policy: wider },
      reason: 'I need more.',
    })
    const { approvalId } = asked.parse(body)
    expect(await approve(approver, approvalId)).toMatchObject({
      status: 403,
      body: { code: 'insufficient_role' },
    })
    expect(await approve(owner, approvalId)).toMatchObject({ status: 200, body: { status: 'approved' } })
  })
})
