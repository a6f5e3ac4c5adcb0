/** Reading what strangers offer: each protocol, each reason to refuse, and garbage. */
import fc from 'fast-check'
import { Challenge, Credential } from 'mppx'
import { challengeHash } from 'mppx/evm'
import { describe, expect, it } from 'vitest'
import { credentialHeader, derivePurchaseNonce } from '../../../src/rails/buying/authorization.ts'
import { readOffers } from '../../../src/rails/buying/offers.ts'
import { hashRequest, readRequest } from '../../../src/rails/buying/request.ts'

const USDC = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
const SELLER = '0x14dC79964da2C08b23698B3D3cc7Ca32193d9955'
const now = new Date('2026-11-20T12:00:00.000Z')
const chain = {
  id: 84_532,
  name: 'base-sepolia',
  tokens: { USDC, USDT: '0x1', EURC: '0x2', PYUSD: '0x3' },
  hasUpto: true,
  hasEscrow: true,
  channels: { maxWithdrawDelay: 86_400, depositMax: 1_000_000n, idleMs: 3_600_000 },
} as const

const accept = {
  scheme: 'exact',
  network: 'eip155:84532',
  asset: USDC,
  payTo: SELLER,
  amount: '1000',
  maxTimeoutSeconds: 60,
  extra: { name: 'Evil', version: '9' },
}
const upto = {
  scheme: 'upto',
  extra: { assetTransferMethod: 'permit2', facilitatorAddress: SELLER },
}
const channel = {
  scheme: 'batch-settlement',
  extra: { receiverAuthorizer: SELLER, withdrawDelay: 900, minDeposit: '10000' },
}
const NOBODY = `0x${'0'.repeat(40)}`
const nowSeconds = Math.floor(now.getTime() / 1000)
const escrow = (changes: object = {}) => ({
  scheme: 'auth-capture',
  extra: {
    captureAuthorizer: SELLER,
    captureDeadline: nowSeconds + 3_600,
    refundDeadline: nowSeconds + 7_200,
    feeRecipient: NOBODY,
    minFeeBps: 0,
    maxFeeBps: 0,
    ...changes,
  },
})
const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64')
const answer = (headers: (readonly [string, string])[], body = '') => ({
  headers,
  body: new Uint8Array(Buffer.from(body)),
})
const v2 = (...accepts: unknown[]) =>
  answer([['payment-required', base64({ x402Version: 2, resource: { description: 'd' }, accepts })]])
const read = (given: ReturnType<typeof answer>) => readOffers(chain, given, now)

const challenge = Challenge.from({
  id: 'abc',
  realm: 'seller.test',
  method: 'evm',
  intent: 'charge',
  expires: '2026-11-20T12:04:00.000Z',
  description: 'Sehr "gut" – schön',
  request: {
    amount: '1000',
    currency: USDC,
    recipient: SELLER,
    methodDetails: { chainId: 84_532, credentialTypes: ['authorization'], decimals: 6 },
  },
})

describe('the offers of a seller', () => {
  it('are read in every protocol, the preferred first', () => {
    const v1 = {
      ...accept,
      network: 'base-sepolia',
      maxAmountRequired: '1000',
      description: 'one',
      resource: '',
    }
    const offers = read(
      answer(
        [
          ['www-authenticate', `Basic realm="x", ${Challenge.serialize(challenge)}`],
          ['payment-required', base64({ x402Version: 2, accepts: [accept] })],
        ],
        JSON.stringify({ x402Version: 1, accepts: [v1] }),
      ),
    )
    expect(offers.map(({ protocol, reason }) => [protocol, reason])).toEqual([
      ['x402-v2', null],
      ['x402-v1', null],
      ['mpp', null],
    ])
    for (const { units, payTo, asset } of offers)
      expect([units, payTo, asset]).toEqual([1000n, SELLER.toLowerCase(), 'USDC'])
    expect(offers[2]).toMatchObject({ seconds: 240, description: 'Sehr "gut" – schön' })
  })

  it.each([
    ['scheme_not_supported', { scheme: 'deferred' }],
    ['authorizer_invalid', { scheme: 'batch-settlement' }],
    [
      'authorizer_invalid',
      { ...channel, extra: { ...channel.extra, receiverAuthorizer: `0x${'0'.repeat(40)}` } },
    ],
    ['withdraw_delay_not_accepted', { ...channel, extra: { ...channel.extra, withdrawDelay: 899 } }],
    ['withdraw_delay_not_accepted', { ...channel, extra: { ...channel.extra, withdrawDelay: 86_401 } }],
    ['over_channel_deposit', { ...channel, amount: '1000001' }],
    [null, channel],
    [null, escrow()],
    [null, escrow({ authCaptureEscrow: '0xf96815976523E00e65Be8f34cA5e64b4f41EB19c' })],
    [null, escrow({ feeRecipient: SELLER, minFeeBps: 0, maxFeeBps: 1_000 })],
    ['scheme_not_supported', escrow({ assetTransferMethod: 'permit2' })],
    ['escrow_unknown', escrow({ authCaptureEscrow: '0xBdEA0D1bcC5966192B070Fdf62aB4EF5b4420cff' })],
    ['escrow_unknown', escrow({ authCaptureEscrow: 1 })],
    ['operator_invalid', { scheme: 'auth-capture', extra: {} }],
    ['operator_invalid', escrow({ captureAuthorizer: NOBODY })],
    ['operator_invalid', escrow({ receiverAuthorizer: '0x12' })],
    ['operator_invalid', escrow({ policy: 7 })],
    ['fee_not_accepted', escrow({ feeRecipient: SELLER, maxFeeBps: 1_001 })],
    ['fee_not_accepted', escrow({ feeRecipient: SELLER, minFeeBps: 11, maxFeeBps: 10 })],
    ['fee_not_accepted', escrow({ feeRecipient: SELLER, minFeeBps: -1 })],
    ['fee_not_accepted', escrow({ feeRecipient: SELLER, maxFeeBps: 0.5 })],
    ['fee_not_accepted', escrow({ maxFeeBps: 1 })],
    ['fee_not_accepted', escrow({ feeRecipient: 'me' })],
    ['expiry_not_accepted', escrow({ captureDeadline: nowSeconds + 59 })],
    ['expiry_not_accepted', escrow({ captureDeadline: nowSeconds + 31 * 86_400 })],
    ['expiry_not_accepted', escrow({ captureDeadline: `${nowSeconds + 3_600}` })],
    ['expiry_not_accepted', escrow({ captureDeadline: 1e300 })],
    ['expiry_not_accepted', escrow({ refundDeadline: nowSeconds + 3_599 })],
    ['expiry_not_accepted', escrow({ refundDeadline: nowSeconds + 3_601 + 366 * 86_400 })],
    ['facilitator_invalid', { scheme: 'upto' }],
    ['facilitator_invalid', { ...upto, extra: { facilitatorAddress: '0x12' } }],
    ['scheme_not_supported', { ...upto, extra: { ...upto.extra, assetTransferMethod: 'eip3009' } }],
    ['asset_without_permit', { ...upto, asset: '0x1' }],
    ['scheme_not_supported', { extra: { assetTransferMethod: 'permit2' } }],
    ['network_not_supported', { network: 'eip155:8453' }],
    ['asset_not_supported', { asset: SELLER }],
    ['payee_invalid', { payTo: '0x12' }],
    ['payee_invalid', { payTo: `0x${'0'.repeat(40)}` }],
    ['amount_invalid', { amount: '0' }],
    ['amount_invalid', { amount: '-1' }],
    ['amount_invalid', { amount: '1e3' }],
    ['amount_invalid', { amount: '9'.repeat(40) }],
    ['too_short', { maxTimeoutSeconds: 0 }],
  ])('are refused with a reason: %s %o', (reason, changes) => {
    expect(read(v2({ ...accept, ...changes }))[0]?.reason).toBe(reason)
  })

  it('name a maximum after the prices, where the chain has the contracts', () => {
    const offers = v2({ ...accept, ...upto, amount: '900' }, accept)
    expect(read(offers).map(({ scheme, units, reason }) => [scheme, units, reason])).toEqual([
      ['exact', 1000n, null],
      ['upto', 900n, null],
    ])
    expect(readOffers({ ...chain, hasUpto: false, hasEscrow: false }, offers, now)[1]?.reason).toBe(
      'scheme_not_supported',
    )
  })

  it('do not hide each other when one is garbage', () => {
    expect(read(v2(null, { scheme: 1 }, accept)).map(({ reason }) => reason)).toEqual([null])
    expect(read(answer([['payment-required', 'not base64 json']], '{"x402Version":1')).length).toBe(0)
    expect(read(v2({ ...accept, note: 'a\u0000b' })).length).toBe(0)
  })

  it('never make the reader fail', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.json(), (text, json) => {
        const headers = ['payment-required', 'www-authenticate', 'payment-receipt'].map(
          (name) => [name, text] as const,
        )
        expect(Array.isArray(read(answer([...headers, ['www-authenticate', `Payment ${text}`]], json)))).toBe(
          true,
        )
      }),
    )
  })

  it('are signed over as an MPP server reads it, with the nonce that it prescribes', () => {
    const [offer] = read(answer([['www-authenticate', Challenge.serialize(challenge)]]))
    if (offer === undefined) throw new Error('there is no offer')
    const nonce = derivePurchaseNonce({ purchaseId: 'buy_1', ...offer })
    expect(nonce).toBe(challengeHash(challenge))
    const message = {
      from: SELLER,
      to: SELLER,
      value: 1000n,
      validAfter: 0n,
      validBefore: 1n,
      nonce,
    } as const
    const header = credentialHeader({ ...offer, chainId: chain.id }, message, '0x12')
    expect(header.name).toBe('Authorization')
    expect(Credential.deserialize(header.value)).toMatchObject({
      challenge,
      payload: { type: 'authorization', nonce, value: '1000' },
      source: `did:pkh:eip155:84532:${SELLER}`,
    })
  })

  it('never carry the credential in a field that a stranger names', () => {
    const named = { ...challenge, header: 'Cookie' }
    expect(read(answer([['www-authenticate', Challenge.serialize(named)]]))[0]?.reason).toBe(
      'scheme_not_supported',
    )
  })
})

describe('the request of a purchase', () => {
  const ask = (asked: object) =>
    readRequest({ url: 'https://api.example.com/a#b', ...asked }, { loopback: false })

  it('passes on what it may, and sends objects as JSON', () => {
    expect(
      ask({ method: 'POST', body: { a: 1 }, headers: { Accept: 'text/plain', 'X-Trace': '1' } }),
    ).toMatchObject({
      url: new URL('https://api.example.com/a'),
      headers: { accept: 'text/plain', 'x-trace': '1', 'content-type': 'application/json' },
      body: '{"a":1}',
    })
  })

  it('passes on fields and bytes, and keeps logins out of what is hashed', () => {
    const given = { method: 'PUT', bodyBase64: 'AP8=', headers: { Cookie: 'a=b', 'If-Match': 'x' } } as const
    const read = ask({ ...given, authorization: { token: 'mine' } })
    expect(read).toMatchObject({
      headers: { 'if-match': 'x' },
      secrets: { cookie: 'a=b', authorization: 'Bearer mine' },
    })
    expect(read.body).toEqual(Buffer.from([0, 255]))
    expect(hashRequest(ask(given))).toBe(hashRequest(read))
    expect(hashRequest(ask({ ...given, bodyBase64: 'AP4=' }))).not.toBe(hashRequest(read))
  })

  it.each([
    [{ headers: { Authorization: 'x' } }],
    [{ headers: { 'PAYMENT-SIGNATURE': 'x' } }],
    [{ headers: { 'x-payment-response': 'x' } }],
    [{ headers: { 'X-Forwarded-For': '1.1.1.1' } }],
    [{ headers: { Host: 'x' } }],
    [{ headers: { 'X-A': 'a\r\nCookie: b' } }],
    [{ headers: { 'X-A': '1', 'x-a': '2' } }],
    [{ body: 'x' }],
    [{ method: 'POST', bodyBase64: 'eA' }],
    [{ method: 'POST', bodyBase64: 'eA==', body: 'x' }],
    [{ headers: { 'Bursar-Task': 'x' } }],
    [{ headers: { Connection: 'close' } }],
    [{ headers: { 'Proxy-Authorization': 'x' } }],
    [{ headers: { 'X-Long': 'x'.repeat(17_000) } }],
    [{ authorization: { token: 'a b' } }],
  ])('is refused: %o', (asked) => {
    expect(() => ask(asked)).toThrow(expect.objectContaining({ code: 'invalid_request' }))
  })

  it.each(['http://example.com/', 'https://127.0.0.1/', 'https://user@example.com/', 'file:///etc/passwd'])(
    'is refused for the URL %s',
    (url) => {
      expect(() => ask({ url })).toThrow(expect.objectContaining({ code: 'url_not_allowed' }))
    },
  )
})
