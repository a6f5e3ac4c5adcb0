/**
 * The card processor port in the sandbox: issues its own cards, and simulates the card network by calling our own
 * webhook.
 */
import { z } from 'zod'
import type { Clock } from '../../core/base/clock.ts'
import { type NewId, randomDigits } from '../../core/base/ids.ts'
import { Failure } from '../../core/failures/failure.ts'
import { callProvider } from '../http-client.ts'
import { signWebhook } from '../standard-webhooks.ts'
import { buildAnswer, isAuthorizationRequest, readMessage } from './lithic-messages.ts'
import type { CardProcessor, SimulatedPurchase } from './port.ts'
import { sandboxNumber } from './sandbox-number.ts'
import { verifyCardWebhook, type WebhookSecrets } from './webhook-secrets.ts'

const TIMEOUT_MS = 10_000

/**
 * Dependencies of the sandbox processor.
 * @property webhookUrl URL of our own webhook.
 * @property dataKey derives card numbers.
 */
export interface SandboxCardParts extends WebhookSecrets {
  readonly webhookUrl: () => string
  readonly dataKey: Uint8Array
  readonly clock: Clock
  readonly newId: NewId
}

const decision = z.object({ result: z.string(), approved_amount: z.int().optional() })

const entryModes = {
  ecommerce: 'ECOMMERCE',
  contactless: 'CONTACTLESS',
  atm: 'ICC',
  magstripe: 'MAGNETIC_STRIPE',
  chip: 'ICC',
} as const

/** The sandbox's processor, which uses Lithic's message format. */
export function createSandboxProcessor({
  webhookUrl,
  secretsAt,
  eventSecretsAt,
  dataKey,
  clock,
  newId,
}: SandboxCardParts): CardProcessor {
  const send = async (message: Record<string, unknown>): Promise<unknown> => {
    const at = clock()
    const body = JSON.stringify(message)
    const [secret = ''] = (isAuthorizationRequest(message) ? secretsAt : eventSecretsAt)(at)
    const response = await callProvider({
      url: webhookUrl(),
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...signWebhook({ id: newId('evt', at), body, at }, secret),
      },
      body,
      timeoutMs: TIMEOUT_MS,
    })
    if (!response.ok)
      throw new Failure('provider_unavailable', `The webhook answered ${response.status}.`, { retryAfter: 1 })
    return JSON.parse(response.text)
  }
  return {
    name: 'sandbox',
    verify: (delivery, now) => verifyCardWebhook(delivery, { secretsAt, eventSecretsAt }, now),
    read: readMessage,
    answer: buildAnswer,
    issue: async ({ cardId, at }) => ({
      token: cardId,
      brand: 'Visa',
      last4: randomDigits(4),
      expMonth: at.getUTCMonth() + 1,
      expYear: at.getUTCFullYear() + 4,
    }),
    setStatus: async () => {},
    readCredential: async (card) => sandboxNumber(dataKey, card),
    reveal: (card) => ({ kind: 'shown', ...sandboxNumber(dataKey, card) }),
    expire: async ({ token, cardToken }) => {
      const status = 'EXPIRED'
      await send({ event_type: 'card_transaction.updated', token, card_token: cardToken, status, events: [] })
      return true
    },
    dispute: async ({ transactionToken }) => ({
      kind: 'dispute',
      token: `dispute-${transactionToken}`,
      transactionToken,
      status: 'open',
      units: 0n,
    }),
    playDispute: async ({ token, transactionToken, status, units }) => {
      await send({
        event_type: 'dispute.updated',
        token,
        transaction_token: transactionToken,
        status: { open: 'SUBMITTED', won: 'CASE_WON', lost: 'CASE_CLOSED' }[status],
        amount: Number(units),
        resolution_amount: Number(units),
      })
    },
    play: async (purchase) => {
      const event = newId('evt', clock())
      const token = purchase.raises ?? event
      const { result, approved_amount } = decision.parse(await send(buildRequest(purchase, { token, event })))
      const isApproved = result === 'APPROVED'
      const approved = isApproved ? BigInt(approved_amount ?? purchase.units) : 0n
      const isCleared = isApproved && purchase.cleared !== null
      if (isCleared) await send(buildClearing(purchase, token, approved))
      return { token, result, approved, isCleared }
    },
  }
}

function buildMerchant({ merchant, mcc, country }: SimulatedPurchase) {
  const acceptor = merchant
    .toUpperCase()
    .replaceAll(/[^A-Z0-9]/g, '')
    .slice(0, 15)
  return { acceptor_id: acceptor, descriptor: merchant, mcc, country }
}

function buildRequest(purchase: SimulatedPurchase, { token, event }: { token: string; event: string }) {
  const { channel } = purchase
  return {
    event_type: 'card_authorization.approval_request',
    token,
    event_token: event,
    status: 'AUTHORIZATION',
    amount: Number(purchase.units),
    cardholder_currency: 'USD',
    card: { token: purchase.cardToken },
    merchant: buildMerchant(purchase),
    pos: {
      entry_mode: { pan: channel === null ? 'UNKNOWN' : entryModes[channel] },
      terminal: { partial_approval_capable: false, type: channel === 'atm' ? 'ATM' : 'UNKNOWN' },
    },
  }
}

function buildClearing(purchase: SimulatedPurchase, token: string, approved: bigint) {
  return {
    event_type: 'card_transaction.updated',
    token,
    card_token: purchase.cardToken,
    status: 'SETTLED',
    merchant: buildMerchant(purchase),
    events: [
      { token: `${token}-a`, type: 'AUTHORIZATION', amount: Number(approved), result: 'APPROVED' },
      {
        token: `${token}-c`,
        type: 'CLEARING',
        amount: Number(purchase.cleared ?? approved),
        result: 'APPROVED',
      },
    ],
  }
}
