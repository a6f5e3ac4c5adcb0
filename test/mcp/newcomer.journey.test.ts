/**
 * Tasks of an owner, done by an agent that has read nothing but the texts of the tools and of their answers: it pays what was
 * meant, once, asks its owner at most once a task, and says what is known where it cannot finish.
 */
import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { sharedGateway } from '../journeys/gateway.ts'
import { enrollMfa, newGuest, type Person, requestJson } from '../journeys/people.ts'
import { type Answer, type Newcomer, newNewcomer } from './newcomer.ts'
import { openTransports } from './ways.ts'

const origin = sharedGateway()
const text = z.string()
const payee = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
const movements = z.array(z.object({ kind: text, direction: text, status: text, amount: text, asset: text }))

const scopes = [
  ...['wallets:read', 'wallets:transfer', 'cards:read', 'banking:read', 'banking:pay'],
  ...['investing:read', 'investing:trade', 'purchases:pay'],
]
const policy = {
  perTransaction: { max: '300' },
  dailyBudget: { max: '600' },
  categories: { allow: ['transfer', 'payout', 'invest', 'x402'] },
  approval: { above: '200' },
}

describe.each(['2025', '2026'] as const)('an agent that knows nothing, over MCP of %s,', (era) => {
  const closing: (() => Promise<void>)[] = []
  afterEach(async () => {
    for (const close of closing.splice(0)) await close()
  })

  /** An owner with two saved bank accounts, and a new agent that has read its task. */
  async function hire(task: string) {
    const owner = await newGuest(origin)
    await enrollMfa(owner)
    await owner.send('POST', '/api/banking/recipients', {
      ...{ currency: 'USD', name: 'Acme Inc', country: 'US' },
      account: { routingNumber: '021000021', accountNumber: '123456789', type: 'checking' },
    })
    await owner.send('POST', '/api/banking/recipients', {
      ...{ currency: 'EUR', name: 'Landlord GmbH', country: 'DE' },
      account: { iban: 'DE89370400440532013000' },
    })
    const { body } = await owner.send('POST', '/api/developer/keys', { name: 'Newcomer', scopes, policy })
    const ways = await openTransports({ gateway: { origin }, apiKey: text.parse(body.key) })
    closing.push(ways.close)
    const agent = await newNewcomer(era === '2025' ? ways.old : ways.modern, task)
    const [first = never()] = agent.toolsNamedIn(agent.quote(/call [^\n.:]* first/i))
    const { agentId } = (await agent.call(first)).body
    return { owner, agent, books: readBooks(owner, text.parse(agentId)) }
  }

  /** What the owner sees of the agent. */
  const readBooks = (owner: Person, agentId: string) => ({
    /** What moved: denied calls are listed with an amount of 0. */
    moved: async () => {
      const { body } = await owner.send('GET', `/api/activity?agentId=${agentId}`)
      return movements.parse(body.entries).filter(({ amount }) => amount !== '0')
    },
    untilRecovered: (recourseId: unknown) =>
      expect
        .poll(async () => (await owner.send('GET', `/api/recourse/${recourseId}`)).body.status)
        .toBe('recovered'),
    approvals: async () => {
      const { body } = await owner.send('GET', '/api/approvals')
      return z.array(z.looseObject({ status: text, reason: text.nullable() })).parse(body.approvals)
    },
    /** USDC of the wallet, with what lies in the agent's purse. */
    usdc: async () => {
      const { body } = await owner.send('GET', '/api/wallets')
      const balances = z.array(z.looseObject({ token: text, amount: text })).parse(body.balances)
      const purse = z.array(z.looseObject({ asset: text, amount: text })).parse(body.purse)
      const amounts = [...balances, ...purse.map(({ asset, amount }) => ({ token: asset, amount }))]
      return amounts
        .filter(({ token }) => token === 'USDC')
        .reduce((sum, { amount }) => sum + cents(amount), 0)
    },
    portfolio: async () => {
      // A guest's shares earned dividends before the guest came; they are paid in the first seconds.
      await expect
        .poll(async () =>
          JSON.stringify((await owner.send('GET', '/api/investing/portfolio')).body.dividends),
        )
        .toContain('"paid"')
      const { body } = await owner.send('GET', '/api/investing/portfolio')
      return z
        .looseObject({ cash: text, holdings: z.array(z.looseObject({ symbol: text, qty: text })) })
        .parse(body)
    },
  })

  it('pays a rent of which exactly 5 euros arrive', async () => {
    const task = 'Pay the rent: exactly 5.00 EUR must arrive at Landlord GmbH, whose account is saved.'
    const { agent, books } = await hire(task)
    const before = await books.portfolio()

    const pay = agent.findTool('pay out to a bank account')
    const recipient = await pickRecipient(agent, pay, 'Landlord GmbH')
    const arrives = agent.findMember(pay, /what arrives/)
    const byQuote = agent.findMember(pay, /a quote from/)
    const [ask = never()] = agent.toolsNamedIn(findDescription(pay, byQuote))
    const quoted = await agent.call(ask, { ...recipient, [arrives]: '5.00' })
    expect(quoted.body).toMatchObject({ [arrives]: '5', currency: 'EUR' })
    const paid = await agent.call(pay, {
      ...recipient,
      [byQuote]: quoted.body[byQuote],
      ...newKey(agent, pay),
    })
    const done = await untilEnded(agent, pay, paid)
    expect(done.body).toMatchObject({ status: 'paid', recipientAmount: '5', currency: 'EUR' })

    const { amount, asset } = quoted.body
    expect(await books.moved()).toEqual([
      { kind: 'payout', direction: 'out', status: 'completed', amount, asset },
    ])
    expect(cents((await books.portfolio()).cash)).toBe(cents(before.cash) - cents(text.parse(amount)))
    expect(await books.approvals()).toEqual([])
  })

  it('pays an invoice in full, once, although the answer is lost', async () => {
    const task = 'Pay invoice INV-2041 of Acme Inc by bank: 40.00 USD must arrive, with the invoice number.'
    const { agent, books } = await hire(task)
    const pay = agent.findTool('pay out to a bank account')
    const recipient = await pickRecipient(agent, pay, 'Acme Inc')
    const input = {
      ...recipient,
      [agent.findMember(pay, /what arrives/)]: '40.00',
      [agent.findMember(pay, /shown to the recipient/i)]: 'INV-2041',
      ...newKey(agent, pay),
    }
    await agent.call(pay, input)
    // Its answer was lost on the way.
    agent.quote(/timeout repeat with the same idempotency key/)
    const repeated = await agent.call(pay, input)
    expect(repeated.body).toMatchObject({ replayed: true, recipientAmount: '40' })
    const done = await untilEnded(agent, pay, repeated)
    expect(done.body).toMatchObject({ status: 'paid', reference: 'INV-2041' })

    const { amount } = done.body
    expect(await books.moved()).toEqual([
      { kind: 'payout', direction: 'out', status: 'completed', amount, asset: 'USD' },
    ])
    expect(await books.approvals()).toEqual([])
  })

  it.each([
    ['above the amount that asks', '220', 'approval_required'],
    ['above its limit', '310', 'policy_denied'],
  ])('gets a payment %s approved, with its reason, by asking once', async (_, amount, code) => {
    const task = `Pay ${amount} USDC to ${payee} for the print run.`
    const { owner, agent, books } = await hire(task)
    const pay = agent.findTool('send stablecoins to an address')
    const input = {
      [agent.findMember(pay, /address of the payee/i)]: payee,
      [agent.findMember(pay, /^amount\b/)]: amount,
      [agent.findMember(pay, /purpose/i)]: agent.make('The print run'),
      [agent.findMember(pay, /why, for the owner/i)]: agent.make(
        'The print run is above what I may pay alone.',
      ),
      ...newKey(agent, pay),
    }
    const refused = await agent.call(pay, input)
    expect(refused).toMatchObject({ isError: true, body: { code } })
    const asked = refused.body.approvalId === undefined ? await askFor(agent, pay, input, refused) : refused
    const [poll = never()] = agent.toolsNamedIn(text.parse(asked.body.hint))
    const { approvalId } = asked.body
    agent.quote(/do not call again|do not make the call again/)

    // The owner opens the page that the agent was told to name.
    const url = text.parse(asked.body.approvalUrl)
    const decided = await owner.send('POST', `/api${new URL(url).pathname}`, { decision: 'approve' })
    expect(decided.status).toBe(200)
    const approved = await agent.follow(
      poll,
      idFor(agent, poll, approvalId),
      ({ body }) => body.status !== 'pending',
    )
    expect(approved.body).toMatchObject({ status: 'approved', answer: { status: 'confirmed', amount } })

    expect(await books.moved()).toEqual([
      { kind: 'transfer', direction: 'out', status: 'completed', amount, asset: 'USDC' },
    ])
    expect(await books.usdc()).toBe(cents('1000') - cents(amount))
    expect(await books.approvals()).toMatchObject([
      { status: 'approved', reason: expect.stringMatching(/print run/) },
    ])
  })

  it('pays once for what was not delivered, and says what is known', async () => {
    const { url, price } = await findSeller('hangs-up')
    const { agent, books } = await hire(`Get me what ${url} sells, for at most 0.05 USDC.`)
    const quote = agent.findTool('what a web resource costs')
    expect((await agent.call(quote, { [agent.findMember(quote, /^url\b/i)]: url })).isError).toBe(false)

    const buy = agent.findTool('buy a paid web resource')
    const input = {
      [agent.findMember(buy, /^url\b/i)]: url,
      [agent.findMember(buy, /most you accept/i)]: '0.05',
      ...newKey(agent, buy),
    }
    const first = await agent.call(buy, input)
    expect(first.body.status).toBe('undelivered')
    agent.quote(/`undelivered`: paid, nothing came; repeat with the same idempotency key/)
    const again = await agent.call(buy, input)
    const [read = never()] = agent.toolsNamedIn(buy.description)
    const known = await agent.call(read, idFor(agent, read, first.body.purchaseId))
    expect(known.body).toMatchObject({
      status: 'undelivered',
      charged: price,
      transaction: first.body.transaction,
      attempts: again.body.attempts,
      lastFailure: expect.any(String),
      expiresAt: expect.stringMatching(/Z$/),
    })

    expect(await books.moved()).toEqual([
      { kind: 'purchase', direction: 'out', status: 'undelivered', amount: price, asset: 'USDC' },
    ])
    expect(await books.usdc()).toBe(cents('1000') - cents(price))
    expect(await books.approvals()).toEqual([])
  })

  it.each([
    ['refunds', 'undelivered'],
    ['redirects-inward', 'seller_failed'],
  ])('gets its money back from the seller %s with two calls', async (name, outcome) => {
    const { url } = await findSeller(name)
    const { agent, books } = await hire(`Get me what ${url} sells, for at most 0.05 USDC, or my money back.`)
    const buy = agent.findTool('buy a paid web resource')
    const bought = await buyOnce(agent, buy, url)
    expect([bought.body.status, bought.body.code]).toContain(outcome)

    const told = agent.quote(/If nothing comes: \w+/)
    const { read, recourse } = await openRecourse(agent, told, bought.body.purchaseId)
    // "In a few seconds", as the hint says.
    await books.untilRecovered(recourse.body.recourseId)
    const ended = await agent.call(read, idFor(agent, read, recourse.body.recourseId))
    expect(ended.body).toMatchObject({ status: 'recovered', recovered: '0.01', asset: 'USDC' })
    expect(await books.usdc()).toBe(cents('1000'))
    expect(await books.approvals()).toEqual([])
  })

  it.each([
    ['refuses-refund', ['refused']],
    ['times-out', ['impossible']],
    // Whichever is faster, the payment's cancellation or the seller.
    ['settles-late', ['recovered', 'impossible']],
  ])('learns what became of what the seller %s took', async (name, ends) => {
    const { url } = await findSeller(name)
    const { agent, books } = await hire(`Get me what ${url} sells, for at most 0.05 USDC, or my money back.`)
    const bought = await buyOnce(agent, agent.findTool('buy a paid web resource'), url)
    const told = agent.quote(/If nothing comes: \w+/)
    const { read, recourse } = await openRecourse(agent, told, bought.body.purchaseId)
    const ended = await agent.follow(
      read,
      idFor(agent, read, recourse.body.recourseId),
      ({ body }) => body.status !== 'open',
    )
    expect(ends).toContain(ended.body.status)
    const isBack = ended.body.status === 'recovered'
    if (!isBack) agent.quote(/Tell the owner/)
    expect(await books.usdc()).toBe(cents('1000') - (isBack ? 0 : 1))
  })

  it('finds a double charge on a card, and reports both with their ids', async () => {
    const { owner, agent, books } = await hire(
      'Was I charged twice by anybody on my card? Tell me, change nothing.',
    )
    const listed = z.object({ cards: z.tuple([z.looseObject({ id: text })]) })
    const { id: cardId } = listed.parse((await owner.send('GET', '/api/cards')).body).cards[0]
    for (const [merchant, amount] of [
      ['Corner Shop', '19.99'],
      ['Corner Shop', '4.50'],
      ['Book Shop', '19.99'],
      ['Corner Shop', '19.99'],
    ])
      await requestJson(origin, 'POST', '/sandbox/authorizations', {
        body: { cardId, merchant, amount, mcc: '5411' },
      })

    const list = agent.findTool('list the cards with their limits')
    const cards = listed.parse((await agent.call(list)).body).cards
    const charges = agent.findTool('list the purchases of a card')
    const { body } = await agent.call(charges, idFor(agent, charges, cards[0].id))
    const all = z
      .array(z.looseObject({ id: text, merchant: text, amount: text, status: text, createdAt: text }))
      .parse(body.transactions)
      .filter(({ status }) => status !== 'declined')
    const twice = all.filter((one) =>
      all.some((other) => other !== one && other.merchant === one.merchant && other.amount === one.amount),
    )
    expect(twice).toMatchObject([
      { merchant: 'Corner Shop', amount: '19.99', id: expect.stringMatching(/^tx_/) },
      { merchant: 'Corner Shop', amount: '19.99', id: expect.stringMatching(/^tx_/) },
    ])
    expect(new Set(twice.map(({ id }) => id)).size).toBe(2)

    expect(await books.moved()).toEqual([])
    expect(await books.approvals()).toEqual([])
    expect((await owner.send('GET', '/api/cards')).body).toMatchObject({ cards: [{ status: 'active' }] })
  })

  it('sells half of a holding', async () => {
    const { agent, books } = await hire('Sell half of my VTI at the market.')
    const before = await books.portfolio()
    const trade = agent.findTool('buy or sell a stock')
    const [read = never()] = agent.toolsNamedIn(trade.description)
    const { holdings } = z
      .looseObject({ holdings: z.array(z.looseObject({ symbol: text, qty: text })) })
      .parse((await agent.call(read)).body)
    const held = holdings.find(({ symbol }) => symbol === 'VTI')?.qty ?? never()
    const half = halve(held)
    const order = await agent.call(trade, {
      [agent.findMember(trade, /ticker/i)]: 'VTI',
      [agent.findMember(trade, /^side\b/)]: 'sell',
      [agent.findMember(trade, /^\w+: Shares/)]: agent.make(half),
      ...newKey(agent, trade),
    })
    expect(order).toMatchObject({
      isError: false,
      body: { side: 'sell', qty: half, status: 'filled', next: null },
    })

    const after = await books.portfolio()
    expect(nanos(findHolding(after, 'VTI'))).toBe(nanos(held) - nanos(half))
    expect(cents(after.cash)).toBeGreaterThan(cents(before.cash))
    for (const symbol of ['AAPL', 'O']) expect(findHolding(after, symbol)).toBe(findHolding(before, symbol))
    expect(await books.moved()).toMatchObject([{ kind: 'order', direction: 'in', asset: 'USD' }])
    expect(await books.approvals()).toEqual([])
  })
})

function never(): never {
  throw new Error('the texts do not lead there')
}

const findDescription = (
  tool: { inputSchema: { properties: Record<string, { description: string }> } },
  member: string,
) => tool.inputSchema.properties[member]?.description ?? ''

async function findSeller(name: string): Promise<{ url: string; price: string }> {
  const { body } = await requestJson(origin, 'GET', '/sandbox/sellers')
  const sellers = z.array(z.looseObject({ name: text, url: text, price: text })).parse(body.sellers)
  return sellers.find((seller) => seller.name === name) ?? never()
}

type Tool = ReturnType<Newcomer['findTool']>

/** A new key for a new payment, in the member that says so. */
function newKey(agent: Newcomer, tool: Tool): Record<string, string> {
  return { [agent.findMember(tool, /new for each payment/i)]: agent.make(randomUUID()) }
}

function buyOnce(agent: Newcomer, buy: Tool, url: string): Promise<Answer> {
  return agent.call(buy, {
    [agent.findMember(buy, /^url\b/i)]: url,
    [agent.findMember(buy, /most you accept/i)]: '0.05',
    ...newKey(agent, buy),
  })
}

/** Asks for the money of a purchase with the tool that a text names. @returns the tool that reads what becomes of it. */
async function openRecourse(
  agent: Newcomer,
  told: string,
  id: unknown,
): Promise<{ read: Tool; recourse: Answer }> {
  const [open = never()] = agent.toolsNamedIn(told)
  const object = agent.findMember(open, /^object\b/)
  const { kind, ...named } = z
    .looseObject({
      kind: z.looseObject({ enum: z.array(text) }),
      id: z.looseObject({ description: z.string().regex(/`buy_…`/) }),
    })
    .parse(open.inputSchema.properties[object]?.properties)
  expect(Object.keys(named)).toEqual(['id'])
  const recourse = await agent.call(open, {
    [object]: { kind: kind.enum.find((one) => one === 'purchase') ?? never(), id: text.parse(id) },
    [agent.findMember(open, /^reason\b/)]: 'not_delivered',
  })
  expect(recourse.isError).toBe(false)
  const [read = never()] = agent.toolsNamedIn(open.description)
  return { read, recourse }
}

/** The id that an answer has told, in the one member that the tool requires. */
function idFor(agent: Newcomer, tool: Tool, id: unknown): Record<string, string> {
  const value = text.parse(id)
  const prefix = /^[a-z]+_/.exec(value)?.[0] ?? never()
  return { [agent.findMember(tool, new RegExp(`\`${prefix}…\``))]: value }
}

/** Reads the saved accounts from the tool that the member names. */
async function pickRecipient(agent: Newcomer, pay: Tool, name: string): Promise<Record<string, string>> {
  const member = agent.findMember(pay, /^recipient\w*: `\w+_…`/)
  const [list = never()] = agent.toolsNamedIn(findDescription(pay, member))
  const { recipients } = z
    .looseObject({ recipients: z.array(z.looseObject({ id: text, name: text })) })
    .parse((await agent.call(list)).body)
  return { [member]: recipients.find((recipient) => recipient.name === name)?.id ?? never() }
}

/** Follows a payout with the tool that its own text names, until it has ended. */
async function untilEnded(agent: Newcomer, pay: Tool, { isError, body }: Answer): Promise<Answer> {
  expect(isError).toBe(false)
  const [, sentence = never()] = /([^.]*`pending`[^.]*)/.exec(pay.description) ?? []
  const [read = never()] = agent.toolsNamedIn(sentence)
  return agent.follow(
    read,
    idFor(agent, read, body.id),
    (answer) => !['pending', 'sent'].includes(text.parse(answer.body.status)),
  )
}

/** Asks the owner with the tool that the refusal names, for exactly the refused call. */
async function askFor(
  agent: Newcomer,
  pay: Tool,
  input: Record<string, unknown>,
  { body }: Answer,
): Promise<Answer> {
  const [ask = never()] = agent.toolsNamedIn(text.parse(body.hint))
  const operations = z
    .array(text)
    .parse(ask.inputSchema.properties[agent.findMember(ask, /^operation\b/)]?.enum)
  const operation = operations.find((name) => name.replaceAll('.', '_') === pay.name) ?? never()
  const asked = await agent.call(ask, {
    [agent.findMember(ask, /^operation\b/)]: operation,
    [agent.findMember(ask, /exactly as it would be sent/)]: input,
    [agent.findMember(ask, /why the owner should/i)]: agent.make('The print run has to be paid today.'),
  })
  expect(asked).toMatchObject({ isError: false, body: { status: 'pending' } })
  return asked
}

const cents = (amount: string) => Math.round(Number(amount) * 100)
const nanos = (qty: string) => BigInt(qty.replace('.', ''))
const findHolding = (
  { holdings }: { holdings: readonly { symbol: string; qty: string }[] },
  symbol: string,
) => holdings.find((holding) => holding.symbol === symbol)?.qty ?? ''

/** Half of a quantity of nine decimals, rounded down. */
function halve(qty: string): string {
  const digits = (nanos(qty) / 2n).toString().padStart(10, '0')
  return `${digits.slice(0, -9)}.${digits.slice(-9)}`
}
