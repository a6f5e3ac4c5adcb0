/**
 * A server with the parts of Bridge's API that customers and accounts need, as strict as its documentation: unknown
 * members, missing keys and unapproved customers are refused.
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

export async function startBridgeServer() {
  const links = new Map<string, KeptLink>()
  const answers = new Map<string, { body: string; answer: unknown }>()
  const asked: Asked[] = []
  const state: { interrupt: (asked: Asked, response: ServerResponse) => boolean } = { interrupt: () => false }
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
    if (method !== 'POST') return [404, { code: 'not_found' }]
    if (key === undefined) return [400, { code: 'missing_idempotency_key' }]
    const known = answers.get(key)
    if (known !== undefined)
      return known.body === JSON.stringify(body)
        ? [200, known.answer]
        : [422, { code: 'idempotency_key_reused' }]
    const [status, answer] = path === '/v0/kyc_links' ? addLink(body) : openAccount(path, body)
    if (status === 200) answers.set(key, { body: JSON.stringify(body), answer })
    return [status, answer]
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
  function openAccount(path: string, body: unknown): [number, unknown] {
    const [, customer] = /^\/v0\/customers\/([^/]+)\/virtual_accounts$/.exec(path) ?? []
    const link = [...links.values()].find(({ customer_id: id }) => id === customer)
    if (link === undefined) return [404, { code: 'not_found' }]
    if (link.kyc_status !== 'approved' || link.tos_status !== 'approved')
      return [400, { code: 'customer_not_approved' }]
    const parsed = newAccount.safeParse(body)
    if (!parsed.success) return [400, { code: 'invalid_parameters', message: z.prettifyError(parsed.error) }]
    const instructions = {
      currency: 'usd',
      payment_rails: ['ach_push', 'wire'],
      bank_name: 'Lead Bank',
      bank_address: '1801 Main St., Kansas City, MO 64108',
      bank_routing_number: '101019644',
      bank_account_number: '123456789',
    }
    return [200, { id: `va_of_${customer}`, status: 'activated', source_deposit_instructions: instructions }]
  }
  await once(server.listen(0, '127.0.0.1'), 'listening')
  // A listening server has an address object with a port.
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    links,
    asked,
    state,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
