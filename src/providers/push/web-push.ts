/**
 * The push port over Web Push: encrypted for the browser, signed for the push service, and sent to a URL that a browser
 * named, so that it is judged like any other URL of a stranger.
 * @see https://www.rfc-editor.org/rfc/rfc8291 @see https://www.rfc-editor.org/rfc/rfc8292
 */
import { createECDH, createHash } from 'node:crypto'
import webPush from 'web-push'
import type { Log } from '../../core/base/log.ts'
import { derivedSeed } from '../../core/base/seal.ts'
import { isPublicFetchError, type PublicFetch } from '../public-fetch.ts'
import type { PushSender } from './port.ts'

const TIMEOUT_MS = 10_000
const MAX_ANSWER_BYTES = 4_096
/** Topics are at most 32 characters of base64url. */
const TOPIC_LENGTH = 32

/** @property origin contact that push services read; only an https origin is one. */
export interface WebPushParts {
  readonly dataKey: Uint8Array
  readonly origin: string
  readonly mode: 'sandbox' | 'production'
  readonly publicFetch: PublicFetch
  readonly log: Log
}

export function createWebPush({ dataKey, origin, mode, publicFetch, log }: WebPushParts): PushSender {
  const vapid = vapidKeys(dataKey)
  const subject = origin.startsWith('https:') ? origin : 'mailto:push@bursar.invalid'
  return {
    publicKey: vapid.publicKey,
    send: async ({ endpoint, keys }, { payload, topic, lifetimeSeconds }) => {
      const { method, headers, body } = webPush.generateRequestDetails(
        { endpoint, keys: { ...keys } },
        payload,
        {
          vapidDetails: { ...vapid, subject },
          TTL: lifetimeSeconds,
          urgency: 'high',
          topic: createHash('sha256').update(topic).digest('base64url').slice(0, TOPIC_LENGTH),
        },
      )
      try {
        const { status } = await publicFetch({
          url: endpoint,
          method,
          headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])),
          body: body ?? undefined,
          maxBytes: MAX_ANSWER_BYTES,
          timeoutMs: TIMEOUT_MS,
          loopback: mode === 'sandbox',
        })
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

/** The deployment's P-256 key: the same in every process, stored in none. A seed beyond the curve's order is no key. */
function vapidKeys(dataKey: Uint8Array): { publicKey: string; privateKey: string } {
  for (let attempt = 0; ; attempt += 1) {
    const privateKey = Buffer.from(derivedSeed(dataKey, `web push ${attempt}`))
    const curve = createECDH('prime256v1')
    try {
      curve.setPrivateKey(privateKey)
    } catch {
      continue
    }
    const publicKey = curve.getPublicKey('base64url')
    return { publicKey, privateKey: privateKey.toString('base64url') }
  }
}
