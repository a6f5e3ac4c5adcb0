/**
 * A server with the parts of Alpaca's Broker API that the adapter uses, as strict as its documentation: unknown members,
 * wrong words and missing credentials are refused. One symbol at 100 USD; cash and shares belong to accounts.
 */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { z } from 'zod'

/** A request that the server received. */
export interface RecordedRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: Record<string, unknown>
}

/** Replaces an answer. @returns true if it has answered. */
export type Interruption = (asked: RecordedRequest, response: ServerResponse) => boolean

const PRICE = 100
/** Amount that a market order fills at once; the rest fills on the next read. */
const DEPTH = 10_000

interface KeptOrder {
  id: string
  client_order_id: string
  symbol: string
  side: string
  notional: string | null
  qty: string | null
  limit_price: string | null
  status: string
  filled_qty: string
  filled_avg_price: string | null
  filled_at: string | null
}

/** An account of the firm or of a person. */
export interface KeptAccount {
  readonly id: string
  status: string
  readonly created_at: string
  readonly contact: { readonly email_address: string }
  readonly identity: z.output<typeof newAccount>['identity'] | null
  cash: number
  shares: number
}

interface KeptJournal {
  readonly id: string
  readonly entry_type: 'JNLC'
  readonly from_account: string
  readonly to_account: string
  readonly net_amount: string
  status: string
}

interface Books {
  readonly firm: KeptAccount
  readonly accounts: Map<string, KeptAccount>
  readonly orders: Map<string, KeptOrder>
  readonly owners: Map<string, string>
  readonly journals: Map<string, { body: string; journal: KeptJournal }>
  readonly activities: Record<string, unknown>[]
  readonly state: { interrupt: Interruption; opened: string; journals: string; now: () => Date }
}

/** Starts the server. @property state `interrupt` runs before every answer; the others are the first status of each. */
export async function startAlpacaServer() {
  const state: Books['state'] = {
    interrupt: () => false,
    opened: 'ACTIVE',
    journals: 'executed',
    now: () => new Date(),
  }
  const firm = accountWith({ cash: 100_000_000 })
  const accounts = new Map([[firm.id, firm]])
  const books: Books = {
    ...{ firm, accounts, state, orders: new Map(), owners: new Map(), journals: new Map(), activities: [] },
  }
  const add = (changes: Partial<KeptAccount> = {}) => {
    const account = accountWith(changes)
    accounts.set(account.id, account)
    return account
  }
  const asked: RecordedRequest[] = []
  const server = createServer(async (request, response) => {
    const body = await text(request)
    const question: RecordedRequest = {
      method: request.method ?? '',
      path: request.url ?? '',
      headers: request.headers,
      body: body === '' ? {} : JSON.parse(body),
    }
    asked.push(question)
    if (state.interrupt(question, response)) return
    const { status, answer } = answerTo(books, question)
    response
      .writeHead(status, { 'content-type': 'application/json' })
      .end(answer === undefined ? '' : JSON.stringify(answer))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  // A listening server has an address object with a port.
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    ...books,
    asked,
    /** Adds an account that was opened before. */
    add,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

function accountWith(changes: Partial<KeptAccount>): KeptAccount {
  return {
    id: randomUUID(),
    status: 'ACTIVE',
    created_at: '2026-11-20T12:00:00.000Z',
    contact: { email_address: 'firm@example.com' },
    identity: null,
    cash: 0,
    shares: 0,
    ...changes,
  }
}

interface Answer {
  readonly status: number
  readonly answer?: unknown
}

const problem = (status: number, message: string): Answer => ({
  status,
  answer: { code: status * 100_000, message },
})

const alpha3 = z.string().regex(/^[A-Z]{3}$/)
const money = z.string().regex(/^\d+(\.\d{1,2})?$/)

/** @see https://docs.alpaca.markets/reference/createaccount */
const newAccount = z.strictObject({
  contact: z.strictObject({
    email_address: z.email(),
    phone_number: z.string().min(7),
    street_address: z.array(z.string().min(1)).min(1),
    city: z.string().min(1),
    state: z.string().optional(),
    postal_code: z.string().optional(),
    country: alpha3,
  }),
  identity: z.strictObject({
    given_name: z.string().min(1),
    family_name: z.string().min(1),
    date_of_birth: z.iso.date(),
    tax_id: z.string().min(1),
    tax_id_type: z.enum(['USA_SSN', 'DEU_TAX_ID', 'GBR_NINO', 'NOT_SPECIFIED']),
    country_of_tax_residence: alpha3,
    funding_source: z
      .array(
        z.enum(['employment_income', 'investments', 'inheritance', 'business_income', 'savings', 'family']),
      )
      .min(1),
  }),
  disclosures: z.strictObject({
    is_control_person: z.boolean(),
    is_affiliated_exchange_or_finra: z.boolean(),
    is_politically_exposed: z.boolean(),
    immediate_family_exposed: z.boolean(),
  }),
  agreements: z
    .array(
      z.strictObject({
        agreement: z.enum(['margin_agreement', 'account_agreement', 'customer_agreement']),
        signed_at: z.iso.datetime(),
        ip_address: z.union([z.ipv4(), z.ipv6()]),
        revision: z.string().optional(),
      }),
    )
    .min(1),
})

/** @see https://docs.alpaca.markets/reference/createjournal */
const newJournal = z.strictObject({
  entry_type: z.literal('JNLC'),
  from_account: z.uuid(),
  to_account: z.uuid(),
  amount: money,
  description: z.string().max(1_024).optional(),
})

/** @see https://docs.alpaca.markets/reference/createorderforaccount */
const newOrder = z
  .strictObject({
    symbol: z.string(),
    side: z.enum(['buy', 'sell']),
    type: z.enum(['market', 'limit']),
    time_in_force: z.literal('day'),
    notional: money.optional(),
    qty: z
      .string()
      .regex(/^\d+(\.\d{1,9})?$/)
      .optional(),
    limit_price: z.string().optional(),
    client_order_id: z.string().max(128),
  })
  .refine(({ notional, qty }) => (notional === undefined) !== (qty === undefined))
  .refine(({ type, limit_price }) => (type === 'limit') === (limit_price !== undefined))

function answerTo(books: Books, { method, path, headers, body }: RecordedRequest): Answer {
  if (!/^Basic \S+$/.test(headers.authorization ?? '')) return problem(401, 'unauthorized.')
  const url = new URL(path, 'http://alpaca')
  const [, account = '', rest = ''] = /^\/v1\/trading\/accounts\/([^/]+)\/(.+)$/.exec(url.pathname) ?? []
  if (account !== '') {
    const kept = books.accounts.get(decodeURIComponent(account))
    if (kept === undefined) return problem(404, 'account not found')
    return tradingAnswer(books, kept, { method, rest, url, body })
  }
  const [, journalId] = /^\/v1\/journals\/([^/]+)$/.exec(url.pathname) ?? []
  if (method === 'GET' && journalId !== undefined) {
    const found = [...books.journals.values()].find(({ journal }) => journal.id === journalId)
    return found === undefined ? problem(404, 'journal not found') : { status: 200, answer: found.journal }
  }
  const [, accountId] = /^\/v1\/accounts\/([^/]{36})$/.exec(url.pathname) ?? []
  if (method === 'GET' && accountId !== undefined) {
    const found = books.accounts.get(accountId)
    return found === undefined
      ? problem(404, 'account not found')
      : { status: 200, answer: viewAccount(found) }
  }
  const routes: Readonly<Record<string, () => Answer>> = {
    'POST /v1/journals': () => move(books, headers['idempotency-key'], body),
    'POST /v1/accounts': () => open(books, body),
    'GET /v1/accounts': () => {
      const tokens = (url.searchParams.get('query') ?? '').toLowerCase().split(' ')
      const found = [...books.accounts.values()].filter(({ contact }) =>
        tokens.every((token) => contact.email_address.toLowerCase().includes(token)),
      )
      return { status: 200, answer: found.map(viewAccount) }
    },
    'GET /v1/accounts/activities': () => {
      const after = url.searchParams.get('after') ?? ''
      const owner = url.searchParams.get('account_id')
      const found = books.activities.filter(
        ({ account_id: of, date, transaction_time: at }) =>
          of === owner && String(date ?? at).slice(0, 10) > after,
      )
      const from = found.findIndex(({ id }) => id === url.searchParams.get('page_token')) + 1
      return { status: 200, answer: found.slice(from, from + Number(url.searchParams.get('page_size'))) }
    },
    'GET /v1/assets/VTI': () => ({
      status: 200,
      answer: {
        id: 'a',
        symbol: 'VTI',
        name: 'Vanguard Total Stock Market ETF',
        status: 'active',
        tradable: true,
        fractionable: true,
      },
    }),
    'GET /v2/stocks/trades/latest': () => ({
      status: 200,
      answer: { trades: { VTI: { t: '2026-11-20T12:00:00Z', p: PRICE, s: 1 } } },
    }),
    'GET /v2/stocks/bars': () => ({ status: 200, answer: barsFrom(url.searchParams) }),
    'GET /v1/corporate_actions/announcements': () => ({
      status: 200,
      answer: [
        {
          id: 'x',
          ca_type: 'dividend',
          initiating_symbol: 'VTI',
          record_date: url.searchParams.get('since'),
          payable_date: url.searchParams.get('until'),
          cash: '0.9523',
        },
      ],
    }),
  }
  if (url.pathname.startsWith('/v1/assets/') && url.pathname !== '/v1/assets/VTI')
    return { status: 404, answer: { code: 40410000, message: 'asset not found' } }
  return routes[`${method} ${url.pathname}`]?.() ?? problem(404, `no ${method} ${path}`)
}

function viewAccount({ cash: _cash, shares: _shares, identity, ...account }: KeptAccount) {
  const named = identity ?? { given_name: 'The', family_name: 'Firm', date_of_birth: '2000-01-01' }
  const { given_name, family_name, date_of_birth } = named
  return { ...account, identity: { given_name, family_name, date_of_birth } }
}

function open(books: Books, body: unknown): Answer {
  const parsed = newAccount.safeParse(body)
  if (!parsed.success) return problem(422, z.prettifyError(parsed.error))
  const { contact, identity } = parsed.data
  const isTaken = [...books.accounts.values()].some(
    (other) => other.contact.email_address === contact.email_address,
  )
  if (isTaken) return problem(409, 'the email address is in use')
  const account = accountWith({
    contact,
    identity,
    status: books.state.opened,
    created_at: books.state.now().toISOString(),
  })
  books.accounts.set(account.id, account)
  return { status: 200, answer: viewAccount(account) }
}

/** Moves cash once for each key; a key with another body is refused. */
function move({ firm, accounts, journals, state }: Books, key: unknown, body: unknown): Answer {
  const parsed = newJournal.safeParse(body)
  if (!parsed.success) return problem(400, z.prettifyError(parsed.error))
  if (typeof key !== 'string' || key.length > 36) return problem(400, 'the idempotency key is too long')
  const known = journals.get(key)
  if (known !== undefined)
    return known.body === JSON.stringify(body)
      ? { status: 200, answer: known.journal }
      : problem(422, 'the idempotency key was used for another request')
  const { from_account, to_account, amount } = parsed.data
  const [from, to] = [accounts.get(from_account), accounts.get(to_account)]
  if (from === undefined || to === undefined) return problem(404, 'account not found')
  if ((from === firm) === (to === firm)) return problem(403, 'cash moves between the firm and a customer')
  if (from.status !== 'ACTIVE' || to.status !== 'ACTIVE') return problem(403, 'account is not active')
  if (Number(amount) > from.cash + 1e-9) return problem(403, 'insufficient balance')
  const journal: KeptJournal = {
    ...{ id: randomUUID(), from_account, to_account },
    entry_type: 'JNLC',
    ...{ net_amount: String(Number(amount)), status: state.journals },
  }
  journals.set(key, { body: JSON.stringify(body), journal })
  if (journal.status === 'executed') {
    from.cash -= Number(amount)
    to.cash += Number(amount)
  }
  return { status: 200, answer: journal }
}

function tradingAnswer(
  books: Books,
  account: KeptAccount,
  { method, rest, url, body }: { method: string; rest: string; url: URL; body: unknown },
): Answer {
  const { orders, owners } = books
  const findOwn = (id: string) => (owners.get(id) === account.id ? orders.get(id) : undefined)
  if (method === 'POST' && rest === 'orders') return place(books, account, body)
  if (method === 'GET' && rest === 'account')
    return { status: 200, answer: { id: account.id, cash_withdrawable: account.cash.toFixed(2) } }
  if (method === 'GET' && rest === 'positions')
    return {
      status: 200,
      answer:
        account.shares < 1e-9
          ? []
          : [{ symbol: 'VTI', qty: String(Number(account.shares.toFixed(9))), side: 'long' }],
    }
  if (method === 'GET' && rest === 'orders:by_client_order_id') {
    const kept = findOwn(url.searchParams.get('client_order_id') ?? '')
    if (kept === undefined) return { status: 404, answer: { code: 40410000, message: 'order not found' } }
    if (kept.status === 'partially_filled') fill(account, kept, Number.POSITIVE_INFINITY)
    return { status: 200, answer: kept }
  }
  if (method === 'DELETE' && rest.startsWith('orders/')) {
    const kept = [...orders.values()].find(({ id }) => rest.endsWith(id))
    if (kept === undefined || findOwn(kept.client_order_id) === undefined)
      return problem(404, 'order not found')
    if (kept.status !== 'new' && kept.status !== 'partially_filled')
      return problem(422, `order is already in "${kept.status}" state`)
    kept.status = 'canceled'
    return { status: 204 }
  }
  return problem(404, `no ${method} ${rest}`)
}

/** Two pages of two bars each, a tenth of a dollar apart. */
function barsFrom(query: URLSearchParams) {
  const start = Date.parse(query.get('start') ?? '')
  const isFirst = query.get('page_token') === null
  const hours = isFirst ? [0, 24] : [7 * 24, 8 * 24]
  const bars = hours.map((hour) => ({
    t: new Date(start + hour * 3_600_000).toISOString(),
    o: PRICE,
    h: PRICE,
    l: PRICE,
    c: PRICE + hour / 240,
    v: 1,
  }))
  return { bars: { VTI: bars }, next_page_token: isFirst ? 'two' : null }
}

function place({ orders, owners }: Books, account: KeptAccount, body: unknown): Answer {
  const parsed = newOrder.safeParse(body)
  if (!parsed.success) return problem(422, z.prettifyError(parsed.error))
  const { client_order_id: id, symbol, side, notional = null, qty = null, limit_price = null } = parsed.data
  if (orders.has(id))
    return { status: 422, answer: { code: 40010001, message: 'client_order_id must be unique' } }
  if (account.status !== 'ACTIVE') return problem(403, 'account is not active')
  if (symbol !== 'VTI') return problem(422, `asset "${symbol}" not found`)
  if (Number(notional) > account.cash + 1e-9) return problem(403, 'insufficient buying power')
  if (Number(qty) > account.shares + 1e-9) return problem(403, 'insufficient qty available for order')
  const kept: KeptOrder = {
    id: `alpaca-${orders.size + 1}`,
    client_order_id: id,
    symbol,
    side,
    notional,
    qty,
    limit_price,
    status: 'new',
    filled_qty: '0',
    filled_avg_price: null,
    filled_at: null,
  }
  orders.set(id, kept)
  owners.set(id, account.id)
  const limit = limit_price === null ? null : Number(limit_price)
  const isMet = limit === null || (side === 'buy' ? limit >= PRICE : limit <= PRICE)
  if (isMet) fill(account, kept, DEPTH)
  return { status: 200, answer: kept }
}

/** Fills an order up to a total amount, and books it. */
function fill(account: KeptAccount, kept: KeptOrder, depth: number): void {
  const wanted = kept.qty === null ? Number(kept.notional) / PRICE : Number(kept.qty)
  const units = Math.min(wanted, depth / PRICE)
  const part = (units - Number(kept.filled_qty)) * (kept.side === 'buy' ? 1 : -1)
  account.shares += part
  account.cash = Number((account.cash - part * PRICE).toFixed(9))
  kept.filled_qty = String(units)
  kept.filled_avg_price = String(PRICE)
  kept.filled_at = '2026-11-20T12:00:00.123456Z'
  kept.status = units < wanted ? 'partially_filled' : 'filled'
}
