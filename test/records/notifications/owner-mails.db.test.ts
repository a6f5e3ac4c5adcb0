/** Mails to owners about events: what they tell, how many there are, and that each event is mailed once. */
import { sql } from 'kysely'
import { beforeAll, beforeEach, expect, it } from 'vitest'
import { z } from 'zod'
import { newId } from '../../../src/core/base/ids.ts'
import { createAskOwner } from '../../../src/kernel/ask-owner.ts'
import type { Services } from '../../../src/kernel/context.ts'
import { run } from '../../../src/kernel/run.ts'
import { parseDestination, sealAddress } from '../../../src/people/identity/codes/destinations.ts'
import { claimDestination } from '../../../src/people/identity/codes/login-destinations.ts'
import { readOutbox } from '../../../src/people/identity/codes/outbox.ts'
import { lockAccount } from '../../../src/people/identity/locks.ts'
import { findKey } from '../../../src/people/identity/store.ts'
import { createSmtpMessages } from '../../../src/providers/messages/smtp.ts'
import { claimMails } from '../../../src/records/notifications/queue.ts'
import { mailOwners } from '../../../src/server/jobs/mail-owners.ts'
import { publishNewEvents } from '../../../src/server/jobs/publish-events.ts'
import createKey from '../../../tools/agents/keys/create.ts'
import setCaps from '../../../tools/agents/policy/set.ts'
import request from '../../../tools/approvals/request.ts'
import withdraw from '../../../tools/approvals/withdraw.ts'
import guest from '../../../tools/auth/guest.ts'
import { tools } from '../../../tools/index.ts'
import get from '../../../tools/notifications/settings/get.ts'
import update from '../../../tools/notifications/settings/update.ts'
import { onBothEngines } from '../../engines.ts'
import { newAgent } from '../../journeys/agent.ts'
import { buildCall, noon, origin, servicesOn } from '../../kernel/scene.ts'
import { type SignedIn, signInAgain } from '../../people/identity/signed-in.ts'
import { closedPort, startSmtp } from '../../smtp.ts'

const after = (seconds: number) => new Date(noon.getTime() + seconds * 1000)
const payee = `0x${'1'.repeat(40)}`
const MAX_MESSAGES = 100
let people = 0

onBothEngines('a mail to an owner', (database) => {
  let services: Services
  let owner: SignedIn
  let address: string
  let now = noon

  beforeAll(async () => {
    services = await servicesOn(database(), { askOwner: createAskOwner(tools), clock: () => now })
  })
  const register = async () => {
    const { body } = await owner.call(createKey, {
      name: 'Invoice\u202E bot',
      publicKey: (await newAgent()).jwk.x,
      scopes: ['wallets:transfer'],
      policy: {
        perTransaction: { max: '50' },
        dailyBudget: { max: '100' },
        weeklyBudget: { max: '300' },
        categories: { allow: ['transfer'] },
      },
    })
    return String(body.agentId)
  }
  beforeEach(async () => {
    now = noon
    const { body } = await run(guest, buildCall(services, { kind: 'public' }), {})
    const { account } = z.object({ account: z.object({ id: z.string() }) }).parse(body)
    owner = await signInAgain(services, account.id)
    people += 1
    address = `ada${people}@example.com`
    const given = await parseDestination(services.settings, { channel: 'email', destination: address })
    const sealedAddress = sealAddress(services.settings, given)
    await claimDestination(database(), { ...given, sealedAddress, accountId: account.id, at: noon })
  })

  const asKey = async (tool: typeof request | typeof withdraw, id: string, input: object) => {
    const found = await findKey(database(), { id })
    if (found === undefined) throw new Error('the key is missing')
    const { body } = await run(tool, buildCall(services, { kind: 'key', ...found }, { now }), input)
    return z.looseObject({ approvalId: z.string() }).parse(body).approvalId
  }
  const ask = (id: string, amount = '120.5', reason = 'Invoice 17 is due today.') =>
    asKey(request, id, {
      operation: 'wallets_transfer',
      input: { destination: payee, amount, token: 'USDC' },
      reason,
    })
  /** One round of publishing, and of the mailers of some gateways at once. */
  const round = async (seconds: number, changes: Partial<Services> = {}, gateways = 1) => {
    now = after(seconds)
    await publishNewEvents(services, new AbortController().signal)
    await Promise.all(Array.from({ length: gateways }, () => mailOwners({ ...services, ...changes })))
  }
  const mails = async () =>
    (await readOutbox(database(), { most: MAX_MESSAGES }))
      .filter(({ destination, text }) => destination === address && !text.startsWith('Mails about'))
      .map(({ text }) => text)
  const waiting = async () =>
    database()
      .kysely.selectFrom('owner_mail')
      .select(['type', 'due_at'])
      .where('account_id', '=', owner.accountId)
      .where('sent_at', 'is', null)
      .execute()

  it('says who asks for what, what is left, and why, with one link', async () => {
    await owner.call(setCaps, { dailyBudget: { max: '80' } })
    const id = await ask(await register())
    await round(1)
    expect(await mails()).toEqual([
      [
        'Agent “Invoice bot” asks for your approval: transfer from the wallet.',
        'Amount: 120.5 USDC (120.5 USD)',
        `To: ${payee}`,
        'Budget left: 100 USD today, 300 USD this week, 80 USD today for all agents together',
        'The agent’s reason, in its own words: “Invoice 17 is due today.”',
        'Expires: 2026-11-21T12:00:00.000Z',
        '',
        `Approve or reject it: ${origin}/approvals/${id}`,
        '',
      ].join('\n'),
    ])
  })

  it('names all of twenty requests at once, of which an address gets six mails an hour', async () => {
    const keys = [await register(), await register()]
    for (const key of keys) for (let index = 0; index < 10; index += 1) await ask(key, `${60 + index}`)
    await round(1)
    const [mail = '', ...others] = await mails()
    expect(others).toEqual([])
    expect(mail.match(/^\d+\. Agent/gm)).toHaveLength(20)
    for (let index = 0; index < 10; index += 1)
      expect(mail.match(new RegExp(`Amount: ${60 + index} USDC`, 'g'))).toHaveLength(2)
    expect(mail.match(/https?:/g)).toHaveLength(1)
    expect(mail).toContain(`${origin}/approvals\n`)

    const key = await register()
    let last: string | null = null
    for (let step = 1; step <= 11; step += 1) {
      now = after(step * 300)
      if (last !== null) await asKey(withdraw, key, { id: last })
      last = await ask(key, `${100 + step}`)
      await round(step * 300 + 1)
    }
    expect(await mails()).toHaveLength(6)
    await round(2 * 3_600)
    expect(await mails()).toHaveLength(7)
    expect((await mails())[0]).toContain('Amount: 111 USDC')
    expect(await waiting()).toEqual([])
  })

  it('is sent by the one gateway that claims it, and by another if that one crashes', async () => {
    await ask(await register())
    now = after(1)
    await publishNewEvents(services, new AbortController().signal)
    await database().transaction(async (claiming) => {
      const claimed = await claimMails(claiming, { limit: 100, at: now })
      expect(claimed.filter(([{ account_id: id }]) => id === owner.accountId)).toHaveLength(1)
      // PGlite has one connection: nothing runs beside a transaction.
      if (database().engine === 'postgres') await mailOwners(services)
    })
    await round(2, {}, 8)
    expect(await mails()).toEqual([])
    await round(62, {}, 8)
    await round(200, {}, 8)
    expect(await mails()).toHaveLength(1)
  })

  it('is not sent about a request that was withdrawn before', async () => {
    const key = await register()
    await asKey(withdraw, key, { id: await ask(key) })
    await round(1)
    expect(await mails()).toEqual([])
    expect(await waiting()).toEqual([])
  })

  it('is collected for 8 o’clock, or not written, as the owner chooses', async () => {
    const key = await register()
    expect((await owner.call(get, {})).body).toEqual({ approvals: 'immediately' })
    expect((await owner.call(update, { approvals: 'daily' })).body).toEqual({ approvals: 'daily' })
    await ask(key, '60')
    await round(1)
    await ask(key, '61')
    await round(60)
    expect(await mails()).toEqual([])
    const morning = new Date('2026-11-21T08:00:00.000Z')
    expect((await waiting()).map(({ due_at }) => due_at)).toEqual([morning, morning])
    await round((morning.getTime() - noon.getTime()) / 1000)
    expect(await mails()).toEqual([expect.stringMatching(/Amount: 61 USDC[\s\S]*Amount: 60 USDC/)])

    now = noon
    await ask(key, '62')
    await publishNewEvents(services, new AbortController().signal)
    await owner.call(update, { approvals: 'off' })
    expect(await waiting()).toEqual([])
    await ask(key, '63')
    await lockAccount(database(), { accountId: owner.accountId, reason: 'person', at: noon })
    await round(7_200)
    const advice = `Recover it at ${origin}/sign-in.`
    expect(await mails()).toEqual([
      expect.stringContaining('Amount: 61 USDC'),
      expect.stringMatching(/^Your Bursar account was locked by a signed-in person on 2026-11-20/),
    ])
    expect((await mails())[1]).toContain(advice)
    const all = await readOutbox(database(), { most: MAX_MESSAGES })
    expect(
      all.filter(({ text }) => text.startsWith('Mails about requests for approval were reduced')),
    ).toHaveLength(2)
  })

  it('shows a hostile reason as one harmless line, over a real mail server', async () => {
    const smtp = await startSmtp()
    const url = `smtp://127.0.0.1:${smtp.port}`
    const messages = createSmtpMessages({ url, from: 'no-reply@example.com', log: services.log })
    const reason =
      'Now\r\nBcc: eve@evil.example\r\n\r\n<script>x</script> \u202Ehttps://evil.example/a \u0007'
    const id = await ask(await register(), '60', reason)
    await database()
      .kysely.updateTable('approval')
      .set({ reason: reason + 'x'.repeat(10_000) })
      .where('id', '=', id)
      .execute()
    await round(1, { messages })
    await smtp.close()
    expect(smtp.mails).toHaveLength(1)
    const [mail] = smtp.mails
    expect(mail?.to).toEqual([address])
    expect(mail?.headers.get('subject')).toBe('An agent asks for your approval')
    expect(mail?.headers.has('bcc')).toBe(false)
    expect(mail?.headers.get('content-type')).toMatch(/^text\/plain/)
    const text = Buffer.from(mail?.text ?? '', 'latin1').toString()
    const line = text.split(/\r?\n/).find((one) => one.includes('in its own words'))
    const words = 'Now Bcc: eve[at]evil[.]example <script>x</script> https[:]//evil[.]example/a '
    expect(line).toContain(`“${words}xxx`)
    expect([...(line ?? '')].length).toBeLessThan(400)
    expect(text).not.toMatch(/evil\.example/)
  })

  it('is sent later where the mail server is down, for a day, and is then given up', async () => {
    const port = await closedPort()
    const options = { from: 'no-reply@example.com', log: services.log }
    const down = createSmtpMessages({ ...options, url: `smtp://127.0.0.1:${port}` })
    await ask(await register())
    for (const seconds of [1, 2, 20, 60]) await round(seconds, { messages: down })
    expect(await waiting()).toHaveLength(1)
    const smtp = await startSmtp()
    const up = createSmtpMessages({ ...options, url: `smtp://127.0.0.1:${smtp.port}` })
    await round(70, { messages: up })
    expect(smtp.mails).toEqual([])
    await round(600, { messages: up })
    await round(700, { messages: up })
    expect(smtp.mails.map(({ to }) => to)).toEqual([[address]])
    await smtp.close()

    await lockAccount(database(), { accountId: owner.accountId, reason: 'admin', at: noon })
    for (const seconds of [701, 30_000, 86_000]) await round(seconds, { messages: down })
    expect(await waiting()).toHaveLength(1)
    await round(95_000, { messages: down })
    expect(await waiting()).toEqual([])
  })

  it('is sent about missing money, a disabled endpoint and a changed payee', async () => {
    const key = await register()
    const decision = newId('dec', noon)
    const seller = { origin: 'https://seller.example' }
    await database()
      .kysely.insertInto('decision')
      .values({
        id: decision,
        at: noon,
        account_id: owner.accountId,
        key_id: key,
        operation: 'purchases.buy',
        facts: JSON.stringify({ asset: 'USDC', amount: '0.01', seller }),
        verdict: 'deny',
        violations: JSON.stringify([{ rule: 'payee_changed' }]),
      })
      .execute()
    const shortfall = { asset: 'USDC', frozenUnits: '1500000', uncoveredUnits: '0' }
    await sql`
      select event_write(${owner.accountId}, null, 'webhook.disabled', 'webhook_endpoint', 'whe_1', '{}', ${noon}),
        event_write(${owner.accountId}, null, 'wallet.shortfall', 'wallet', 'whe_1', ${JSON.stringify(shortfall)}, ${noon})`.execute(
      database().kysely,
    )
    await round(1)
    expect((await mails()).sort()).toEqual([
      expect.stringMatching(
        /purchase of 0\.01 USDC by your agent “Invoice bot” was denied.*seller\[\.\]example/,
      ),
      expect.stringMatching(/chain holds less USDC.*1\.5 USDC cannot be spent/),
      expect.stringMatching(/^A webhook endpoint that failed for two days was disabled/),
    ])
  })
})
