/** The OpenAPI 3.1 document, generated from the tools. @see https://spec.openapis.org/oas/v3.1.0 */

import { VERSION } from '../../base/version.ts'
import type { FailureCode } from '../../failures/failure.ts'
import type { CatalogueEntry, JsonSchema } from '../../kernel/catalogue.ts'
import type { Services } from '../../kernel/context.ts'
import type { Tool } from '../../kernel/tool.ts'
import { mutatingMethods } from '../request.ts'
import { pathsOf } from '../tool-paths.ts'
import { Components } from './components.ts'
import { responseExample } from './example-of.ts'
import { guide } from './guide.ts'
import { problemSchema } from './problem.ts'
import { tagOf, tagsOf } from './tags.ts'
import { sentWebhooks, webhookPaths, webhookSecurity } from './webhooks.ts'

/** Builds the document for this deployment's routes. */
export function openApiDocument(
  catalogue: readonly CatalogueEntry[],
  services: Pick<Services, 'settings' | 'identityProviders'>,
): Record<string, unknown> {
  const { settings } = services
  const components = new Components()
  const paths: Record<string, Record<string, unknown>> = {}
  for (const entry of catalogue) {
    const [method = '', path = ''] = entry.tool.route.split(' ')
    for (const { name, at } of pathsOf(entry.tool, services))
      paths[at] = {
        ...paths[at],
        [method.toLowerCase()]: operationOf(entry, { method, path, name, at }, components),
      }
  }
  const allPaths = { ...paths, ...webhookPaths((codes) => components.failures(codes)) }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Bursar',
      version: VERSION,
      description: guide(settings),
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: settings.origin }],
    tags: tagsOf(Object.keys(allPaths)),
    security: [{ credential: [] }],
    paths: allPaths,
    ...('Event' in components.schemas ? { webhooks: sentWebhooks } : {}),
    components: {
      schemas: { Problem: problemSchema, ...components.schemas },
      responses: components.responses,
      parameters: components.parameters,
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
  { tool, output, named }: CatalogueEntry,
  { method, path, name, at }: { method: string; path: string; name: string; at: string },
  components: Components,
) {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  const input = components.schema(named.input, 'input')
  const members = propertiesOf(components.resolve(input))
  const required = requiredOf(components.resolve(input))
  const parameters = Object.entries(members)
    .filter(
      ([member]) => at.includes(`{${member}}`) || (!inPath.includes(member) && !mutatingMethods.has(method)),
    )
    .map(([name, schema]) =>
      components.parameter({
        name,
        in: inPath.includes(name) ? 'path' : 'query',
        required: required.includes(name),
        schema,
        ...exampleIn(tool.example, name),
      }),
    )
  const hasBody = mutatingMethods.has(method) && Object.keys(members).some((name) => !inPath.includes(name))
  const typeName = typeNameOf(tool.name)
  return {
    operationId: name,
    tags: [tagOf(path)],
    summary: tool.summary,
    ...(tool.description === undefined ? {} : { description: `${tool.description}${csvNote(tool)}` }),
    security: tool.who === 'public' ? [] : [{ credential: tool.scopes }],
    parameters: [...parameters, ...(takesIdempotencyKey(tool) ? [components.parameter(idempotencyKey)] : [])],
    ...(hasBody
      ? {
          requestBody: {
            required: true,
            content: {
              'application/json': {
                schema: components.named(
                  `${typeName}Request`,
                  inPath.length === 0 ? input : bodyOf(components.resolve(input), inPath),
                ),
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
          'application/json': {
            schema: components.named(`${typeName}Response`, components.schema(named.output, 'output')),
            example: responseExample(output, tool.example),
          },
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
      ...components.failures(failuresOf(tool)),
    },
  }
}

/** `wallets.transfer_intent` is `WalletsTransferIntent`. */
function typeNameOf(operation: string): string {
  return operation.replace(/(?:^|[._])(\w)/g, (_, first: string) => first.toUpperCase())
}

/** Lists the failures of a tool, its own first, without those that any request can meet. */
function failuresOf(tool: Tool): FailureCode[] {
  const own: FailureCode[] = [...tool.failures, 'invalid_request']
  if (tool.stepUp !== undefined) own.push('step_up_required')
  if (tool.stepUp === true) own.push('mfa_enrollment_required')
  if (tool.who === 'person' || tool.who === 'admin' || (tool.scopes.length > 0 && !tool.isSold))
    own.push('insufficient_scope')
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

/** Picks the parameter's value from the input example. */
function exampleIn(example: unknown, name: string): { example?: unknown } {
  if (typeof example !== 'object' || example === null) return {}
  const found = Object.entries(example).find(([member]) => member === name)
  return found === undefined ? {} : { example: found[1] }
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

/** One scheme, because a request carries one credential: a generated client that offers more would send them all. */
const securitySchemes = {
  credential: {
    type: 'http',
    scheme: 'bearer',
    description:
      'An API key (`bsk_…`), a session token or an OAuth access token. An operation lists the scopes that a key needs. Instead of this header, browsers send the session cookie, and agents sign the request (RFC 9421).',
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
