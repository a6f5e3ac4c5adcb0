/** Channels over HTTP: what they announce, to strict servers of Slack and Telegram and to mailboxes, and what they never say. */
import { afterAll, beforeEach, expect, it } from 'vitest'
import { z } from 'zod'
import { newAgent } from '../../journeys/agent.ts'
import { overBothEngines } from '../../journeys/both-engines.ts'
import {
  enrollMfa,
  newGuest,
  newMailbox,
  type Person,
  requestJson,
  signInByEmail,
} from '../../journeys/people.ts'
import {
  BOT_TOKEN,
  CHAT,
  markedTexts,
  plainTexts,
  startChatServices,
  WEBHOOK_SECRET,
} from './chat-services.ts'
import { lies } from './lies.ts'

const payee = `0x${'1'.repeat(40)}`
const SLOW = { timeout: 30_000, interval: 200 }
const outbox = z.object({ messages: z.array(z.object({ destination: z.string(), text: z.string() })) })
const channel = z.looseObject({ id: z.string(), type: z.string(), status: z.string(), label: z.string() })
const services = await startChatServices()
afterAll(() => services.close())

const env = { TELEGRAM_API_URL: services.origin, RATE_GUESTS: '1000/60', RATE_MUTATIONS: '10000/60' }
overBothEngines('channels', env, ({ gateway }) => {
  const origin = () => gateway().origin
  beforeEach(() => services.clear())
  const newPerson = async (mailbox: string) => {
    const person = await signInByEmail(origin(), mailbox)
    expect((await person.send('POST', '/sandbox/faucet', {})).status).toBe(200)
    return person
  }
  const add = (person: Pick<Person, 'send'>, body: object) =>
    person.send('POST', '/api/notifications/channels', body)
  const addSlack = (person: Person, more: object = {}) =>
    add(person, { type: 'slack', webhookUrl: services.webhookUrl, ...more })
  const addTelegram = (person: Person) => add(person, { type: 'telegram', botToken: BOT_TOKEN, chatId: CHAT })
  const list = async (person: Person) =>
    z.array(channel).parse((await person.send('GET', '/api/notifications/channels')).body.channels)
  const inbox = async (person: Person) =>
    z
      .array(
        z.looseObject({
          status: z.string(),
          title: z.string().nullable(),
          lines: z.array(z.string()).nullable(),
        }),
      )
      .parse((await person.send('GET', '/api/notifications/messages')).body.messages)
  const newKey = async (owner: Person, name = 'Invoice bot', policy: object = {}) => {
    const agent = await newAgent()
    const { status, body } = await owner.send('POST', '/api/agents/keys', {
      name,
      publicKey: agent.jwk,
      scopes: ['wallets:transfer'],
      policy: {
        perTransaction: { max: '50' },
        dailyBudget: { max: '100' },
        monthlyBudget: { max: '500' },
        categories: { allow: ['transfer'] },
        approval: { above: '10' },
        ...policy,
      },
    })
    expect(status).toBe(200)
    return {
      agentId: String(body.agentId),
      pay: (amount: string, more: object = {}) => pay(agent, amount, more),
    }
  }
  const pay = async (agent: Awaited<ReturnType<typeof newAgent>>, amount: string, more: object) => {
    const response = await agent.fetch({
      method: 'POST',
      url: `${origin()}/api/wallets/transfer`,
      body: JSON.stringify({ destination: payee, amount, signature: 'sandbox', ...more }),
      idempotencyKey: `pay-${amount}-${Math.random()}`,
    })
    return z.looseObject({ approvalId: z.string().optional() }).parse(await response.json())
  }

  it('announce who asks, what, how much, to whom, what is left, and the page where it is decided', async () => {
    const owner = await newGuest(origin())
    const made = await addSlack(owner, { name: 'Team' })
    expect(made).toMatchObject({
      status: 200,
      body: { type: 'slack', name: 'Team', status: 'active', problem: null },
    })
    expect((await addTelegram(owner)).status).toBe(200)
    const key = await newKey(owner)
    const { approvalId } = await key.pay('25.50', { reason: 'Invoice 17.' })
    await expect
      .poll(() => [services.slack.received.length, services.telegram.received.length], SLOW)
      .toEqual([1, 1])
    expect([services.slack.refused, services.telegram.refused]).toEqual([[], []])
    const [slack, telegram] = [services.slack.received[0], services.telegram.received[0]]
    if (slack === undefined || telegram === undefined) throw new Error('nothing was received')
    const lines = [
      'Agent: Invoice bot',
      'Asks for: transfer from the wallet',
      'Amount: 25.5 USDC (25.5 USD)',
      `To: ${payee}`,
      'Left afterwards: 74.5 USD today, 474.5 USD this month',
      'Its reason, in its own words: Invoice 17.',
    ]
    const page = new RegExp(`https?://[^|>\\s]+/approvals/${approvalId}`)
    expect(plainTexts(slack)[0]).toBe('An agent asks for your approval')
    for (const line of lines) {
      expect(plainTexts(slack)[1]?.split('\n')).toContain(line)
      expect(telegram.text.split('\n')).toContain(line)
    }
    expect(markedTexts(slack).join('')).toMatch(page)
    expect(telegram.text).toMatch(page)
    // Nothing in a message decides: no buttons, and a link that is a page of the console and nothing more.
    expect(JSON.stringify([slack, telegram])).not.toMatch(/"(actions|button|reply_markup)"|[?&]|token/)
    const opened = await requestJson(origin(), 'GET', `/api/approvals/${approvalId}`)
    expect(opened.status).toBe(401)
    await expect
      .poll(async () => (await inbox(owner)).map(({ status }) => status), SLOW)
      .toEqual(['sent', 'sent'])
    const [entry] = await inbox(owner)
    expect(entry).toMatchObject({
      kind: 'approval.requested',
      title: 'An agent asks for your approval',
      path: `/approvals/${approvalId}`,
    })
    expect(entry?.lines).toContain('Left afterwards: 74.5 USD today, 474.5 USD this month')
    expect(await list(owner)).toMatchObject([
      { type: 'telegram', label: `chat ${CHAT}`, lastSentAt: expect.any(String) },
      { type: 'slack', lastSentAt: expect.any(String) },
    ])
  }, 90_000)

  it('say nothing of a request that was decided before, and nothing to a channel that was removed', async () => {
    const owner = await newGuest(origin())
    services.slack.troubles.push({ status: 503 })
    const { body } = await addSlack(owner)
    const key = await newKey(owner)
    const { approvalId } = await key.pay('11')
    await expect.poll(() => services.slack.attempts.length, SLOW).toBe(1)
    await owner.send('POST', `/api/approvals/${approvalId}`, { decision: 'reject' })
    await expect.poll(async () => (await inbox(owner)).length, SLOW).toBe(0)
    expect(services.slack.received).toEqual([])
    expect((await owner.send('DELETE', `/api/notifications/channels/${String(body.id)}`)).status).toBe(200)
    expect(await list(owner)).toEqual([])
    await key.pay('12')
    await new Promise((resolve) => setTimeout(resolve, 2_500))
    expect(services.slack.received).toEqual([])
    expect((await owner.send('DELETE', `/api/notifications/channels/${String(body.id)}`)).status).toBe(404)
  }, 90_000)

  it('try again within 15 seconds, wait as long as they are told, and show the owner what fails', async () => {
    const owner = await newGuest(origin())
    expect((await addSlack(owner)).status).toBe(200)
    expect((await addTelegram(owner)).status).toBe(200)
    services.slack.troubles.push({ status: 500 })
    services.telegram.troubles.push({ status: 429, retryAfter: 8 })
    const key = await newKey(owner)
    await key.pay('13')
    await expect.poll(() => services.slack.received.length, SLOW).toBe(1)
    const [first = 0, second = 0] = services.slack.attempts
    expect(second - first).toBeGreaterThan(3_000)
    expect(second - first).toBeLessThan(15_000)
    await expect.poll(() => services.telegram.received.length, SLOW).toBe(1)
    const [asked = 0, again = 0] = services.telegram.attempts
    expect(again - asked).toBeGreaterThan(7_000)
    // A webhook that Slack has deleted.
    const gone = await add(owner, {
      type: 'slack',
      webhookUrl: `${services.origin}/services/T0001/B0001/gone`,
    })
    await key.pay('14')
    const find = async () => (await list(owner)).find(({ id }) => id === gone.body.id)
    await expect.poll(find, { timeout: 60_000, interval: 500 }).toMatchObject({
      status: 'failing',
      problem: 'no_service',
      failingSince: expect.any(String),
    })
    await owner.send('DELETE', `/api/notifications/channels/${String(gone.body.id)}`)
  }, 150_000)

  it('put what waited together into one message, each with its own page', async () => {
    const owner = await newGuest(origin())
    expect((await addSlack(owner)).status).toBe(200)
    const key = await newKey(owner)
    services.slack.troubles.push({ status: 503 })
    const ids: string[] = []
    for (const amount of ['21', '22', '23', '24', '25']) ids.push(String((await key.pay(amount)).approvalId))
    await expect.poll(() => services.slack.received.length, SLOW).toBeGreaterThan(0)
    await expect
      .poll(async () => (await inbox(owner)).map(({ status }) => status), SLOW)
      .toEqual(ids.map(() => 'sent'))
    const links = services.slack.received.flatMap((message) => markedTexts(message)).join(' ')
    for (const id of ids) expect(links.split(id)).toHaveLength(2)
    expect(services.slack.received.length).toBeLessThan(ids.length)
    expect(services.slack.refused).toEqual(['service_error'])
    expect(services.slack.received.map((message) => plainTexts(message)[0])).toContainEqual(
      expect.stringMatching(/^\d things need your attention$/),
    )
  }, 60_000)

  it('tell of a lock, and of nothing else while the account is locked', async () => {
    const owner = await newGuest(origin())
    expect((await addSlack(owner)).status).toBe(200)
    services.slack.troubles.push({ status: 503 })
    await (await newKey(owner)).pay('26')
    await expect.poll(() => services.slack.attempts.length, SLOW).toBe(1)
    expect((await owner.send('POST', '/api/security/lock', {})).status).toBe(200)
    await expect.poll(() => services.slack.received.length, SLOW).toBe(1)
    const [message] = services.slack.received
    expect(message === undefined ? [] : plainTexts(message)).toEqual([
      'Your Bursar account was locked',
      expect.stringContaining('by a signed-in person'),
    ])
  }, 60_000)

  it('write what strangers wrote as text: no mention, link, markup or header', async () => {
    const mailbox = newMailbox('ada')
    const owner = await newPerson(mailbox)
    for (const made of [
      await addSlack(owner),
      await addTelegram(owner),
      await add(owner, { type: 'email', address: mailbox }),
    ])
      expect(made.status).toBe(200)
    for (const lie of lies.slice(0, 3)) {
      services.clear()
      // The name of the agent and its reason are what a stranger writes.
      const key = await newKey(owner, lie.slice(0, 60))
      await key.pay('15', { reason: `${lie}\n${lies.slice(3, 9).join(' ')}`.slice(0, 140) })
      await expect
        .poll(() => [services.slack.received.length, services.telegram.received.length], SLOW)
        .toEqual([1, 1])
      expect([services.slack.refused, services.telegram.refused]).toEqual([[], []])
      const [slack, telegram] = [services.slack.received[0], services.telegram.received[0]]
      if (slack === undefined || telegram === undefined) throw new Error('nothing was received')
      for (const text of plainTexts(slack)) expect(text).not.toMatch(/[<>]|https?:\/\/|evil\.example/)
      expect(markedTexts(slack)).toHaveLength(1)
      expect(markedTexts(slack)[0]).toMatch(/^<[^<>|]+\/approvals\/appr_\w+\|Open in Bursar>$/)
      expect(telegram.text).not.toMatch(/evil\.example|@\w/)
      expect(telegram.parse_mode).toBeUndefined()
    }
  }, 180_000)

  it('mail requests for approval to an own address once, and to no other address', async () => {
    const mailbox = newMailbox('grace')
    const owner = await newPerson(mailbox)
    const other = await add(owner, { type: 'email', address: 'somebody-else@example.com' })
    expect(other).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
    const strangers = newMailbox('eve')
    await signInByEmail(origin(), strangers)
    expect((await add(owner, { type: 'email', address: strangers })).status).toBe(400)
    const made = await add(owner, { type: 'email', address: mailbox.toUpperCase() })
    expect(made).toMatchObject({ status: 200, body: { type: 'email' } })
    expect(String(made.body.label)).not.toContain(mailbox.split('@')[0])
    expect((await add(owner, { type: 'email', address: mailbox })).status).toBe(409)
    await owner.send('PATCH', '/api/notifications/settings', { approvals: 'off' })
    const { approvalId } = await (await newKey(owner)).pay('16.25')
    const mails = async () => {
      const { body } = await requestJson(origin(), 'GET', '/sandbox/outbox')
      return outbox
        .parse(body)
        .messages.filter(({ destination, text }) => destination === mailbox && text.includes('16.25'))
    }
    await expect.poll(async () => (await mails()).length, SLOW).toBe(1)
    const [mail] = await mails()
    expect(mail?.text).toContain('Left afterwards: 83.75 USD today')
    expect(mail?.text).toMatch(new RegExp(`https?://\\S+/approvals/${approvalId}\\s`))
    await new Promise((resolve) => setTimeout(resolve, 3_000))
    expect(await mails()).toHaveLength(1)
  }, 90_000)

  it('warn once that four fifths of a budget are used, and again of a raised one', async () => {
    const owner = await newGuest(origin())
    expect((await addSlack(owner)).status).toBe(200)
    const budgets = {
      perTransaction: { max: '8' },
      dailyBudget: { max: '10' },
      monthlyBudget: { max: '1000' },
      approval: { above: '8' },
    }
    const key = await newKey(owner, 'Shopper', budgets)
    const warnings = () =>
      services.slack.received
        .flatMap((message) => plainTexts(message))
        .filter((text) => text.startsWith('“Shopper”'))
    await key.pay('7.50')
    await new Promise((resolve) => setTimeout(resolve, 7_000))
    expect(warnings()).toEqual([])
    await key.pay('1')
    await expect.poll(warnings, SLOW).toEqual(['“Shopper” has used 8.5 of its 10 USD of today.'])
    await key.pay('1')
    await new Promise((resolve) => setTimeout(resolve, 7_000))
    expect(warnings()).toHaveLength(1)
    const raised = await owner.send('PATCH', `/api/agents/keys/${key.agentId}`, {
      policy: {
        categories: { allow: ['transfer'] },
        ...budgets,
        dailyBudget: { max: '11' },
      },
    })
    expect(raised.status, JSON.stringify(raised.body)).toBe(200)
    await expect.poll(warnings, SLOW).toHaveLength(2)
    expect(warnings()[1]).toContain('9.5 of its 11 USD')
  }, 120_000)

  it('are the owner’s alone, need a recent proof, and go to the public internet or, in the sandbox, to this machine', async () => {
    const mailbox = newMailbox('ada')
    const owner = await signInByEmail(origin(), mailbox)
    await enrollMfa(owner)
    const { body } = await addSlack(owner)
    const id = String(body.id)
    const stolen = await signInByEmail(origin(), mailbox)
    for (const refused of [
      await addTelegram(stolen),
      await stolen.send('DELETE', `/api/notifications/channels/${id}`),
    ])
      expect([refused.status, refused.body.code]).toEqual([401, 'step_up_required'])
    const other = await newGuest(origin())
    expect((await other.send('DELETE', `/api/notifications/channels/${id}`)).status).toBe(404)
    expect(await list(other)).toEqual([])
    expect((await requestJson(origin(), 'GET', '/api/notifications/channels')).status).toBe(401)
    for (const webhookUrl of [
      'http://hooks.slack.com/services/T/B/x',
      'https://10.0.0.1/services/T/B/x',
      'https://169.254.169.254/latest',
      'https://user:pass@hooks.slack.com/x',
      'https://localtest',
      'file:///etc/passwd',
    ])
      expect(await add(owner, { type: 'slack', webhookUrl })).toMatchObject({
        status: 400,
        body: { code: 'url_not_allowed' },
      })
    for (const wrong of [
      { type: 'slack' },
      { type: 'slack', webhookUrl: services.webhookUrl, chatId: CHAT },
      { type: 'telegram', botToken: '1:a/../b', chatId: CHAT },
      { type: 'telegram', botToken: BOT_TOKEN, chatId: 'all of them' },
      { type: 'telegram', botToken: BOT_TOKEN },
      { type: 'sms', address: mailbox },
    ])
      expect((await add(owner, wrong)).status, JSON.stringify(wrong)).toBe(400)
    for (let count = 1; count < 10; count += 1) expect((await addTelegram(owner)).status).toBe(200)
    expect(await addTelegram(owner)).toMatchObject({ status: 409, body: { code: 'conflict' } })
  }, 60_000)

  it('never show their secrets: in no answer, journal, log or error', async () => {
    const owner = await newGuest(origin())
    const answers = [
      await addSlack(owner),
      await addTelegram(owner),
      await addSlack(owner, { name: 'again' }),
    ]
    answers.push(
      await add(owner, { type: 'slack', webhookUrl: `http://hooks.slack.com/services/${WEBHOOK_SECRET}` }),
      await add(owner, { type: 'telegram', botToken: `${BOT_TOKEN}/`, chatId: CHAT }),
      await owner.send('GET', '/api/notifications/channels'),
      await owner.send('GET', '/api/security/journal'),
    )
    services.slack.troubles.push({ status: 500 }, { status: 404, code: `gone ${WEBHOOK_SECRET}` })
    services.telegram.troubles.push({ status: 502 })
    await (await newKey(owner)).pay('17')
    await expect.poll(() => services.telegram.received.length, SLOW).toBe(1)
    answers.push(
      await owner.send('GET', '/api/notifications/channels'),
      await owner.send('GET', '/api/notifications/messages'),
      await owner.send('GET', '/api/events'),
    )
    for (const text of [JSON.stringify(answers), gateway().output()])
      for (const secret of [WEBHOOK_SECRET, BOT_TOKEN, 'AAtelegramBot']) expect(text).not.toContain(secret)
  }, 90_000)
})
