/** The card processor port over Lithic. @see https://docs.lithic.com/reference/postcards */
import { createHmac } from 'node:crypto'
import { z } from 'zod'
import type { Log } from '../../core/base/log.ts'
import { Failure } from '../../core/failures/failure.ts'
import { callProvider } from '../http-client.ts'
import { disputeAtLithic, expireAuthorization } from './lithic-disputes.ts'
import { buildAnswer, readMessage } from './lithic-messages.ts'
import type { CardProcessor, SingleUseOrder } from './port.ts'
import { verifyCardWebhook, type WebhookSecrets } from './webhook-secrets.ts'

/** Time limit for the whole answer; a person is waiting. */
const TIMEOUT_MS = 5_000

/**
 * Connection to Lithic.
 * @property apiKey null: cards cannot be issued. @property isPanReadable numbers may pass this gateway; absent: no.
 */
export interface LithicParts extends WebhookSecrets {
  readonly url: string
  readonly apiKey: string | null
  readonly isPanReadable?: boolean
  readonly log: Log
}

const created = z.object({
  token: z.string().min(1).max(64),
  last_four: z.string().regex(/^\d{4}$/),
  exp_month: z.string().regex(/^\d{1,2}$/),
  exp_year: z.string().regex(/^\d{4}$/),
})

/** @see https://docs.lithic.com/reference/getcardbytoken */
const numbered = z.object({
  token: z.string(),
  pan: z.string().regex(/^\d{12,19}$/),
  cvv: z.string().regex(/^\d{3,4}$/),
})

/** @see https://docs.lithic.com/reference/patchcardbytoken */
const states = { active: 'OPEN', frozen: 'PAUSED', canceled: 'CLOSED' } as const

export function createLithicProcessor({
  url,
  apiKey,
  isPanReadable = false,
  log,
  ...secrets
}: LithicParts): CardProcessor {
  return {
    name: 'lithic',
    verify: (delivery, now) => verifyCardWebhook(delivery, secrets, now),
    read: readMessage,
    answer: buildAnswer,
    issue: async ({ cardId, nickname, singleUse }) => {
      if (apiKey === null)
        throw new Failure('provider_unavailable', 'This deployment does not issue cards.', {
          isFinal: true,
          retryAfter: 60,
        })
      try {
        const response = await callProvider({
          url: `${url}/v1/cards`,
          method: 'POST',
          headers: {
            authorization: apiKey,
            'content-type': 'application/json',
            'idempotency-key': toUuid(cardId),
          },
          body: JSON.stringify({ ...describeUse(singleUse), state: 'OPEN', memo: nickname ?? cardId }),
          timeoutMs: TIMEOUT_MS,
        })
        if (isRefusal(response.status)) throw buildRefusal(response.status)
        if (!response.ok) throw new Error(`the processor answered ${response.status}`)
        const card = created.parse(JSON.parse(response.text))
        return {
          token: card.token,
          brand: 'Visa',
          last4: card.last_four,
          expMonth: Number(card.exp_month),
          expYear: Number(card.exp_year),
        }
      } catch (cause) {
        log.error({ err: cause, cardId }, 'a card could not be issued')
        if (cause instanceof Failure) throw cause
        throw new Failure(
          'provider_unavailable',
          'The card processor did not confirm the card; the request is retried.',
          {
            retryAfter: 5,
            hint: 'Send the request again with the same idempotency key, or read GET /api/cards in a minute.',
          },
          { cause },
        )
      }
    },
    setStatus:
      apiKey === null
        ? null
        : async ({ token, status }) => {
            const state = states[status]
            if ((await setState({ url, apiKey }, { token, state })) !== state)
              throw new Failure(
                'provider_unavailable',
                'The card processor did not confirm the state of a card.',
                {
                  retryAfter: 15,
                },
              )
          },
    readCredential: async ({ cardId, token }) => {
      if (apiKey === null || !isPanReadable) return null
      try {
        const response = await callProvider({
          url: `${url}/v1/cards/${encodeURIComponent(token)}`,
          method: 'GET',
          headers: { authorization: apiKey },
          timeoutMs: TIMEOUT_MS,
        })
        if (!response.ok) throw new Error(`the processor answered ${response.status}`)
        const card = numbered.safeParse(JSON.parse(response.text))
        // A parser's error may quote what it has read.
        if (!card.success || card.data.token !== token)
          throw new Error('the processor answered with no number')
        return { pan: card.data.pan, cvc: card.data.cvv }
      } catch {
        log.error({ cardId }, 'the number of a card could not be read')
        throw new Failure('provider_unavailable', 'The card processor did not give the number of the card.', {
          retryAfter: 5,
          hint: 'Send the request again with the same idempotency key.',
        })
      }
    },
    reveal: ({ token }, expiresAt) => {
      if (apiKey === null)
        throw new Failure('provider_unavailable', 'This deployment does not show card numbers.', {
          isFinal: true,
          retryAfter: 60,
        })
      return { kind: 'embedded', url: embedUrl({ url, apiKey }, { token, expiresAt }) }
    },
    expire: apiKey === null ? null : (transaction) => expireAuthorization({ url, apiKey }, transaction),
    dispute: apiKey === null ? null : (request) => disputeAtLithic({ url, apiKey }, request),
    playDispute: null,
    play: null,
  }
}

/**
 * The processor limits a card for one purchase too. A card locked to the first merchant that charges it takes increments of
 * that charge; one for a single use is closed by its first.
 * @see https://docs.lithic.com/reference/postcards
 */
function describeUse(singleUse: SingleUseOrder | null): Record<string, unknown> {
  if (singleUse === null) return { type: 'VIRTUAL' }
  const limit = { spend_limit: Number(singleUse.units), spend_limit_duration: 'FOREVER' }
  return { type: singleUse.isMerchantLocked ? 'MERCHANT_LOCKED' : 'SINGLE_USE', ...limit }
}

const stated = z.object({ token: z.string(), state: z.string() })

/**
 * Changes a card's state, and reads it when the change is refused: a closed card cannot be closed again.
 * @returns the state at the processor; null when it is unknown.
 */
async function setState(
  { url, apiKey }: { url: string; apiKey: string },
  { token, state }: { token: string; state: string },
): Promise<string | null> {
  const ask = async (method: 'GET' | 'PATCH') => {
    const response = await callProvider({
      url: `${url}/v1/cards/${encodeURIComponent(token)}`,
      method,
      headers: { authorization: apiKey, ...(method === 'GET' ? {} : { 'content-type': 'application/json' }) },
      ...(method === 'GET' ? {} : { body: JSON.stringify({ state }) }),
      timeoutMs: TIMEOUT_MS,
    })
    if (!response.ok) return response.status
    const card = stated.parse(JSON.parse(response.text))
    return card.token === token ? card.state : 0
  }
  const changed = await ask('PATCH')
  const found = typeof changed === 'number' && isRefusal(changed) ? await ask('GET') : changed
  return typeof found === 'number' ? null : found
}

/**
 * Signs the request of a page that shows the card's number, which passes no server of ours.
 * @see https://docs.lithic.com/docs/embedded-card-ui
 */
function embedUrl(
  { url, apiKey }: { url: string; apiKey: string },
  { token, expiresAt }: { token: string; expiresAt: Date },
): string {
  const request = JSON.stringify({ token, expiration: expiresAt.toISOString() })
  const page = new URL(`${url}/v1/embed/card`)
  page.searchParams.set('embed_request', Buffer.from(request).toString('base64'))
  page.searchParams.set('hmac', createHmac('sha256', apiKey).update(request).digest('base64'))
  return page.href
}

/** A final rejection: neither a conflict nor a status that a retry may fix. */
function isRefusal(status: number): boolean {
  return status >= 400 && status < 500 && ![408, 409, 425, 429].includes(status)
}

function buildRefusal(status: number): Failure {
  return new Failure('provider_unavailable', `The card processor refused the card (${status}).`, {
    isFinal: true,
    retryAfter: 60,
  })
}

/** Converts our card id, a UUID in base32, to the UUID that the processor requires for idempotency. */
function toUuid(cardId: string): string {
  const digits = [...cardId.slice(-26)].reduce(
    (value, digit) => value * 32n + BigInt('0123456789abcdefghjkmnpqrstvwxyz'.indexOf(digit)),
    0n,
  )
  const hex = digits.toString(16).padStart(32, '0')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}
