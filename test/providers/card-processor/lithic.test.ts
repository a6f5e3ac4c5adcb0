import { createHmac } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { silentLog } from '../../../src/core/base/log.ts'
import { createLithicProcessor } from '../../../src/providers/card-processor/lithic.ts'
import { cardReasons } from '../../../src/providers/card-processor/port.ts'
import { signWebhook } from '../../../src/providers/standard-webhooks.ts'

const noon = new Date('2026-11-20T12:00:00.000Z')
const request = {
  event_type: 'card_authorization.approval_request',
  token: 'b120c880-05a2-45f9-8ba4-1bb1ff6ebf55',
  status: 'AUTHORIZATION',
  amount: 1250,
  cardholder_currency: 'USD',
  card: { token: 'card', last_four: '4242', state: 'OPEN', type: 'VIRTUAL' },
  merchant: { acceptor_id: 'OSKZTBBBBMU', descriptor: 'COFFEE', mcc: '5814', country: 'USA', city: 'NYC' },
  pos: {
    entry_mode: { pan: 'CONTACTLESS', pin_entered: false },
    terminal: { partial_approval_capable: true, type: 'POINT_OF_SALE' },
  },
  network: 'VISA',
}

let server: Server
let url = ''
let answer: { status: number; body: unknown }
const requests: { headers: Record<string, unknown>; url: string | undefined; body: unknown }[] = []
beforeAll(async () => {
  server = createServer((incoming, response) => {
    let text = ''
    incoming.on('data', (part: Buffer) => {
      text += part.toString()
    })
    incoming.on('end', () => {
      requests.push({ headers: incoming.headers, url: incoming.url, body: JSON.parse(text) })
      response
        .writeHead(answer.status, { 'content-type': 'application/json' })
        .end(JSON.stringify(answer.body))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
})
afterAll(() => new Promise((resolve) => server.close(resolve)))

const lithic = (apiKey: string | null = 'secret') =>
  createLithicProcessor({ url, apiKey, secretsAt: () => [], eventSecretsAt: () => [], log: silentLog })

describe('Lithic', () => {
  it('issues a card in its own format, once per idempotency key', async () => {
    answer = {
      status: 200,
      body: { token: 'tok', last_four: '4242', exp_month: '06', exp_year: '2030', pan: '4' },
    }
    const card = { cardId: 'card_01h455vb4pex5vsknk084sn02q', nickname: null, at: noon, singleUse: null }
    expect(await lithic().issue(card)).toEqual({
      token: 'tok',
      brand: 'Visa',
      last4: '4242',
      expMonth: 6,
      expYear: 2030,
    })
    expect(requests[0]).toMatchObject({
      url: '/v1/cards',
      headers: {
        authorization: 'secret',
        'idempotency-key': expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
      },
      body: { type: 'VIRTUAL', state: 'OPEN' },
    })
    answer = { status: 500, body: {} }
    await expect(lithic().issue(card)).rejects.toMatchObject({ code: 'provider_unavailable' })
    await expect(lithic(null).issue(card)).rejects.toMatchObject({ code: 'provider_unavailable' })
  })

  it('reads an authorization request, ignoring unknown members', () => {
    expect(lithic().read(request)).toEqual({
      kind: 'authorization',
      token: request.token,
      eventToken: null,
      fingerprint: expect.stringMatching(/^[\w-]{43}$/),
      cardToken: 'card',
      type: 'purchase',
      units: 1250n,
      merchant: { id: 'OSKZTBBBBMU', name: 'COFFEE', mcc: '5814', country: 'USA' },
      channel: 'contactless',
      allowsPartial: true,
    })
  })

  it('shows a card’s number on a page of its own, whose request it signs and which expires', () => {
    const expiresAt = new Date('2026-11-20T12:01:00.000Z')
    const shown = lithic().reveal({ cardId: 'card_1', token: 'tok', last4: '4242' }, expiresAt)
    if (shown.kind !== 'embedded') throw new Error('the number was shown')
    const page = new URL(shown.url)
    const request = Buffer.from(page.searchParams.get('embed_request') ?? '', 'base64').toString()
    expect([page.origin, page.pathname]).toEqual([url, '/v1/embed/card'])
    expect(JSON.parse(request)).toEqual({ token: 'tok', expiration: '2026-11-20T12:01:00.000Z' })
    expect(page.searchParams.get('hmac')).toBe(
      createHmac('sha256', 'secret').update(request).digest('base64'),
    )
    expect(shown.url).not.toContain('secret')
    expect(() => lithic(null).reveal({ cardId: 'card_1', token: 'tok', last4: '4242' }, expiresAt)).toThrow()
  })

  it('distinguishes requests by every member, regardless of member order', () => {
    const findFingerprint = (message: object) => {
      const read = lithic().read(message)
      return read.kind === 'authorization' ? read.fingerprint : null
    }
    const same = Object.fromEntries(Object.entries(request).toReversed())
    expect(findFingerprint(same)).toBe(findFingerprint(request))
    for (const more of [{ amount: 1251 }, { events: [] }, { a_member_of_tomorrow: 1 }])
      expect(findFingerprint({ ...request, ...more })).not.toBe(findFingerprint(request))
  })

  it.each([
    ['ECOMMERCE', 'POS', 'ecommerce'],
    ['CREDENTIAL_ON_FILE', 'POS', 'ecommerce'],
    ['MAGNETIC_STRIPE', 'POS', 'magstripe'],
    ['ICC', 'POS', 'chip'],
    ['ICC', 'ATM', 'atm'],
    ['SOMETHING_NEW', 'POS', null],
  ])('reads %s at %s as %s', (pan, type, channel) => {
    expect(lithic().read({ ...request, pos: { entry_mode: { pan }, terminal: { type } } })).toMatchObject({
      channel,
    })
  })

  it('reads a transaction’s events: only those that moved money', () => {
    const events = [
      { token: 'a', type: 'AUTHORIZATION', amount: 1250, result: 'APPROVED' },
      { token: 'b', type: 'AUTHORIZATION_REVERSAL', amount: -250, result: 'APPROVED' },
      { token: 'c', type: 'CLEARING', amount: 1000, result: 'APPROVED' },
      { token: 'd', type: 'RETURN', amount: -300, result: 'APPROVED' },
      { token: 'e', type: 'FINANCIAL_AUTHORIZATION', amount: 5, result: 'INSUFFICIENT_FUNDS' },
      { token: 'f', type: 'BALANCE_INQUIRY', amount: 0, result: 'APPROVED' },
      { token: 'g', type: 'CLEARING', amount: -400, result: 'APPROVED' },
      { token: 'h', type: 'CLEARING', amount: 500, result: 'APPROVED', effective_polarity: 'CREDIT' },
      { token: 'i', type: 'CLEARING', amount: 600, result: 'APPROVED', effective_polarity: 'DEBIT' },
      { token: 'j', type: 'RETURN_REVERSAL', amount: 300, result: 'APPROVED' },
    ]
    const transaction = {
      event_type: 'card_transaction.updated',
      token: 't',
      card_token: 'card',
      status: 'SETTLED',
      events,
    }
    expect(lithic().read(transaction)).toMatchObject({
      status: 'settled',
      wasAuthorized: true,
      events: [
        { token: 'b', kind: 'reversal', units: 250n },
        { token: 'c', kind: 'clearing', units: 1000n },
        { token: 'd', kind: 'refund', units: 300n },
        { token: 'g', kind: 'refund', units: 400n },
        { token: 'h', kind: 'refund', units: 500n },
        { token: 'i', kind: 'clearing', units: 600n },
        { token: 'j', kind: 'return_reversal', units: 300n },
      ],
    })
  })

  it('answers with codes that the processor knows, and APPROVED for approvals alone', () => {
    const known = ['CARD_PAUSED', 'INSUFFICIENT_FUNDS', 'UNAUTHORIZED_MERCHANT', 'VELOCITY_EXCEEDED']
    for (const reason of cardReasons.filter((each) => each !== 'approved'))
      expect(known).toContain(lithic().answer({ token: 't', reason, asked: 1n, approved: 0n }).result)
    const approved = { token: 't', reason: 'approved', asked: 10n } as const
    expect(lithic().answer({ ...approved, approved: 10n })).toEqual({ result: 'APPROVED', token: 't' })
    expect(lithic().answer({ ...approved, approved: 4n })).toMatchObject({ approved_amount: 4 })
  })

  it('verifies the stream and the events by their own secrets, and neither by the other', () => {
    const [stream, events] = ['c', 'd'].map((letter) => `whsec_${letter.repeat(32)}`) as [string, string]
    const processor = createLithicProcessor({
      ...{ url, apiKey: null, log: silentLog },
      secretsAt: () => [stream],
      eventSecretsAt: () => [events],
    })
    const clearing = { event_type: 'card_transaction.updated', token: 't' }
    const verify = (message: object, secret: string) => {
      const body = JSON.stringify(message)
      const headers: Readonly<Record<string, string>> = signWebhook({ id: 'evt_1', body, at: noon }, secret)
      return processor.verify({ header: (name) => headers[name], body: Buffer.from(body) }, noon)
    }
    expect(verify(request, stream)).toBe('evt_1')
    expect(verify(clearing, events)).toBe('evt_1')
    expect(() => verify(request, events)).toThrow(/does not verify/)
    expect(() => verify(clearing, stream)).toThrow(/does not verify/)
  })
})
