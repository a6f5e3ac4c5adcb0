/**
 * x402 v2 extensions: resource discovery, payment identifiers and quote locks.
 * @see https://github.com/coinbase/x402/tree/main/specs/extensions
 */
import { z } from 'zod'

/** Client-chosen payment identifier. */
const identifier = z.string().regex(/^[A-Za-z0-9_-]{16,128}$/)

const DRAFT = 'https://json-schema.org/draft/2020-12/schema'

/** Extensions that a payment may echo. */
export const echoedPaymentExtensions = z.object({
  'payment-identifier': z.object({ info: z.object({ id: identifier.optional() }) }).optional(),
  'quote-lock': z
    .object({ info: z.object({ token: z.string().max(4_096) }) })
    .optional()
    .catch(undefined),
})

/**
 * Extensions of every challenge; the quote lock is added per challenge. @param example a valid query for the
 * resource.
 */
export function buildExtensions(example: Readonly<Record<string, string>>) {
  const names = Object.keys(example)
  return {
    bazaar: {
      info: {
        input: { type: 'http', method: 'GET', queryParams: example },
        output: { type: 'json' },
      },
      schema: {
        $schema: DRAFT,
        type: 'object',
        properties: {
          input: {
            type: 'object',
            properties: {
              type: { type: 'string', const: 'http' },
              method: { type: 'string', enum: ['GET'] },
              queryParams: {
                type: 'object',
                properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
                required: names,
              },
            },
            required: ['type', 'method'],
            additionalProperties: false,
          },
          output: { type: 'object', properties: { type: { type: 'string' } }, required: ['type'] },
        },
        required: ['input'],
      },
    },
    'payment-identifier': {
      info: { required: false },
      schema: {
        $schema: DRAFT,
        type: 'object',
        properties: {
          required: { type: 'boolean' },
          id: { type: 'string', minLength: 16, maxLength: 128, pattern: '^[a-zA-Z0-9_-]+$' },
        },
        required: ['required'],
      },
    },
  }
}
