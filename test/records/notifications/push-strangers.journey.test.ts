/** Push messages over HTTP, while strangers subscribe endpoints that never answer, and to browsers that a thief adds. */
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { overBothEngines } from '../../journeys/both-engines.ts'
import {
  enrollMfa,
  newGuest,
  newMailbox,
  type Person,
  requestJson,
  signInByEmail,
} from '../../journeys/people.ts'
import { newBrowser, startPushService } from './push-service.ts'

const outbox = z.object({ messages: z.array(z.object({ destination: z.string(), text: z.string() })) })

overBothEngines('push messages', {}, ({ gateway }) => {
  let push: Awaited<ReturnType<typeof startPushService>>
  const hanging = new Set<Socket>()
  const silent = createServer((socket) => {
    hanging.add(socket.on('error', () => {}))
  })
  let silentOrigin = ''
  beforeAll(async () => {
    push = await startPushService()
    silent.listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const address = silent.address()
    if (address === null || typeof address === 'string') throw new Error('no port')
    silentOrigin = `http://127.0.0.1:${address.port}`
  })
  afterAll(async () => {
    for (const socket of hanging) socket.destroy()
    silent.close()
    await push?.close()
  })
  const subscribe = (person: Person, endpoint: string) =>
    person.send('POST', '/api/notifications/subscriptions', newBrowser(endpoint).subscription)
  const lock = (person: Person) => person.send('POST', '/api/security/lock', {})
  const countReceived = (path: string) => push.received.filter((received) => received.path === path).length

  it('arrive within seconds while hundreds of strangers’ endpoints hang', async () => {
    const owner = await newGuest(gateway().origin)
    expect((await subscribe(owner, `${push.origin}/owner`)).status).toBe(200)
    const strangers = await Promise.all(Array.from({ length: 40 }, () => newGuest(gateway().origin)))
    await Promise.all(
      strangers.map(async (stranger, at) => {
        for (let count = 0; count < 10; count += 1)
          await subscribe(stranger, `${silentOrigin}/${at}/${count}`)
        expect((await lock(stranger)).status).toBe(200)
      }),
    )
    await expect.poll(() => hanging.size).toBeGreaterThan(20)
    const lockedAt = performance.now()
    await lock(owner)
    await expect.poll(() => countReceived('/owner'), { timeout: 8_000 }).toBe(1)
    expect(performance.now() - lockedAt).toBeLessThan(8_000)
  })

  it('go to a new browser only by a recent proof, of which the owner is told', async () => {
    const mailbox = newMailbox('ada')
    const owner = await signInByEmail(gateway().origin, mailbox)
    await enrollMfa(owner)
    const thief = await signInByEmail(gateway().origin, mailbox)
    const readAdded = async () => {
      const { body } = await requestJson(gateway().origin, 'GET', '/sandbox/outbox')
      return outbox
        .parse(body)
        .messages.filter(
          ({ destination, text }) => destination === mailbox && /^A browser .* was added/.test(text),
        ).length
    }
    const refused = await subscribe(thief, `${push.origin}/thief`)
    expect([refused.status, refused.body.code, await readAdded()]).toEqual([401, 'step_up_required', 0])
    expect((await subscribe(owner, `${push.origin}/own`)).status).toBe(200)
    expect(await readAdded()).toBe(1)
    // Nobody else knows the endpoint, which goes on in a later session.
    const later = await signInByEmail(gateway().origin, mailbox)
    expect((await subscribe(later, `${push.origin}/own`)).status).toBe(200)
    expect(await readAdded()).toBe(1)
    expect((await later.send('POST', '/api/auth/logout', {})).status).toBe(200)
    expect((await owner.send('GET', '/api/notifications/subscriptions')).body.subscriptions).toEqual([])
    expect((await subscribe(thief, `${push.origin}/own`)).status).toBe(401)
    expect((await subscribe(owner, `${push.origin}/own`)).status).toBe(200)
    expect(await readAdded()).toBe(2)
  })

  it('end for a browser whose session was signed out, revoked, or ended by recovery', async () => {
    const mailbox = newMailbox('ada')
    const [owner, second, third] = [
      await signInByEmail(gateway().origin, mailbox),
      await signInByEmail(gateway().origin, mailbox),
      await signInByEmail(gateway().origin, mailbox),
    ]
    const ends = ['kept', 'left', 'revoked'] as const
    for (const [at, person] of [owner, second, third].entries())
      expect((await subscribe(person, `${push.origin}/${ends[at]}`)).status).toBe(200)
    await second.send('POST', '/api/auth/logout', {})
    await owner.send('DELETE', '/api/auth/sessions/others')
    await lock(owner)
    await expect.poll(() => countReceived('/kept')).toBe(1)
    expect([countReceived('/left'), countReceived('/revoked')]).toEqual([0, 0])
  })
})
