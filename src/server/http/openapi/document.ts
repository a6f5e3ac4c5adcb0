/** The OpenAPI 3.1 document, generated from the tools. @see https://spec.openapis.org/oas/v3.1.0 */

import { VERSION } from '../../../core/base/version.ts'
import type { FailureCode } from '../../../core/failures/failure.ts'
import type { CatalogueEntry, JsonSchema } from '../../../kernel/catalogue.ts'
import type { Services, Settings } from '../../../kernel/context.ts'
import type { Tool } from '../../../kernel/tool.ts'
import { sessionCookieName } from '../authenticate.ts'
import { mutatingMethods } from '../request.ts'
import { listPaths } from '../tool-paths.ts'
import { type CommonFailures, Components, type HeaderName } from './components.ts'
import { guide } from './guide.ts'
import { problemSchema } from './problem.ts'
import { type DescribedOperation, shareMembers, shareRepeated } from './share.ts'
import { findTag, listTags } from './tags.ts'
import { sentWebhooks, webhookPaths, webhookSecurity } from './webhooks.ts'

/** Builds the document for this deployment's routes. */
export function openApiDocument(
  catalogue: readonly CatalogueEntry[],
  services: Pick<Services, 'settings' | 'identityProviders'>,
): Record<string, unknown> {
  const { settings } = services
  const components = new Components()
  const described: Record<string, Record<string, DescribedOperation>> = {}
  for (const entry of catalogue) {
    const [method = '', path = ''] = entry.tool.route.split(' ')
    for (const { name, at } of listPaths(entry.tool, services))
      described[at] = {
        ...described[at],
        [method.toLowerCase()]: describeOperation(entry, { method, path, name, at }, components),
      }
  }
  const { paths, parameters, responses } = shareRepeated(
    { ...described, ...webhookPaths(components.failures([], { name: 'Any', codes: [] })) },
    components.responseNames,
  )
  return {
    openapi: '3.1.0',
    info: {
      title: 'Bursar',
      version: VERSION,
      description: guide(settings),
      contact: { name: 'Operator of this gateway', url: `${settings.origin}/docs` },
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: settings.origin, 'x-internal': false }],
    tags: listTags(Object.keys(paths)),
    security: Object.keys(securitySchemes(settings)).map((name) => ({ [name]: [] })),
    paths,
    ...('Event' in components.schemas ? { webhooks: sentWebhooks } : {}),
    components: {
      schemas: shareMembers({ Problem: problemSchema, ...components.schemas }),
      responses,
      parameters,
      headers: components.headers,
      securitySchemes: { ...securitySchemes(settings), ...webhookSecurity },
    },
  }
}

/** Only REST has other formats than JSON. */
/** A model reads the description alone; a reader of the API has time for the rest. */
function describeTool(tool: Tool): { description?: string } {
  const texts = [tool.description, tool.restDescription].filter((text) => text !== undefined)
  return texts.length === 0 ? {} : { description: `${texts.join(' ')}${csvNote(tool)}` }
}

function csvNote({ csv, documents }: Tool): string {
  return csv === undefined || documents !== undefined
    ? ''
    : ' With `Accept: text/csv` a page is returned as CSV, with a Link header (rel="next") to the next page.'
}

function describeOperation(
  { tool, named }: CatalogueEntry,
  { method, path, name, at }: { method: string; path: string; name: string; at: string },
  components: Components,
) {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  const input = components.schema(named.input, 'input')
  const members = readProperties(components.resolve(input))
  const required = readRequired(components.resolve(input))
  const parameters = Object.entries(members)
    .filter(
      ([member]) => at.includes(`{${member}}`) || (!inPath.includes(member) && !mutatingMethods.has(method)),
    )
    .map(([name, schema]) => ({
      name,
      in: inPath.includes(name) ? 'path' : 'query',
      ...(required.includes(name) ? { required: true } : {}),
      ...describeParameter(schema, components),
      ...exampleIn(tool.example, name),
    }))
  const hasBody = mutatingMethods.has(method) && Object.keys(members).some((name) => !inPath.includes(name))
  const typeName = toTypeName(tool.name)
  return {
    operationId: name,
    tags: [findTag(path)],
    summary: tool.summary,
    ...describeTool(tool),
    security:
      tool.who === 'public'
        ? []
        : [{ credential: tool.scopes }, ...(tool.orScopes === null ? [] : [{ credential: tool.orScopes }])],
    parameters: [
      ...parameters,
      ...(takesIdempotencyKey(tool) ? [idempotencyKey] : []),
      ...(tool.isSold ? paymentHeaders : []),
    ],
    ...(hasBody
      ? {
          requestBody: {
            required: true,
            content: {
              'application/json': {
                schema: components.addNamed(
                  `${typeName}Request`,
                  inPath.length === 0 ? input : describeBody(components.resolve(input), inPath),
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
        ...describeHeaders(tool, components),
        content: {
          'application/json': {
            schema: components.addNamed(`${typeName}Response`, components.schema(named.output, 'output')),
          },
          ...(tool.csv === undefined ? {} : { 'text/csv': { schema: { type: 'string' } } }),
          ...Object.fromEntries(
            Object.keys(tool.documents ?? {}).map((type) => [type, { schema: { type: 'string' } }]),
          ),
          ...(tool.download === undefined
            ? {}
            : { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } }),
          ...(tool.stream === undefined ? {} : { 'text/event-stream': { schema: { type: 'string' } } }),
        },
      },
      ...(tool.waits === undefined
        ? {}
        : {
            202: {
              description: `A person decides first: \`status\` is \`${tool.waits}\``,
              content: {
                'application/json': { schema: { $ref: `#/components/schemas/${typeName}Response` } },
              },
            },
          }),
      ...(tool.isSold
        ? {
            402: {
              description:
                'Payment required: an x402 challenge, v1 in this body and v2 in the PAYMENT-REQUIRED header',
              headers: components.referToHeaders(['PAYMENT-REQUIRED']),
              content: { 'application/json': { schema: challengeSchema } },
            },
          }
        : {}),
      ...components.failures(listFailures(tool), listCommonFailures(tool)),
    },
  }
}

/** `wallets.transfer_intent` is `WalletsTransferIntent`. */
function toTypeName(operation: string): string {
  return operation.replace(/(?:^|[._])(\w)/g, (_, first: string) => first.toUpperCase())
}

/** Lists the failures of a tool, its own first, without those that any request can meet. */
function listFailures(tool: Tool): FailureCode[] {
  const own: FailureCode[] = [...tool.failures]
  if (tool.proof === 'recent') own.push('step_up_required')
  if (tool.proof === 'step-up' || tool.proof === 'signature')
    own.push('step_up_required', 'mfa_enrollment_required')
  if (tool.who === 'person' || tool.who === 'admin' || (tool.scopes.length > 0 && !tool.isSold))
    own.push('insufficient_scope')
  if ((tool.who === 'person' || tool.who === 'account') && tool.role !== 'accountant')
    own.push('insufficient_role')
  if (tool.rail !== undefined) own.push('rail_disabled', 'controls_unavailable')
  return [...new Set(own)]
}

/** 423 for whoever has an account, 429 for what is limited, and the failures of idempotency. */
function listCommonFailures(tool: Tool): CommonFailures {
  const isLimited = tool.rate !== undefined || mutatingMethods.has(extractMethod(tool))
  const kinds: readonly (readonly [boolean, string, readonly FailureCode[]])[] = [
    // A public write of somebody signed in is refused, too, if the account is locked meanwhile.
    [tool.who !== 'public' || tool.effect !== 'read', 'Account', ['account_locked']],
    [isLimited, 'Limited', ['rate_limited']],
    [takesIdempotencyKey(tool), 'Write', ['idempotency_in_progress', 'idempotency_key_reused']],
  ]
  const held = kinds.filter(([is]) => is)
  return {
    name: held.map(([, name]) => name).join('') || 'Any',
    codes: held.flatMap(([, , codes]) => codes),
  }
}

/**
 * True if a repeated call replays the stored response. Tools that open a session do not, because a session token is
 * returned once.
 */
function takesIdempotencyKey(tool: Tool): boolean {
  return mutatingMethods.has(extractMethod(tool)) && tool.opensSession !== true
}

function extractMethod({ route }: Tool): string {
  return route.split(' ')[0] ?? ''
}

/** Headers of the answer that only some operations have. */
function describeHeaders(tool: Tool, components: Components) {
  const names: HeaderName[] = [
    ...(takesIdempotencyKey(tool) && tool.effect === 'spend' ? (['Bursar-Hint'] as const) : []),
    ...(tool.isSold ? (['PAYMENT-RESPONSE', 'X-PAYMENT-RESPONSE'] as const) : []),
  ]
  return names.length === 0 ? {} : { headers: components.referToHeaders(names) }
}

/** A parameter's description stands beside its schema, where viewers show it; that of a named schema is repeated there. */
function describeParameter(
  schema: unknown,
  components: Components,
): { description?: unknown; schema: unknown } {
  if (!isSchema(schema)) return { schema }
  const { description = components.resolve(schema).description, ...rest } = schema
  return { ...(description === undefined ? {} : { description }), schema: rest }
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Picks the parameter's value from the input example. */
function exampleIn(example: unknown, name: string): { example?: unknown } {
  if (typeof example !== 'object' || example === null) return {}
  const found = Object.entries(example).find(([member]) => member === name)
  return found === undefined ? {} : { example: found[1] }
}

function readProperties(schema: JsonSchema): Record<string, unknown> {
  const { properties } = schema
  return typeof properties === 'object' && properties !== null ? { ...properties } : {}
}

/** The input schema without the members that are in the path. */
function describeBody(input: JsonSchema, inPath: readonly string[]): JsonSchema {
  if (inPath.length === 0) return input
  const { required: _, ...rest } = input
  const required = readRequired(input).filter((name) => !inPath.some((taken) => taken === name))
  return {
    ...rest,
    properties: without(readProperties(input), inPath),
    ...(required.length > 0 ? { required } : {}),
  }
}

function without(members: unknown, names: readonly string[]): unknown {
  if (typeof members !== 'object' || members === null) return members
  return Object.fromEntries(Object.entries(members).filter(([name]) => !names.includes(name)))
}

function readRequired(schema: JsonSchema): readonly unknown[] {
  return Array.isArray(schema.required) ? schema.required : []
}

const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  description:
    'A repeated request with the same key and body returns the stored response, with `Idempotency-Replayed: true`. Kept for 24 hours.',
  schema: { type: 'string', pattern: '^[\\x21-\\x7e]{1,255}$' },
}

/** All headers of a request together have at most so many. */
const MAX_HEADER_BYTES = 16_384

/** A payment of either generation; the challenge says what to sign. */
const paymentHeaders = [
  ['PAYMENT-SIGNATURE', 'The x402 v2 payment, base64 of its JSON.'],
  ['X-PAYMENT', 'The x402 v1 payment, base64 of its JSON.'],
].map(([name = '', description]) => ({
  name,
  in: 'header',
  description,
  schema: { type: 'string', maxLength: MAX_HEADER_BYTES },
}))

/**
 * Operations name the first alone, because a request carries one credential: a generated client that is offered more would send them all.
 * The document names them all: what else is accepted in its place.
 */
function securitySchemes({ origin }: Pick<Settings, 'origin'>) {
  return {
    credential: {
      type: 'http',
      scheme: 'bearer',
      bearerFormat: 'API key',
      description:
        'An API key (`bsk_…`), a session token or an OAuth access token. An operation lists the scopes that a key needs.',
    },
    sessionCookie: {
      type: 'apiKey',
      in: 'cookie',
      name: sessionCookieName(origin),
      description: 'A person’s session in a browser.',
    },
    messageSignature: {
      type: 'apiKey',
      in: 'header',
      name: 'Signature',
      description:
        'A registered agent’s RFC 9421 signature (Ed25519), with `Signature-Input` and, where there is a body, `Content-Digest`.',
    },
    oauth: {
      type: 'oauth2',
      description:
        'Grants of MCP clients: accepted at `/mcp` only. The consent page shows the scopes. Access tokens are JWTs of ten minutes (RFC9068, RFC8725).',
      flows: {
        authorizationCode: {
          authorizationUrl: `${origin}/oauth/authorize`,
          tokenUrl: `${origin}/oauth/token`,
          refreshUrl: `${origin}/oauth/token`,
          scopes: {},
        },
      },
    },
  }
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
