/**
 * The push port over Web Push: encrypted for the browser, signed for the push service, and sent to a URL that a browser
 * named, so that it is judged like any other URL of a stranger.
 * @see https://www.rfc-editor.org/rfc/rfc8291 @see https://www.rfc-editor.org/rfc/rfc8292
 */
import { createHash, type KeyObject } from 'node:crypto'
import webPush from 'web-push'
import type { Log } from '../../core/base/log.ts'
import type { RotatingKey } from '../../core/base/rotating-key.ts'
import { isPublicFetchError, type PublicFetch } from '../public-fetch.ts'
import type { PushMessage, PushSender, PushSubscription } from './port.ts'

const TIMEOUT_MS = 10_000
const MAX_ANSWER_BYTES = 4_096
/** Topics are at most 32 characters of base64url. */
const TOPIC_LENGTH = 32
/** Of push services for a key that the subscription was not made with. @see https://www.rfc-editor.org/rfc/rfc8292#section-4.2 */
const REFUSED_KEY: ReadonlySet<number> = new Set([400, 401, 403])

/** @property keys on P-256; a message that a push service refuses by the current one is sent by the previous one. @property origin contact that push services read; only an https origin is one. */
export interface WebPushParts {
  readonly keys: RotatingKey
  readonly origin: string
  readonly mode: 'sandbox' | 'production'
  readonly publicFetch: PublicFetch
  readonly log: Log
}

export function createWebPush({ keys, origin, mode, publicFetch, log }: WebPushParts): PushSender {
  const current = encodeKey(keys.current)
  const { previous } = keys
  const candidates = previous === null ? [current] : [current, encodeKey(previous)]
  const subject = origin.startsWith('https:') ? origin : 'mailto:push@bursar.invalid'
  /** @returns the status of the push service. */
  const sendBy = async (
    vapid: VapidKey,
    { endpoint, keys: encryption }: PushSubscription,
    { payload, topic, lifetimeSeconds }: PushMessage,
  ): Promise<number> => {
    const { method, headers, body } = webPush.generateRequestDetails(
      { endpoint, keys: { ...encryption } },
      payload,
      {
        vapidDetails: { ...vapid, subject },
        TTL: lifetimeSeconds,
        urgency: 'high',
        topic: createHash('sha256').update(topic).digest('base64url').slice(0, TOPIC_LENGTH),
      },
    )
    const { status } = await publicFetch({
      url: endpoint,
      method,
      headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])),
      body: body ?? undefined,
      maxBytes: MAX_ANSWER_BYTES,
      timeoutMs: TIMEOUT_MS,
      loopback: mode === 'sandbox',
    })
    return status
  }
  return {
    publicKey: current.publicKey,
    send: async (subscription, message) => {
      try {
        let status = 0
        for (const vapid of candidates) {
          status = await sendBy(vapid, subscription, message)
          if (!REFUSED_KEY.has(status)) break
        }
        if (status === 404 || status === 410) return 'gone'
        return status >= 200 && status < 300 ? 'sent' : 'failed'
      } catch (error) {
        if (!isPublicFetchError(error)) throw error
        log.warn({ problem: error.problem }, 'a push service was not reached')
        return error.problem === 'refused-url' ? 'gone' : 'failed'
      }
    },
  }
}

interface VapidKey {
  readonly publicKey: string
  readonly privateKey: string
}

/** base64url of the uncompressed point and of the number. */
function encodeKey(key: KeyObject): VapidKey {
  const { d = '', x = '', y = '' } = key.export({ format: 'jwk' })
  const point = Buffer.concat([Buffer.of(4), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')])
  return { publicKey: point.toString('base64url'), privateKey: d }
}
