/** Push messages to owners' browsers: their text, encryption and signature, and the end of subscriptions. */
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { z } from 'zod'
import { createAskOwner } from '../../../src/kernel/ask-owner.ts'
import type { Services } from '../../../src/kernel/context.ts'
import { run } from '../../../src/kernel/run.ts'
import { lockAccount, unlockAccount } from '../../../src/people/identity/locks.ts'
import { findKey } from '../../../src/people/identity/store.ts'
import { publishNewEvents } from '../../../src/server/jobs/publish-events.ts'
import { startPushes } from '../../../src/server/jobs/push-owners.ts'
import { sweep } from '../../../src/server/jobs/sweep.ts'
import createKey from '../../../tools/agents/keys/create.ts'
import request from '../../../tools/approvals/request.ts'
import withdraw from '../../../tools/approvals/withdraw.ts'
import guest from '../../../tools/auth/guest.ts'
import logout from '../../../tools/auth/logout.ts'
import revoke from '../../../tools/auth/sessions/revoke.ts'
import { tools } from '../../../tools/index.ts'
import update from '../../../tools/notifications/settings/update.ts'
import create from '../../../tools/notifications/subscriptions/create.ts'
import list from '../../../tools/notifications/subscriptions/list.ts'
import remove from '../../../tools/notifications/subscriptions/remove.ts'
import mfa from '../../../tools/security/mfa.ts'
import { onBothEngines } from '../../engines.ts'
import { newAgent } from '../../journeys/agent.ts'
import { buildCall, noon, servicesOn } from '../../kernel/scene.ts'
import { computeTotp, readSecret, type SignedIn, signInAgain } from '../../people/identity/signed-in.ts'
import { newBrowser, startPushService, verifyVapid } from './push-service.ts'

const payee = `0x${'1'.repeat(40)}`
const after = (seconds: number) => new Date(noon.getTime() + seconds * 1000)
const listed = z.object({
  publicKey: z.string(),
  subscriptions: z.array(z.object({ id: z.string(), host: z.string() })),
})
const message = z.strictObject({ title: z.string(), body: z.string(), url: z.string() })

onBothEngines('a push message to an owner', (database) => {
  let services: Services
  let owner: SignedIn
  let push: Awaited<ReturnType<typeof startPushService>>
  let browser: ReturnType<typeof newBrowser>
  let now = noon
  let browsers = 0

  beforeAll(async () => {
    services = await servicesOn(database(), { askOwner: createAskOwner(tools), clock: () => now })
    push = await startPushService()
  })
  afterAll(() => push?.close())
  const newOwner = async () => {
    const { body } = await run(guest, buildCall(services, { kind: 'public' }), {})
    const { account } = z.object({ account: z.object({ id: z.string() }) }).parse(body)
    return signInAgain(services, account.id)
  }
  beforeEach(async () => {
    now = noon
    push.service.answer = 201
    owner = await newOwner()
    browsers += 1
    browser = newBrowser(`${push.origin}/send/${browsers}`)
    await owner.call(create, browser.subscription)
    await round(0)
    push.received.length = 0
  })
  const subscriptions = async () => listed.parse((await owner.call(list, {})).body)
  const ask = async () => {
    const { body } = await owner.call(createKey, {
      name: 'Invoice\u202E bot',
      publicKey: (await newAgent()).jwk.x,
      scopes: ['wallets:transfer'],
      policy: {
        perTransaction: { max: '50' },
        dailyBudget: { max: '100' },
        categories: { allow: ['transfer'] },
      },
    })
    const found = await findKey(database(), { id: String(body.agentId) })
    if (found === undefined) throw new Error('the key is missing')
    const asKey = async (tool: typeof request | typeof withdraw, input: object) =>
      (await run(tool, buildCall(services, { kind: 'key', ...found }, { now }), input)).body
    const input = { destination: payee, amount: '120.5', token: 'USDC' }
    const asked = await asKey(request, { operation: 'wallets_transfer', input, reason: 'Invoice 17.' })
    const id = String(asked.approvalId)
    return { id, takeBack: () => asKey(withdraw, { id }) }
  }
  /** One round of publishing, and of several gateways that send. */
  const round = async (seconds: number, gateways = 1) => {
    now = after(seconds)
    await publishNewEvents(services, new AbortController().signal)
    await Promise.all(
      Array.from({ length: gateways }, async () => Promise.all(await startPushes(services, 20))),
    )
  }
  const waiting = async () =>
    (
      await database()
        .kysely.selectFrom('owner_push')
        .select('tries')
        .where('account_id', '=', owner.accountId)
        .execute()
    ).map(({ tries }) => tries)

  it('tells of a request for approval, encrypted for the browser and signed by the gateway, once', async () => {
    const { id } = await ask()
    await round(1, 3)
    await round(2)
    expect(push.received).toHaveLength(1)
    const [received] = push.received
    if (received === undefined) throw new Error('nothing was received')
    expect(browser.read(received)).toEqual({
      title: 'An agent asks for your approval',
      body: `“Invoice bot”: transfer from the wallet, 120.5 USDC to ${payee}.`,
      url: `/approvals/${id}`,
    })
    expect(received.headers).toMatchObject({
      'content-encoding': 'aes128gcm',
      ttl: '86400',
      urgency: 'high',
      topic: expect.stringMatching(/^[\w-]{32}$/),
    })
    const claims = await verifyVapid(received, (await subscriptions()).publicKey, push.origin)
    expect(claims.sub).toBe('https://bursar.example')
    expect(await waiting()).toEqual([])
  })

  it('tells each browser of a lock', async () => {
    const second = newBrowser(`${push.origin}/send/second-${browsers}`)
    await owner.call(create, second.subscription)
    await lockAccount(database(), { accountId: owner.accountId, reason: 'person', at: noon })
    await round(1)
    expect(push.received).toHaveLength(2)
    const texts = push.received.map((received) => {
      try {
        return message.parse(browser.read(received))
      } catch {
        return message.parse(second.read(received))
      }
    })
    expect(texts.map(({ url }) => url)).toEqual(['/sign-in', '/sign-in'])
    expect(texts[0]?.title).toBe('Your Bursar account was locked')
  })

  it('is not sent for a request that was withdrawn', async () => {
    await (await ask()).takeBack()
    await round(1)
    expect([push.received.length, await waiting()]).toEqual([0, []])
  })

  it('is tried again later when the push service fails, and given up after a day', async () => {
    push.service.answer = 503
    await lockAccount(database(), { accountId: owner.accountId, reason: 'person', at: noon })
    await round(1)
    await round(2)
    expect([push.received.length, await waiting()]).toEqual([1, [1]])
    await round(20)
    expect(push.received).toHaveLength(2)
    push.service.answer = 201
    await round(60)
    expect([push.received.length, await waiting()]).toEqual([3, []])
    push.service.answer = 500
    await database()
      .kysely.updateTable('account')
      .set({ status: 'active' })
      .where('id', '=', owner.accountId)
      .execute()
    await round(61)
    await round(61 + 86_400)
    expect(await waiting()).toEqual([])
  })

  it.each([404, 410])('ends the subscription when the push service answers %i', async (status) => {
    push.service.answer = status
    await ask()
    await round(1)
    expect((await subscriptions()).subscriptions).toEqual([])
    expect(await waiting()).toEqual([])
  })

  it('goes to the account that subscribed a browser last, to ten at most, and to none that was removed', async () => {
    const other = await newOwner()
    await other.call(create, browser.subscription)
    expect((await subscriptions()).subscriptions).toEqual([])
    for (let count = 0; count < 11; count += 1)
      await owner.call(create, newBrowser(`${push.origin}/many/${browsers}/${count}`).subscription)
    const { subscriptions: ten } = await subscriptions()
    expect(ten).toHaveLength(10)
    expect(ten[0]?.host).toBe(new URL(push.origin).host)
    const id = ten[0]?.id
    await expect(other.call(remove, { id })).rejects.toMatchObject({ code: 'not_found' })
    await owner.call(remove, { id })
    expect((await subscriptions()).subscriptions).toHaveLength(9)
  })

  it.each([
    ['it signs out', (person: SignedIn) => person.call(logout, {})],
    ['all others are signed out', () => owner.call(revoke, { id: 'others' })],
    [
      'all others are signed out after it expired',
      async ({ token }) => {
        await database()
          .kysely.updateTable('session')
          .set({ expires_at: after(-1) })
          .where('id', '=', String(decodeJwt(token).sid))
          .execute()
        await owner.call(revoke, { id: 'others' })
      },
    ],
    [
      'the account is recovered',
      () => unlockAccount(database(), { accountId: owner.accountId, at: after(1) }),
    ],
    [
      '30 days have passed',
      () =>
        database()
          .kysely.updateTable('push_subscription')
          .set({ created_at: after(-30 * 24 * 60 * 60) })
          .where('account_id', '=', owner.accountId)
          .execute(),
    ],
  ])('ends with the session that subscribed its browser, when %s, even for what waits', async (_, end) => {
    const second = await signInAgain(services, owner.accountId)
    const theirs = newBrowser(`${push.origin}/send/ended-${browsers}`)
    await second.call(create, theirs.subscription)
    push.service.answer = 503
    await ask()
    await round(0)
    push.received.length = 0
    push.service.answer = 201
    await ask()
    await end(second)
    await round(61)
    expect(push.received.filter(({ path }) => path.includes('/ended-'))).toEqual([])
    await sweep({ ...services, settings: { eventDays: 30 } })
    const { hosts } = await database()
      .kysely.selectFrom('push_subscription')
      .select(({ fn }) => fn.countAll<bigint>().as('hosts'))
      .where('account_id', '=', owner.accountId)
      .executeTakeFirstOrThrow()
    const left = await signInAgain(services, owner.accountId, after(62))
    expect(listed.parse((await left.call(list, {})).body).subscriptions).toHaveLength(Number(hosts))
  })

  it('is of the lock alone while the account is locked', async () => {
    await ask()
    await publishNewEvents(services, new AbortController().signal)
    await lockAccount(database(), { accountId: owner.accountId, reason: 'person', at: noon })
    await round(1)
    await round(2)
    expect(push.received.map((received) => message.parse(browser.read(received)).url)).toEqual(['/sign-in'])
    expect(await waiting()).toEqual([])
  })

  it('is not silenced by a stolen session: removal, replacement and fewer mails need the second factor', async () => {
    const secret = readSecret((await owner.call(mfa, { action: 'enroll' })).body.otpauthUri)
    await owner.call(mfa, { action: 'activate', code: computeTotp(secret, noon) })
    const stolen = await signInAgain(services, owner.accountId)
    const [own] = (await subscriptions()).subscriptions
    for (let count = 1; count < 10; count += 1)
      await owner.call(create, newBrowser(`${push.origin}/own/${browsers}/${count}`).subscription)
    const eleventh = newBrowser(`${push.origin}/stolen/${browsers}/10`).subscription
    await owner.call(update, { approvals: 'immediately' })
    for (const [tool, input] of [
      [create, eleventh],
      [remove, { id: own?.id }],
      [update, { approvals: 'daily' }],
      [update, { approvals: 'off' }],
    ] as const)
      await expect(stolen.call(tool, input)).rejects.toMatchObject({ code: 'step_up_required' })
    expect((await subscriptions()).subscriptions).toContainEqual(own)
    // The browser itself may go on in a new session.
    await stolen.call(create, browser.subscription)
    await owner.call(update, { approvals: 'off' })
    expect((await stolen.call(update, { approvals: 'immediately' })).body).toEqual({
      approvals: 'immediately',
    })
    await owner.call(create, eleventh)
    expect((await subscriptions()).subscriptions).toHaveLength(10)
  })

  it('is never sent to a private address, and its keys are checked', async () => {
    const { endpoint, keys } = browser.subscription
    for (const refused of ['https://10.0.0.1/x', 'http://push.example.com/x', 'https://169.254.169.254/'])
      await expect(owner.call(create, { endpoint: refused, keys })).rejects.toMatchObject({
        code: 'url_not_allowed',
      })
    const offCurve = Buffer.alloc(65, 4).toString('base64url')
    for (const wrong of [
      { ...keys, p256dh: offCurve },
      { ...keys, auth: 'AAAA' },
    ])
      await expect(owner.call(create, { endpoint, keys: wrong })).rejects.toMatchObject({
        code: 'invalid_request',
      })
  })

  it('has an endpoint that the database holds sealed only', async () => {
    const rows = await database()
      .kysely.selectFrom('push_subscription')
      .selectAll()
      .where('account_id', '=', owner.accountId)
      .execute()
    expect(rows).toHaveLength(1)
    const text = Buffer.from(rows[0]?.sealed ?? []).toString('latin1')
    expect(text).not.toContain(push.origin)
    expect(JSON.stringify(rows)).not.toContain('/send/')
  })
})
