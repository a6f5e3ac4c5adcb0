/** Push messages to browsers. @see https://www.rfc-editor.org/rfc/rfc8030 */

/** A browser's subscription. @property endpoint secret URL at its push service. @property keys base64url. */
export interface PushSubscription {
  readonly endpoint: string
  readonly keys: { readonly p256dh: string; readonly auth: string }
}

/** @property topic a later message of the same topic replaces one that was not delivered yet. */
export interface PushMessage {
  readonly payload: string
  readonly topic: string
  readonly lifetimeSeconds: number
}

/** `gone`: the subscription has ended. `failed`: an attempt may succeed later. */
export type PushOutcome = 'sent' | 'gone' | 'failed'

/** The port of push messages. Adapter: `web-push`. @property publicKey VAPID key, base64url, for subscribing. */
export interface PushSender {
  readonly publicKey: string
  send(subscription: PushSubscription, message: PushMessage): Promise<PushOutcome>
}
