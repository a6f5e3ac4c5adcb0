/** Webhooks in the OpenAPI document: those of providers, which arrive at our routes, and those that we send. */
import type { DescribedOperation } from './share.ts'
import { findTag } from './tags.ts'

const received = {
  type: 'object',
  required: ['received', 'eventId'],
  properties: {
    received: { type: 'boolean', const: true, description: 'Always true: the event is stored.' },
    eventId: { type: ['string', 'null'], description: 'The provider’s event id.' },
  },
}
const decided = {
  type: 'object',
  required: ['result', 'token'],
  properties: {
    result: { type: 'string', description: '`APPROVED`, or the reason for the decline.' },
    token: { type: 'string', description: 'The processor’s token for the purchase.' },
    approved_amount: { type: 'integer', description: 'Approved amount in cents, for a partial approval.' },
  },
}

const routes = [
  {
    path: '/api/webhooks/lithic',
    name: 'webhooks.lithic',
    security: 'lithicSignature',
    summary: 'Authorize a card purchase in real time, or record a card transaction update.',
    answer: { anyOf: [decided, received] },
    example: { event_type: 'card_authorization.approval_request', token: 'a9c6…', amount: 1250 },
    answered: { result: 'APPROVED', token: 'a9c6…' },
  },
  {
    path: '/api/webhooks/bridge',
    name: 'webhooks.bridge',
    security: 'bridgeSignature',
    summary: 'Record a status change of a deposit or payout.',
    answer: received,
    example: { event_id: 'wh_1', event_category: 'virtual_account.activity', event_object_id: 'va_1' },
    answered: { received: true, eventId: 'wh_1' },
  },
  {
    path: '/api/webhooks/sumsub',
    name: 'webhooks.sumsub',
    security: 'sumsubSignature',
    summary: 'Refresh an identity review that may have changed.',
    answer: received,
    example: { type: 'applicantReviewed', applicantId: '5cb5…' },
    answered: { received: true, eventId: '5cb5…' },
  },
] as const

/** Security schemes of the webhook senders. */
export const webhookSecurity = {
  lithicSignature: header('webhook-signature', 'Standard Webhooks: HMAC-SHA-256 of id, timestamp and body.'),
  bridgeSignature: header('x-webhook-signature', '`t=<ms>,v0=<base64>`: RSA-SHA-256 over a digest of both.'),
  sumsubSignature: header('x-payload-digest', 'HMAC of the body; x-payload-digest-alg names the hash.'),
}

/** @param failureResponses those of any request. */
export function webhookPaths(
  failureResponses: Readonly<Record<string, unknown>>,
): Record<string, Record<string, DescribedOperation>> {
  const operations = routes.map(({ path, name, security, summary, answer, example, answered }) => {
    const post = {
      operationId: name,
      tags: [findTag(path)],
      summary,
      description: 'For the provider alone: signed by it, and stored once, however often it is delivered.',
      security: [{ [security]: [] }],
      parameters: [],
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: { type: 'object', description: 'As the provider documents it.' },
            example,
          },
        },
      },
      responses: {
        200: {
          description: 'Success',
          content: { 'application/json': { schema: answer, example: answered } },
        },
        ...failureResponses,
      },
    }
    return [path, { post }] as const
  })
  return Object.fromEntries(operations)
}

/** The requests that webhook endpoints receive. */
export const sentWebhooks = {
  event: {
    post: {
      operationId: 'webhooks.event',
      tags: ['Webhook endpoints'],
      summary: 'An event, sent to your webhook endpoints until one answers with 2xx.',
      description:
        'Signed as Standard Webhooks v1 with the secret of the endpoint; `verifyWebhook` of the client verifies it. Deliveries may repeat and overtake each other: `webhook-id` is the id of the event, `sequence` its place.',
      security: [],
      parameters: ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => ({
        name,
        in: 'header',
        required: true,
        schema: { type: 'string' },
      })),
      requestBody: {
        required: true,
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Event' } } },
      },
      responses: {
        '2XX': { description: 'Delivered, if within ten seconds.' },
        '4XX': { description: 'Tried again, like every other answer.' },
      },
    },
  },
}

function header(name: string, description: string) {
  return { type: 'apiKey', in: 'header', name, description }
}
