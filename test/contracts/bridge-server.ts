/**
 * A server with the parts of Bridge's API that customers, accounts and payouts need, as strict as its documentation:
 * unknown members, missing keys and unapproved customers are refused. It pays out when a test says that it was funded.
 */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { z } from 'zod'

/** @see https://apidocs.bridge.xyz/api-reference/kyc-links */
const newLink = z.strictObject({
  full_name: z.string().min(1),
  email: z.email(),
  type: z.enum(['individual', 'business']),
  endorsements: z.array(z.enum(['base', 'sepa', 'spei', 'pix', 'faster_payments'])).optional(),
  redirect_uri: z.url().optional(),
})

/** @see https://apidocs.bridge.xyz/api-reference/virtual-accounts */
const newAccount = z.strictObject({
  source: z.strictObject({ currency: z.enum(['usd', 'eur', 'mxn', 'gbp', 'brl']) }),
  destination: z.strictObject({
    currency: z.enum(['usdc', 'usdt', 'pyusd', 'eurc', 'usdb']),
    payment_rail: z.enum(['base', 'base_sepolia', 'arbitrum', 'ethereum', 'polygon', 'solana']),
    address: z.string().regex(/^0x[0-9a-fA-F]{40}$/),
  }),
})

const alpha3 = z.string().regex(/^[A-Z]{3}$/)
const accountOwner = {
  account_owner_name: z.string().min(1),
  account_owner_type: z.literal('individual'),
  first_name: z.string().min(1),
  last_name: z.string().min(1),
  address: z
    .strictObject({
      street_line_1: z.string(),
      city: z.string(),
      state: z.string().regex(/^[A-Z]{2}$/),
      postal_code: z.string(),
      country: alpha3,
    })
    .optional(),
}

/** @see https://apidocs.bridge.xyz/api-reference/external-accounts */
const newExternalAccount = z.discriminatedUnion('account_type', [
  z.strictObject({
    ...accountOwner,
    currency: z.literal('usd'),
    account_type: z.literal('us'),
    account: z.strictObject({
      account_number: z.string(),
      routing_number: z.string(),
      checking_or_savings: z.enum(['checking', 'savings']),
    }),
  }),
  z.strictObject({
    ...accountOwner,
    currency: z.literal('eur'),
    account_type: z.literal('iban'),
    iban: z.strictObject({ account_number: z.string(), bic: z.string().optional(), country: alpha3 }),
  }),
  z.strictObject({
    ...accountOwner,
    currency: z.literal('gbp'),
    account_type: z.literal('gb'),
    account: z.strictObject({ account_number: z.string(), sort_code: z.string() }),
  }),
])

/** @see https://apidocs.bridge.xyz/api-reference/transfers/create-a-transfer */
const newTransfer = z.strictObject({
  client_reference_id: z.string(),
  on_behalf_of: z.string(),
  amount: z.string().regex(/^\d+(\.\d{1,2})?$/),
  source: z.strictObject({
    payment_rail: z.enum(['base', 'base_sepolia']),
    currency: z.literal('usdc'),
    from_address: z.string().regex(/^0x[0-9a-fA-F]{40}$/),
  }),
  destination: z.strictObject({
    payment_rail: z.enum(['ach', 'sepa', 'faster_payments']),
    currency: z.enum(['usd', 'eur', 'gbp']),
    external_account_id: z.string(),
    ach_reference: z.string().max(10).optional(),
    sepa_reference: z.string().min(6).optional(),
  }),
})

/** Where deposits go, as Bridge says it. */
export const depositInstructions = {
  currency: 'usd',
  payment_rails: ['ach_push', 'wire'],
  bank_name: 'Lead Bank',
  bank_address: '1801 Main St., Kansas City, MO 64108',
  bank_routing_number: '101019644',
  bank_account_number: '123456789',
}

/** A transfer to a bank account. @property state in Bridge's terms. */
export interface KeptTransfer extends z.output<typeof newTransfer> {
  readonly id: string
  state: string
  readonly source_deposit_instructions: {
    readonly payment_rail: string
    amount: string
    readonly currency: string
    readonly from_address: string
    to_address: `0x${string}`
  }
}

export interface KeptLink {
  readonly id: string
  readonly full_name: string
  readonly email: string
  readonly type: string
  readonly kyc_link: string
  readonly tos_link: string
  kyc_status: string
  tos_status: string
  customer_id: string | null
}

interface Asked {
  readonly method: string
  readonly path: string
  readonly key: string | undefined
  readonly body: unknown
}

/** Starts the server. @property state `interrupt` runs after every answer; `depositTo` is the address of all payouts. */
export async function startBridgeServer() {
  const links = new Map<string, KeptLink>()
  const externalAccounts = new Map<string, { customer: string; currency: string }>()
  const transfers = new Map<string, KeptTransfer>()
  const answers = new Map<string, { body: string; answer: unknown }>()
  const asked: Asked[] = []
  const state: {
    interrupt: (asked: Asked, response: ServerResponse) => boolean
    depositTo: `0x${string}` | null
  } = { interrupt: () => false, depositTo: null }
  const server = createServer(async (request, response) => {
    const raw = await text(request)
    const { method = '', url: path = '' } = request
    const header = request.headers['idempotency-key']
    const key = typeof header === 'string' ? header : undefined
    const question = { method, path, key, body: raw === '' ? null : JSON.parse(raw) }
    asked.push(question)
    const [status, answer] =
      request.headers['api-key'] === 'secret' ? answerTo(question) : [401, { code: 'unauthorized' }]
    // An answer is lost after it was given.
    if (state.interrupt(question, response)) return
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  })
  function answerTo(question: Asked): [number, unknown] {
    const { method, path, key, body } = question
    const [, linkId] = /^\/v0\/kyc_links\/([^/]+)$/.exec(path) ?? []
    if (method === 'GET' && linkId !== undefined) {
      const found = links.get(linkId)
      return found === undefined ? [404, { code: 'not_found' }] : [200, found]
    }
    const [, transferId] = /^\/v0\/transfers\/([^/]+)$/.exec(path) ?? []
    if (method === 'GET' && transferId !== undefined) {
      const found = transfers.get(transferId)
      return found === undefined ? [404, { code: 'not_found' }] : [200, found]
    }
    if (method === 'DELETE' && transferId !== undefined) {
      const found = transfers.get(transferId)
      if (found === undefined) return [404, { code: 'not_found' }]
      if (found.state !== 'awaiting_funds') return [400, { code: 'invalid_state' }]
      found.state = 'canceled'
      return [200, found]
    }
    if (method === 'GET' && path === '/v0/exchange_rates?from=usd&to=eur')
      return [200, { midmarket_rate: '0.92', buy_rate: '0.93', sell_rate: '0.9137' }]
    if (method !== 'POST') return [404, { code: 'not_found' }]
    if (key === undefined) return [400, { code: 'missing_idempotency_key' }]
    const known = answers.get(key)
    if (known !== undefined)
      return known.body === JSON.stringify(body)
        ? [200, known.answer]
        : [422, { code: 'idempotency_key_reused' }]
    const [status, answer] = post(path, body)
    if (status === 200) answers.set(key, { body: JSON.stringify(body), answer: structuredClone(answer) })
    return [status, answer]
  }
  function post(path: string, body: unknown): [number, unknown] {
    if (path === '/v0/kyc_links') return addLink(body)
    if (path === '/v0/transfers') return addTransfer(body)
    const [, customer = '', kind] =
      /^\/v0\/customers\/([^/]+)\/(virtual_accounts|external_accounts)$/.exec(path) ?? []
    const link = [...links.values()].find(({ customer_id: id }) => id === customer)
    if (kind === undefined || link === undefined) return [404, { code: 'not_found' }]
    if (!isApproved(link)) return [400, { code: 'customer_not_approved' }]
    return kind === 'virtual_accounts' ? openAccount(customer, body) : addExternalAccount(customer, body)
  }
  const isApproved = ({ kyc_status, tos_status }: KeptLink) =>
    kyc_status === 'approved' && tos_status === 'approved'
  function addExternalAccount(customer: string, body: unknown): [number, unknown] {
    const parsed = newExternalAccount.safeParse(body)
    if (!parsed.success) return [400, { code: 'invalid_parameters', message: z.prettifyError(parsed.error) }]
    const { currency } = parsed.data
    const id = `ext_${externalAccounts.size + 1}`
    externalAccounts.set(id, { customer, currency })
    return [200, { id, customer_id: customer, currency, active: true }]
  }
  function addTransfer(body: unknown): [number, unknown] {
    const parsed = newTransfer.safeParse(body)
    if (!parsed.success) return [400, { code: 'invalid_parameters', message: z.prettifyError(parsed.error) }]
    const { data } = parsed
    const link = [...links.values()].find(({ customer_id: id }) => id === data.on_behalf_of)
    const external = externalAccounts.get(data.destination.external_account_id)
    const isTheirs =
      external?.customer === data.on_behalf_of && external.currency === data.destination.currency
    if (link === undefined || !isApproved(link) || !isTheirs) return [400, { code: 'invalid_parameters' }]
    const number = transfers.size + 1
    const kept: KeptTransfer = {
      ...data,
      id: `transfer_${number}`,
      state: 'awaiting_funds',
      source_deposit_instructions: {
        ...data.source,
        amount: data.amount,
        to_address: state.depositTo ?? `0x${number.toString(16).padStart(40, 'b')}`,
      },
    }
    transfers.set(kept.id, kept)
    return [200, kept]
  }
  function addLink(body: unknown): [number, unknown] {
    const parsed = newLink.safeParse(body)
    if (!parsed.success) return [400, { code: 'invalid_parameters', message: z.prettifyError(parsed.error) }]
    const existing = [...links.values()].find(({ email }) => email === parsed.data.email)
    if (existing !== undefined) return [400, { code: 'duplicate_record', existing_kyc_link: existing }]
    const id = `kyc_link_${links.size + 1}`
    const link: KeptLink = {
      ...{ id, full_name: parsed.data.full_name, email: parsed.data.email, type: parsed.data.type },
      ...{ kyc_link: `https://kyc.example/${id}?t=private`, tos_link: `https://tos.example/${id}?t=private` },
      ...{ kyc_status: 'not_started', tos_status: 'pending', customer_id: null },
    }
    links.set(id, link)
    return [200, link]
  }
  function openAccount(customer: string, body: unknown): [number, unknown] {
    const parsed = newAccount.safeParse(body)
    if (!parsed.success) return [400, { code: 'invalid_parameters', message: z.prettifyError(parsed.error) }]
    return [
      200,
      { id: `va_of_${customer}`, status: 'activated', source_deposit_instructions: depositInstructions },
    ]
  }
  await once(server.listen(0, '127.0.0.1'), 'listening')
  // A listening server has an address object with a port.
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    links,
    transfers,
    asked,
    /** Adds a customer who was approved before. */
    addCustomer: (customer_id: string) => {
      const id = `kyc_link_${links.size + 1}`
      const pages = { kyc_link: `https://kyc.example/${id}`, tos_link: `https://tos.example/${id}` }
      const person = { full_name: 'Grace Hopper', email: `${customer_id}@example.com`, type: 'individual' }
      links.set(id, { id, ...person, ...pages, kyc_status: 'approved', tos_status: 'approved', customer_id })
    },
    state,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
