/** One account and several people, over HTTP: invitations, roles, and what is left of somebody who was removed. */
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { overBothEngines } from './both-engines.ts'
import { inviteByMail, joinAccount, newPayer, signInAs } from './members.ts'
import {
  enrollMfa,
  lastCodeTo,
  newGuest,
  newMailbox,
  type Person,
  personFrom,
  requestJson,
  signInByEmail,
} from './people.ts'

const people = z.object({
  people: z.array(z.looseObject({ id: z.string(), role: z.string(), isYou: z.boolean() })),
  invitations: z.array(z.looseObject({ id: z.string(), email: z.string(), role: z.string() })),
})
const journal = z.object({ entries: z.array(z.looseObject({ action: z.string(), actor: z.unknown() })) })

/** Waits until so many transactions of the database wait for a lock. */
async function waitForWaiters(client: pg.Client, wanted: number): Promise<void> {
  await expect
    .poll(
      async () => {
        const { rowCount } = await client.query(
          'select 1 from pg_stat_activity where datname = current_database() and wait_event_type = $1',
          ['Lock'],
        )
        return rowCount
      },
      { timeout: 20_000 },
    )
    .toBe(wanted)
}

overBothEngines('an account of several people', { RATE_GUESTS: '1000/60' }, ({ gateway, databaseUrl }) => {
  const origin = () => gateway().origin
  const invite = (owner: Person, email: string, role: string) => inviteByMail(origin(), owner, email, role)
  const signIn = (name: string) => signInAs(origin(), name)
  const join = (owner: Person, role: string) => joinAccount(origin(), owner, role)
  const list = async (person: Person) => people.parse((await person.send('GET', '/api/people')).body)
  const newKey = (owner: Person) => newPayer(origin(), owner)

  it('invites by mail, and whoever accepts acts for the account with all their sessions', async () => {
    const owner = await newGuest(origin())
    const approver = await signIn('approver')
    const other = await signInByEmail(origin(), approver.email)
    const code = await invite(owner, approver.email.toUpperCase(), 'approver').catch(() =>
      lastCodeTo(origin(), approver.email),
    )
    expect((await list(owner)).invitations).toMatchObject([{ email: approver.email, role: 'approver' }])
    expect(await approver.send('POST', '/api/people/invitations/accept', { code })).toMatchObject({
      status: 200,
      body: { accountId: owner.accountId, person: { id: approver.id, role: 'approver', isYou: true } },
    })
    for (const session of [approver, other]) {
      const { body } = await session.send('GET', '/api/auth/session')
      expect(body).toMatchObject({
        role: 'approver',
        personId: approver.id,
        account: { id: owner.accountId },
      })
      expect((await session.send('GET', '/api/wallets')).status).toBe(200)
    }
    const again = await signInByEmail(origin(), approver.email)
    expect(again.accountId).toBe(owner.accountId)
    const { people: both, invitations } = await list(owner)
    expect(both).toMatchObject([
      { id: owner.accountId, role: 'owner', isYou: true },
      { id: approver.id, role: 'approver', email: approver.email, isYou: false },
    ])
    expect(invitations).toEqual([])
    expect(await approver.send('GET', `/api/people/${owner.accountId}`)).toMatchObject({
      body: { role: 'owner', isYou: false },
    })
    // A code is worth something once.
    expect(await approver.send('POST', '/api/people/invitations/accept', { code })).toMatchObject({
      status: 404,
    })
    const { body } = await owner.send('GET', '/api/security/journal')
    expect(journal.parse(body).entries.map(({ action, actor }) => [action, actor])).toEqual([
      ['person.joined', expect.objectContaining({ kind: 'person', id: approver.id })],
      ['person.invited', expect.objectContaining({ kind: 'person', id: owner.accountId })],
    ])
  })

  it('takes an invitation of its address alone, and refuses guesses, canceled and replaced codes alike', async () => {
    const owner = await newGuest(origin())
    const [invited, stranger] = [await signIn('invited'), await signIn('stranger')]
    const first = await invite(owner, invited.email, 'owner')
    const code = await invite(owner, invited.email, 'viewer')
    const refused = await stranger.send('POST', '/api/people/invitations/accept', { code })
    expect(refused).toMatchObject({ status: 404, body: { code: 'not_found' } })
    for (const wrong of [first, 'guess', `${code}x`]) {
      const { status, body } = await invited.send('POST', '/api/people/invitations/accept', { code: wrong })
      expect([status, body.detail]).toEqual([404, refused.body.detail])
    }
    const [open] = (await list(owner)).invitations
    expect(await owner.send('DELETE', `/api/people/invitations/${open?.id}`)).toMatchObject({ status: 200 })
    expect(await invited.send('POST', '/api/people/invitations/accept', { code })).toMatchObject({
      status: 404,
    })
    expect((await owner.send('DELETE', `/api/people/invitations/${open?.id}`)).status).toBe(404)
    expect((await list(owner)).people).toHaveLength(1)
    // Somebody with an account that holds something keeps it.
    const rich = await signIn('rich')
    await rich.send('POST', '/sandbox/faucet', {})
    const theirs = await invite(owner, rich.email, 'viewer')
    expect(await rich.send('POST', '/api/people/invitations/accept', { code: theirs })).toMatchObject({
      status: 409,
      body: { code: 'conflict', hint: expect.any(String) },
    })
    const keeper = await signIn('keeper')
    await newKey(keeper)
    const keepers = await invite(owner, keeper.email, 'viewer')
    expect(await keeper.send('POST', '/api/people/invitations/accept', { code: keepers })).toMatchObject({
      status: 409,
    })
    // One person acts for one account.
    const another = await newGuest(origin())
    const member = await join(owner, 'viewer')
    const second = await invite(another, member.email, 'owner')
    expect(await member.send('POST', '/api/people/invitations/accept', { code: second })).toMatchObject({
      status: 409,
      body: { code: 'conflict' },
    })
    expect(
      await owner.send('POST', '/api/people/invitations', { email: member.email, role: 'owner' }),
    ).toMatchObject({
      status: 409,
    })
  })

  it('lets nobody leave money behind that is on its way to their own account', async () => {
    const [owner, person, admin] = [await newGuest(origin()), await signIn('waiting'), await signIn('admin')]
    await admin.send('POST', '/sandbox/admin', {})
    const code = await invite(owner, person.email, 'viewer')
    const accept = () => person.send('POST', '/api/people/invitations/accept', { code })
    const refused = (what: string) => ({
      status: 409,
      body: { code: 'conflict', detail: expect.stringContaining(what), hint: expect.any(String) },
    })
    // Somebody could still pay it.
    const asked = { amount: '5', asset: 'USDC', memo: 'Lunch' }
    const { status, body: request } = await person.send('POST', '/api/requests', asked)
    expect(status, JSON.stringify(request)).toBe(200)
    expect(await accept()).toMatchObject(refused('money on its way'))
    const cancel = await person.send('DELETE', `/api/requests/${String(request.requestId)}`)
    expect(cancel.status, JSON.stringify(cancel.body)).toBe(200)
    // The bank has it, and the gateway has not credited it.
    const { body: account } = await person.send('POST', '/api/banking', { currency: 'USD' })
    const deposit = { accountId: account.id, amount: '10', from: 'LAZARUS GROUP' }
    expect((await person.send('POST', '/sandbox/deposits', deposit)).status).toBe(200)
    expect((await person.send('GET', '/api/wallets')).body).toMatchObject({ balances: expect.any(Array) })
    expect(await accept()).toMatchObject(refused('money on its way'))
    const { body: listed } = await admin.send('GET', '/api/admin/reviews?status=open')
    const { reviews } = z
      .object({ reviews: z.array(z.looseObject({ id: z.string(), accountId: z.string() })) })
      .parse(listed)
    const review = reviews.find(({ accountId }) => accountId === person.accountId)
    const decide = (decision: string) =>
      admin.send('POST', `/api/admin/reviews/${review?.id}`, { decision, reason: 'The payer was asked.' })
    expect((await decide('block')).status).toBe(200)
    // It never comes: nothing is left.
    expect(await accept()).toMatchObject({ status: 200, body: { person: { role: 'viewer' } } })
  })

  it('refuses an invitation whose account is locked, or whose sender is an owner no more', async () => {
    const owner = await newGuest(origin())
    const second = await join(owner, 'owner')
    const [early, late] = [await signIn('early'), await signIn('late')]
    const codes = [
      await invite(second, early.email, 'owner'),
      await invite(owner, late.email, 'owner'),
    ] as const
    const accept = (person: Person, code: string) =>
      person.send('POST', '/api/people/invitations/accept', { code })
    expect((await owner.send('PATCH', `/api/people/${second.id}`, { role: 'viewer' })).status).toBe(200)
    expect(await accept(early, codes[0])).toMatchObject({ status: 404, body: { code: 'not_found' } })
    expect((await owner.send('POST', '/api/security/lock', {})).status).toBe(200)
    expect(await accept(late, codes[1])).toMatchObject({ status: 409, body: { code: 'conflict' } })
  })

  it('accepts an invitation once, however often it is sent at once', async () => {
    const owner = await newGuest(origin())
    const person = await signIn('quick')
    const code = await invite(owner, person.email, 'viewer')
    const answers = await Promise.all(
      [1, 2, 3].map(() => person.send('POST', '/api/people/invitations/accept', { code })),
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect((await list(owner)).people).toHaveLength(2)
  })

  it('lets each role do what it says, and refuses everything else', async () => {
    const owner = await newGuest(origin())
    const [approver, viewer, accountant, second] = [
      await join(owner, 'approver'),
      await join(owner, 'viewer'),
      await join(owner, 'accountant'),
      await join(owner, 'owner'),
    ]
    const month = new Date().toISOString().slice(0, 7)
    const pay = { destination: `0x${'1'.repeat(40)}`, amount: '1', token: 'USDC', signature: 'sandbox' }
    const rows: readonly [string, string, unknown, readonly number[]][] = [
      ['GET', '/api/wallets', undefined, [200, 200, 200, 200]],
      ['GET', `/api/statements/${month}`, undefined, [200, 200, 200, 200]],
      ['GET', '/api/approvals', undefined, [200, 200, 403, 200]],
      ['GET', '/api/agents/keys', undefined, [200, 200, 403, 200]],
      ['POST', '/api/wallets/transfer', pay, [403, 403, 403, 200]],
      ['POST', '/api/contacts', { name: 'Alice' }, [403, 403, 403, 200]],
      ['PUT', '/api/agents/policy', { dailyBudget: null }, [403, 403, 403, 200]],
      ['POST', '/api/people/invitations', { email: newMailbox('x'), role: 'owner' }, [403, 403, 403, 200]],
      [
        'POST',
        '/api/approvals/appr_01h455vb4pex5vsknk084sn02q',
        { decision: 'reject' },
        [404, 403, 403, 404],
      ],
      ['POST', '/api/security/mfa', { action: 'status' }, [200, 200, 200, 200]],
    ]
    for (const [method, path, body, expected] of rows) {
      const answers = []
      for (const person of [approver, viewer, accountant, second])
        answers.push(await person.send(method, path, body))
      expect([path, answers.map(({ status }) => status)]).toEqual([path, expected])
      for (const answer of answers.filter(({ status }) => status === 403))
        expect(answer.body).toMatchObject({ code: 'insufficient_role', hint: expect.any(String) })
    }
    // The person who added it, not the account.
    expect((await owner.send('GET', '/api/contacts')).body.contacts).toMatchObject([{ addedBy: second.id }])
    // Nobody raises themselves, and nobody but owners touches others.
    for (const person of [approver, viewer, accountant]) {
      expect(await person.send('PATCH', `/api/people/${person.id}`, { role: 'owner' })).toMatchObject({
        status: 403,
        body: { code: 'insufficient_role' },
      })
      expect(await person.send('DELETE', `/api/people/${owner.accountId}`)).toMatchObject({
        status: 403,
        body: { code: 'insufficient_role' },
      })
      // Addresses are for owners.
      expect((await person.send('GET', `/api/people/${second.id}`)).body.email).toBeNull()
    }
    expect(await owner.send('PATCH', `/api/people/${viewer.id}`, { role: 'approver' })).toMatchObject({
      status: 200,
      body: { role: 'approver' },
    })
    expect((await viewer.send('GET', '/api/auth/session')).body.role).toBe('approver')
    const stranger = await newGuest(origin())
    for (const [method, body] of [['GET'], ['PATCH', { role: 'viewer' }], ['DELETE']] as const)
      expect((await stranger.send(method, `/api/people/${viewer.id}`, body)).status).toBe(404)
  })

  it('ends everything of a removed person at once', { timeout: 120_000 }, async () => {
    const owner = await newGuest(origin())
    const second = await join(owner, 'owner')
    const key = await newKey(second)
    expect((await key.send('GET', '/api/wallets')).status).toBe(200)
    const code = await invite(second, newMailbox('third'), 'owner')
    const stream = await fetch(`${origin()}/api/events`, {
      headers: { accept: 'text/event-stream', authorization: `Bearer ${second.token}` },
    })
    const reader = stream.body?.getReader()
    expect(await owner.send('DELETE', `/api/people/${second.id}`)).toMatchObject({
      status: 200,
      body: { removed: true, keysPaused: 1 },
    })
    expect(await second.send('GET', '/api/wallets')).toMatchObject({ status: 401 })
    for (let chunk = await reader?.read(); chunk !== undefined && !chunk.done; chunk = await reader?.read())
      expect(new TextDecoder().decode(chunk.value)).not.toContain('data:')
    expect((await list(owner)).invitations).toEqual([])
    expect(code).not.toBe('')
    const pay = { destination: `0x${'1'.repeat(40)}`, amount: '1', token: 'USDC' }
    expect(await key.send('POST', '/api/wallets/transfer', pay)).toMatchObject({ status: 403 })
    // They sign in to an account of their own, which sees nothing of the other one.
    const back = await signInByEmail(origin(), second.email)
    expect(back.accountId).toBe(second.id)
    expect((await back.send('GET', '/api/auth/session')).body).toMatchObject({
      role: 'owner',
      personId: second.id,
    })
    expect((await list(back)).people).toMatchObject([{ id: second.id, role: 'owner', isYou: true }])
    expect((await back.send('GET', `/api/agents/keys/${key.id}`)).status).toBe(404)
    // And can be invited again.
    const again = await invite(owner, second.email, 'viewer')
    expect((await back.send('POST', '/api/people/invitations/accept', { code: again })).status).toBe(200)
    const { body } = await owner.send('GET', '/api/security/journal')
    expect(journal.parse(body).entries.map(({ action }) => action)).toContain('person.removed')
  })

  it('pauses the keys of an owner who is lowered, and leaves those of the others', async () => {
    const owner = await newGuest(origin())
    const second = await join(owner, 'owner')
    const [own, others] = [await newKey(second), await newKey(owner)]
    const pay = { destination: `0x${'1'.repeat(40)}`, amount: '1', token: 'USDC' }
    expect((await own.send('POST', '/api/wallets/transfer', pay)).status).toBe(200)
    expect((await owner.send('PATCH', `/api/people/${second.id}`, { role: 'viewer' })).status).toBe(200)
    expect(await own.send('POST', '/api/wallets/transfer', pay)).toMatchObject({ status: 403 })
    expect((await others.send('POST', '/api/wallets/transfer', pay)).status).toBe(200)
    const { body } = await owner.send('GET', '/api/security/journal')
    expect(journal.parse(body).entries[0]).toMatchObject({
      action: 'person.role_changed',
      after: { role: 'viewer', grantsRevoked: 0, keysPaused: 1 },
    })
  })

  it('leaves no key to a person who makes one while being removed', async (context) => {
    const url = databaseUrl()
    // One engine has one connection: nothing happens at once there.
    if (url === null) return context.skip()
    const owner = await newGuest(origin())
    const second = await join(owner, 'owner')
    const holder = new pg.Client({ connectionString: url })
    await holder.connect()
    try {
      await holder.query('begin')
      await holder.query("select pg_advisory_xact_lock(hashtext('bursar journal'), 0)")
      const making = newKey(second)
      await waitForWaiters(holder, 1)
      const removing = owner.send('DELETE', `/api/people/${second.id}`)
      await waitForWaiters(holder, 2)
      await holder.query('commit')
      const [made, { status }] = await Promise.all([making, removing])
      expect(status).toBe(200)
      const pay = { destination: `0x${'1'.repeat(40)}`, amount: '1', token: 'USDC' }
      expect((await made.send('POST', '/api/wallets/transfer', pay)).status).not.toBe(200)
    } finally {
      await holder.end()
    }
  })

  it('keeps the last owner, also when two leave at once', async () => {
    const owner = await newGuest(origin())
    expect(await owner.send('DELETE', `/api/people/${owner.accountId}`)).toMatchObject({
      status: 409,
      body: { code: 'conflict', reason: 'last_owner' },
    })
    const second = await join(owner, 'owner')
    const leave = (person: Person, id: string) => person.send('DELETE', `/api/people/${id}`)
    const both = await Promise.all([leave(owner, owner.accountId), leave(second, second.id)])
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409])
    const left = both[0].status === 409 ? owner : second
    expect((await list(left)).people).toMatchObject([{ role: 'owner', isYou: true }])
    const third = await join(left, 'owner')
    const lower = (person: Person, id: string) =>
      person.send('PATCH', `/api/people/${id}`, { role: 'viewer' })
    const lefts = left === owner ? owner.accountId : second.id
    const lowered = await Promise.all([lower(left, third.id), lower(third, lefts)])
    expect(lowered.filter(({ status }) => status === 200)).toHaveLength(1)
  })

  it('gives whoever opened the account a new one when they leave, and never a way back', async () => {
    const founder = await signIn('founder')
    const heir = await join(founder, 'owner')
    expect((await founder.send('DELETE', `/api/people/${founder.id}`)).status).toBe(200)
    const back = await signInByEmail(origin(), founder.email)
    expect(back.accountId).not.toBe(founder.id)
    expect((await list(back)).people).toMatchObject([{ id: founder.id, role: 'owner', isYou: true }])
    expect((await list(heir)).people).toMatchObject([{ id: heir.id, role: 'owner' }])
    expect((await heir.send('GET', '/api/auth/session')).body).toMatchObject({ account: { id: founder.id } })
    // Locks, recoveries and factors of the one who left touch nothing of those who stayed.
    const secret = await enrollMfa(back)
    expect(secret).not.toBe('')
    expect((await heir.send('POST', '/api/contacts', { name: 'Alice' })).status).toBe(200)
    expect((await back.send('POST', '/api/security/lock', {})).status).toBe(200)
    expect((await heir.send('GET', '/api/wallets')).status).toBe(200)
    const { body: started } = await requestJson(origin(), 'POST', '/api/auth/recovery/start', {
      body: { channel: 'email', destination: founder.email },
    })
    const { body: recovered } = await requestJson(origin(), 'POST', '/api/auth/recovery/complete', {
      body: { challengeId: started.challengeId, code: await lastCodeTo(origin(), founder.email) },
    })
    expect(recovered).toMatchObject({ account: { id: back.accountId }, role: 'owner' })
    expect((await heir.send('GET', '/api/wallets')).status).toBe(200)
    // Whoever stays may invite them again.
    const code = await invite(heir, founder.email, 'viewer')
    const fresh = personFrom(origin(), recovered)
    expect(await fresh.send('POST', '/api/people/invitations/accept', { code })).toMatchObject({
      status: 200,
      body: { accountId: founder.id, person: { role: 'viewer' } },
    })
    expect(await fresh.send('PUT', '/api/agents/policy', { dailyBudget: null })).toMatchObject({
      status: 403,
    })
  })

  it('proves people by their own factors', async () => {
    const owner = await newGuest(origin())
    const second = await join(owner, 'owner')
    await enrollMfa(second)
    const later = await signInByEmail(origin(), second.email)
    expect(
      await later.send('POST', '/api/people/invitations', { email: newMailbox('x'), role: 'viewer' }),
    ).toMatchObject({
      status: 401,
      body: { code: 'step_up_required' },
    })
    expect(await later.send('DELETE', `/api/people/${owner.accountId}`)).toMatchObject({ status: 401 })
    // The factor of one is not the factor of the other.
    expect((await owner.send('POST', '/api/contacts', { name: 'Bob' })).status).toBe(200)
    // A viewer who is locked out locks nobody else out; an owner who locks, locks the account.
    const viewer = await join(owner, 'viewer')
    expect((await viewer.send('POST', '/api/security/lock', {})).status).toBe(200)
    expect((await viewer.send('GET', '/api/wallets')).status).toBe(423)
    expect((await owner.send('GET', '/api/wallets')).status).toBe(200)
    await pause(1)
    expect((await second.send('POST', '/api/security/lock', {})).status).toBe(200)
    expect((await owner.send('GET', '/api/wallets')).status).toBe(423)
    const { body: started } = await requestJson(origin(), 'POST', '/api/auth/recovery/start', {
      body: { channel: 'email', destination: second.email },
    })
    const { status } = await requestJson(origin(), 'POST', '/api/auth/recovery/complete', {
      body: { challengeId: started.challengeId, code: await lastCodeTo(origin(), second.email) },
    })
    expect(status).toBe(200)
    expect((await owner.send('GET', '/api/wallets')).status).toBe(200)
    expect((await viewer.send('GET', '/api/wallets')).status).toBe(423)
  })

  it('lets no key near people', async () => {
    const owner = await newGuest(origin())
    const viewer = await join(owner, 'viewer')
    const key = await newKey(owner)
    for (const [method, path, body] of [
      ['GET', '/api/people'],
      ['GET', `/api/people/${viewer.id}`],
      ['PATCH', `/api/people/${viewer.id}`, { role: 'owner' }],
      ['DELETE', `/api/people/${viewer.id}`],
      ['POST', '/api/people/invitations', { email: newMailbox('x'), role: 'owner' }],
      ['POST', '/api/people/invitations/accept', { code: 'x' }],
      ['DELETE', '/api/people/invitations/inv_x'],
    ] as const)
      expect(await key.send(method, path, body)).toMatchObject({
        status: 403,
        body: { code: 'insufficient_scope' },
      })
  })
})
