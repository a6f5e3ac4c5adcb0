/** Verification of webhooks (Standard Webhooks v1). @see https://www.standardwebhooks.com */
import { Webhook } from 'standardwebhooks'
import type { Event } from './operations.ts'

export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>

/**
 * Verifies that a webhook comes from the gateway, and was sent within the last five minutes.
 * @param rawBody the body as it arrived: a parsed and rewritten one has another signature
 * @param secret `whsec_…`, as returned once when the endpoint was created
 * @returns the event @throws Error if the signature is missing, wrong or old
 */
export function verifyWebhook(rawBody: string | Uint8Array, headers: WebhookHeaders, secret: string): Event {
  const named = headers instanceof Headers ? Object.fromEntries(headers) : lowerCased(headers)
  const text = typeof rawBody === 'string' ? rawBody : new TextDecoder().decode(rawBody)
  return new Webhook(secret).verify(text, named) as Event
}

function lowerCased(headers: Readonly<Record<string, string | readonly string[] | undefined>>) {
  const entries = Object.entries(headers).map(([name, value]) => [
    name.toLowerCase(),
    typeof value === 'string' ? value : (value?.[0] ?? ''),
  ])
  return Object.fromEntries(entries) as Record<string, string>
}
