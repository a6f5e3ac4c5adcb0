import { beforeAll, beforeEach, expect, it } from 'vitest'
import { z } from 'zod'
import type { Services } from '../../../src/kernel/context.ts'
import logout from '../../../tools/auth/logout.ts'
import session from '../../../tools/auth/session.ts'
import list from '../../../tools/auth/sessions/list.ts'
import revoke from '../../../tools/auth/sessions/revoke.ts'
import { onBothEngines } from '../../engines.ts'
import { noon, servicesOn } from '../../kernel/scene.ts'
import { newSignedIn, type SignedIn, signInAgain } from '../../people/identity/signed-in.ts'

const after = (seconds: number) => new Date(noon.getTime() + seconds * 1000)
const listed = z.object({
  sessions: z.array(z.looseObject({ id: z.string(), current: z.boolean() })),
  nextCursor: z.string().nullable(),
})

onBothEngines('sessions', (database) => {
  let services: Services
  let person: SignedIn
  const refused = expect.objectContaining({ code: 'unauthenticated' })
  const readSessions = async (caller: SignedIn, input = {}) =>
    listed.parse((await caller.call(list, input)).body)

  beforeAll(async () => {
    services = await servicesOn(database())
  })
  beforeEach(async () => {
    person = await newSignedIn(services)
  })

  it('return their account, with a renewed token', async () => {
    const { body } = await person.call(session, {}, { at: after(60) })
    expect(body).toMatchObject({
      account: { id: person.accountId, role: 'user', guest: false, displayName: 'Ada', mfaEnrolled: false },
      expiresAt: after(60 + 900).toISOString(),
    })
    const renewed = { ...person, token: String(body.sessionToken) }
    expect(renewed.token).not.toBe(person.token)
  })

  it('are listed newest first, page by page, without those of other accounts', async () => {
    const others = await Promise.all([1, 2, 3].map((n) => signInAgain(services, person.accountId, after(n))))
    await newSignedIn(services)
    const { sessions } = await readSessions(person)
    expect(sessions).toHaveLength(4)
    expect(sessions.map(({ current }) => current)).toEqual([false, false, false, true])
    const seen: string[] = []
    let cursor: string | null = null
    do {
      const page: z.output<typeof listed> = await readSessions(others[0] ?? person, {
        limit: 3,
        ...(cursor === null ? {} : { cursor }),
      })
      seen.push(...page.sessions.map(({ id }) => id))
      cursor = page.nextCursor
    } while (cursor !== null)
    expect(seen).toEqual(sessions.map(({ id }) => id))
  })

  it.each([
    [{ limit: 0 }],
    [{ limit: 101 }],
    [{ limit: '1e2' }],
    [{ limit: 1.5 }],
    [{ cursor: 'x' }],
    [{ cursor: 5 }],
    [{ page: 2 }],
  ])('are not listed by %j', async (input) => {
    await expect(person.call(list, input)).rejects.toMatchObject({ code: 'invalid_request' })
  })

  it('end permanently at sign-out, without affecting others', async () => {
    const other = await signInAgain(services, person.accountId)
    await expect(person.call(logout, {})).resolves.toMatchObject({ body: { revoked: true } })
    await expect(person.call(session, {})).rejects.toEqual(refused)
    await expect(other.call(session, {})).resolves.toBeDefined()
    expect((await readSessions(other)).sessions).toHaveLength(1)
  })

  it('are ended individually by their owner alone', async () => {
    const other = await signInAgain(services, person.accountId)
    const outsider = await newSignedIn(services)
    const id = (await readSessions(other)).sessions.find(({ current }) => current)?.id
    await expect(outsider.call(revoke, { id })).rejects.toMatchObject({ code: 'not_found' })
    await expect(other.call(session, {})).resolves.toBeDefined()
    await expect(person.call(revoke, { id })).resolves.toMatchObject({ body: { revoked: true } })
    await expect(other.call(session, {})).rejects.toEqual(refused)
    await expect(person.call(revoke, { id })).rejects.toMatchObject({ code: 'not_found' })
  })

  it('are ended except the current one, without affecting other accounts', async () => {
    const others = [
      await signInAgain(services, person.accountId),
      await signInAgain(services, person.accountId),
    ]
    const outsider = await newSignedIn(services)
    for (let times = 0; times < 2; times += 1)
      await expect(person.call(revoke, { id: 'others' })).resolves.toMatchObject({ body: { revoked: true } })
    for (const other of others) await expect(other.call(session, {})).rejects.toEqual(refused)
    await expect(outsider.call(session, {})).resolves.toBeDefined()
    expect((await readSessions(person)).sessions).toMatchObject([{ current: true }])
  })
})
