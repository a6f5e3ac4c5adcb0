/**
 * Secrets of Lithic's webhooks: one signs the authorization stream, another the subscription of events. Neither is
 * accepted for the other, so that a leaked one cannot ask for an approval, or book a clearing.
 * @see https://docs.lithic.com/docs/auth-stream-access-asa
 * @see https://docs.lithic.com/docs/events-api
 */
import { parseJson } from '../../core/base/json.ts'
import { verifyWebhook } from '../standard-webhooks.ts'
import { isAuthorizationRequest } from './lithic-messages.ts'
import type { WebhookDelivery } from './port.ts'

/** Secrets valid at a moment, newest first. */
export interface WebhookSecrets {
  readonly secretsAt: (now: Date) => readonly string[]
  readonly eventSecretsAt: (now: Date) => readonly string[]
}

/** Verifies a webhook with the secret of its kind. @returns its id. @throws Failure `signature_invalid`. */
export function verifyCardWebhook(
  delivery: WebhookDelivery,
  { secretsAt, eventSecretsAt }: WebhookSecrets,
  now: Date,
): string {
  const isStream = isAuthorizationRequest(readBody(delivery.body))
  return verifyWebhook(delivery, (isStream ? secretsAt : eventSecretsAt)(now), now)
}

/** Parses as the handler does, to choose the secret; a body that the handler cannot read counts as an event. */
function readBody(body: Uint8Array): unknown {
  try {
    return parseJson(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    return null
  }
}
