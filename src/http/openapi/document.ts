/** The OpenAPI 3.1 document, generated from the tools. @see https://spec.openapis.org/oas/v3.1.0 */

import { VERSION } from '../../base/version.ts'
import { type FailureCode, failures } from '../../failures/failure.ts'
import type { CatalogueEntry, JsonSchema } from '../../kernel/catalogue.ts'
import type { Services } from '../../kernel/context.ts'
import type { Tool } from '../../kernel/tool.ts'
import { mutatingMethods } from '../request.ts'
import { pathsOf } from '../tool-paths.ts'
import { responseExample } from './example-of.ts'
import { guide } from './guide.ts'
import { problemExamples, problemSchema } from './problem.ts'
import { WEBHOOK_TAG, webhookPaths, webhookSecurity } from './webhooks.ts'

/** Builds the document for this deployment's routes. */
export function openApiDocument(
  catalogue: readonly CatalogueEntry[],
  services: Pick<Services, 'settings' | 'identityProviders'>,
): Record<string, unknown> {
  const { settings } = services
  const paths: Record<string, Record<string, unknown>> = {}
  for (const entry of catalogue) {
    const [method = '', path = ''] = entry.tool.route.split(' ')
    for (const { name, at } of pathsOf(entry.tool, services))
      paths[at] = { ...paths[at], [method.toLowerCase()]: operationOf(entry, { method, path, name, at }) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Bursar',
      version: VERSION,
      description: guide(settings),
    },
    servers: [{ url: settings.origin }],
    tags: [...new Set([...catalogue.map(({ tool }) => tagOf(tool)), WEBHOOK_TAG])].map((name) => ({ name })),
    security: [{ bearer: [] }],
    paths: { ...paths, ...webhookPaths(failureResponses) },
    components: {
      schemas: { Problem: problemSchema },
      examples: problemExamples,
      securitySchemes: { ...securitySchemes, ...webhookSecurity },
    },
  }
}

/** Only REST has other formats than JSON. */
function csvNote({ csv }: Tool): string {
  return csv === undefined
    ? ''
    : ' With `Accept: text/csv` a page is returned as CSV, with a Link header (rel="next") to the next page.'
}

function operationOf(
  { tool, input, output }: CatalogueEntry,
  { method, path, name, at }: { method: string; path: string; name: string; at: string },
) {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  const members = propertiesOf(input)
  const parameters = Object.entries(members)
    .filter(
      ([member]) => at.includes(`{${member}}`) || (!inPath.includes(member) && !mutatingMethods.has(method)),
    )
    .map(([name, schema]) => ({
      name,
      in: inPath.includes(name) ? 'path' : 'query',
      required: requiredOf(input).includes(name),
      schema,
      ...exampleIn(tool.example, name),
    }))
  const hasBody = mutatingMethods.has(method) && Object.keys(members).some((name) => !inPath.includes(name))
  return {
    operationId: name,
    tags: [tagOf(tool)],
    summary: tool.summary,
    ...(tool.description === undefined ? {} : { description: `${tool.description}${csvNote(tool)}` }),
    ...(tool.who === 'public' ? { security: [] } : { security: securityOf(tool) }),
    parameters: [...parameters, ...(takesIdempotencyKey(tool) ? [idempotencyKey] : [])],
    ...(hasBody
      ? {
          requestBody: {
            required: true,
            content: {
              'application/json': {
                schema: bodyOf(input, inPath),
                ...(tool.example === undefined ? {} : { example: without(tool.example, inPath) }),
              },
            },
          },
        }
      : {}),
    responses: {
      200: {
        description: 'Success',
        content: {
          'application/json': { schema: output, example: responseExample(output, tool.example) },
          ...(tool.csv === undefined ? {} : { 'text/csv': { schema: { type: 'string' } } }),
          ...(tool.stream === undefined ? {} : { 'text/event-stream': { schema: { type: 'string' } } }),
        },
      },
      ...(tool.isSold
        ? {
            402: {
              description:
                'Payment required: an x402 challenge, v1 in this body and v2 in the PAYMENT-REQUIRED header',
              content: { 'application/json': { schema: challengeSchema } },
            },
          }
        : {}),
      ...failureResponses(failuresOf(tool)),
    },
  }
}

/** Lists the failures of a tool, its own first. */
function failuresOf(tool: Tool): FailureCode[] {
  const own: FailureCode[] = [...tool.failures, 'invalid_request', 'internal']
  const isMutation = mutatingMethods.has(tool.route.split(' ')[0] ?? '')
  if (tool.who !== 'public') own.push('unauthenticated', 'account_locked')
  if (tool.stepUp !== undefined) own.push('step_up_required')
  if (tool.stepUp === true) own.push('mfa_enrollment_required')
  if (tool.opensSession === true || tool.closesSession === true) own.push('cross_site_request')
  if (tool.who === 'person' || tool.who === 'admin' || (tool.scopes.length > 0 && !tool.isSold))
    own.push('insufficient_scope')
  if (isMutation || tool.rate !== undefined) own.push('rate_limited', 'provider_unavailable')
  if (isMutation) own.push('unsupported_media_type', 'body_too_large')
  if (isMutation && tool.who !== 'public') own.push('cross_site_request')
  if (takesIdempotencyKey(tool)) own.push('idempotency_in_progress', 'idempotency_key_reused')
  if (tool.rail !== undefined) own.push('rail_disabled', 'controls_unavailable')
  return [...new Set(own)]
}

/**
 * True if a repeated call replays the stored response. Tools that open a session do not, because a session token is
 * returned once.
 */
function takesIdempotencyKey(tool: Tool): boolean {
  return mutatingMethods.has(tool.route.split(' ')[0] ?? '') && tool.opensSession !== true
}

function failureResponses(codes: readonly FailureCode[]) {
  const statuses = [...new Set(codes.map((code) => failures[code].status))]
  return Object.fromEntries(
    statuses.map((status) => [
      status,
      {
        description: codes
          .filter((code) => failures[code].status === status)
          .map((code) => `\`${code}\`: ${failures[code].title}`)
          .join('; '),
        content: {
          'application/problem+json': {
            schema: { $ref: '#/components/schemas/Problem' },
            examples: Object.fromEntries(
              codes
                .filter((code) => failures[code].status === status)
                .map((code) => [code, { $ref: `#/components/examples/${code}` }]),
            ),
          },
        },
      },
    ]),
  )
}

/** Picks the parameter's value from the input example. */
function exampleIn(example: unknown, name: string): { example?: unknown } {
  if (typeof example !== 'object' || example === null) return {}
  const found = Object.entries(example).find(([member]) => member === name)
  return found === undefined ? {} : { example: found[1] }
}

function tagOf(tool: Tool): string {
  const [, area = '', name = area] = tool.route.split(' ')[1]?.split('/') ?? []
  return name.charAt(0).toUpperCase() + name.slice(1)
}

function securityOf(tool: Tool) {
  const session = [{ bearer: [] }, { session: [] }]
  return tool.who === 'person' || tool.who === 'admin' ? session : [...session, { agentSignature: [] }]
}

function propertiesOf(schema: JsonSchema): Record<string, unknown> {
  const { properties } = schema
  return typeof properties === 'object' && properties !== null ? { ...properties } : {}
}

/** The input schema without the members that are in the path. */
function bodyOf(input: JsonSchema, inPath: readonly string[]): JsonSchema {
  if (inPath.length === 0) return input
  const { required: _, ...rest } = input
  const required = requiredOf(input).filter((name) => !inPath.some((taken) => taken === name))
  return {
    ...rest,
    properties: without(propertiesOf(input), inPath),
    ...(required.length > 0 ? { required } : {}),
  }
}

function without(members: unknown, names: readonly string[]): unknown {
  if (typeof members !== 'object' || members === null) return members
  return Object.fromEntries(Object.entries(members).filter(([name]) => !names.includes(name)))
}

function requiredOf(schema: JsonSchema): readonly unknown[] {
  return Array.isArray(schema.required) ? schema.required : []
}

const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'A repeated request with the same key and body returns the stored response. Kept for 24 hours.',
  schema: { type: 'string', pattern: '^[\\x21-\\x7e]{1,255}$' },
}

const securitySchemes = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'API key',
    description: 'A developer API key (bsk_…) or a session token.',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: 'bursar_session',
    description: 'The session cookie (`__Host-bursar_session` over https).',
  },
  agentSignature: {
    type: 'apiKey',
    in: 'header',
    name: 'Signature',
    description: 'RFC 9421 HTTP message signature with Signature-Input and Content-Digest.',
  },
}

const challengeSchema = {
  type: 'object',
  required: ['x402Version', 'accepts'],
  properties: {
    x402Version: { type: 'integer', const: 1 },
    error: { type: 'string', description: 'Reason for the challenge.' },
    accepts: {
      type: 'array',
      items: { type: 'object' },
      description: 'Payment options in x402 v1 form.',
    },
  },
}
