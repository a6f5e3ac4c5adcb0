import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { listWebhookSecrets } from '../../src/core/config/cards.ts'
import { signWebhook, verifyWebhook } from '../../src/providers/standard-webhooks.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const other = `whsec_${Buffer.from('another secret of the same kind').toString('base64')}`
/** The published example of the standard's libraries. */
const published = {
  id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  timestamp: 1614265330,
  body: '{"test": 2432232314}',
  signature: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
}
const at = new Date(published.timestamp * 1000)

function buildDelivery(changes: Partial<Record<'id' | 'timestamp' | 'signature' | 'body', string>> = {}) {
  const { body, ...sent } = { ...published, timestamp: String(published.timestamp), ...changes }
  const headers = new Map(Object.entries(sent).map(([name, value]) => [`webhook-${name}`, value]))
  return { header: (name: string) => headers.get(name), body: Buffer.from(body) }
}

describe('a standard webhook', () => {
  it('verifies the published example, and signs it identically', () => {
    expect(verifyWebhook(buildDelivery(), [secret], at)).toBe(published.id)
    expect(signWebhook({ id: published.id, body: published.body, at }, secret)['webhook-signature']).toBe(
      published.signature,
    )
  })

  it('verifies with any of several signatures and secrets', () => {
    const key = Buffer.from(other.slice(6), 'base64')
    const mac = createHmac('sha256', key).update(`${published.id}.${published.timestamp}.${published.body}`)
    const signature = `v1a,xxxx v1,AAAA v1,${mac.digest('base64')}`
    expect(verifyWebhook(buildDelivery({ signature }), [secret, other], at)).toBe(published.id)
    expect(() => verifyWebhook(buildDelivery({ signature }), [secret], at)).toThrow(/does not verify/)
  })

  it.each([
    ['another body', { body: '{"test": 2432232315}' }],
    ['another id', { id: 'msg_other' }],
    ['no signature', { signature: '' }],
    ['another version', { signature: published.signature.replace('v1,', 'v2,') }],
    ['a short signature', { signature: 'v1,AAAA' }],
    ['no timestamp', { timestamp: '' }],
    ['an odd timestamp', { timestamp: '1614265330.5' }],
  ])('rejects %s', (_name, changes) => {
    expect(() => verifyWebhook(buildDelivery(changes), [secret], at)).toThrow()
  })

  it('rejects five minutes and a second, early or late, and every delivery without a secret', () => {
    const shift = (seconds: number) => new Date(at.getTime() + seconds * 1000)
    expect(verifyWebhook(buildDelivery(), [secret], shift(300))).toBe(published.id)
    expect(() => verifyWebhook(buildDelivery(), [secret], shift(301))).toThrow(/timestamp/)
    expect(() => verifyWebhook(buildDelivery(), [secret], shift(-301))).toThrow(/timestamp/)
    expect(() => verifyWebhook(buildDelivery(), [], at)).toThrow(/does not verify/)
  })

  it('accepts the previous secret for a day after the rotation', () => {
    const cards = {
      url: '',
      apiKey: null,
      isPanReadable: false,
      treasury: null,
      spreadBps: 50,
      floatMicros: 50_000_000n,
      pullMs: 2_500,
      webhookSecret: other,
      eventsSecret: null,
      previous: { secret, rotatedAt: at },
    }
    const secretsAt = listWebhookSecrets(cards, null)
    const hour = 3_600_000
    expect(secretsAt(new Date(at.getTime() + 24 * hour))).toEqual([other, secret])
    expect(secretsAt(new Date(at.getTime() + 24 * hour + 1))).toEqual([other])
    expect(listWebhookSecrets({ ...cards, webhookSecret: null, previous: null }, 'sandbox')(at)).toEqual([
      'sandbox',
    ])
  })
})
