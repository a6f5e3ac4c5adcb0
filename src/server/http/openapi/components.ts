/** Collects what several operations share, so that the document says it once and a generated client names it. */
import { type FailureCode, failures } from '../../../core/failures/failure.ts'
import type { JsonSchema } from '../../../kernel/catalogue.ts'

export interface Reference {
  readonly $ref: string
}

export class Components {
  readonly schemas: Record<string, JsonSchema> = {}
  /** Names of the responses of failures, by their JSON. */
  readonly responseNames = new Map<string, string>()
  readonly headers: Record<string, unknown> = {}

  /** Takes the named shapes out of a schema. @param side of the call that the schema describes. */
  schema({ $defs, ...schema }: JsonSchema, side: 'input' | 'output'): JsonSchema {
    for (const [name, shape] of Object.entries(isRecord($defs) ? $defs : {}))
      this.#add(name, concise(shape, side), side)
    const written = concise(schema, side)
    return isRecord(written) ? written : {}
  }

  /** The schema that a reference stands for. */
  resolve(schema: JsonSchema): JsonSchema {
    const { $ref } = schema
    return (
      (typeof $ref === 'string' ? this.schemas[$ref.replace('#/components/schemas/', '')] : undefined) ??
      schema
    )
  }

  /** Writes a schema under a name. */
  addNamed(name: string, schema: JsonSchema): Reference | JsonSchema {
    if ('$ref' in schema) return schema
    this.#add(name, schema, 'input')
    return { $ref: `#/components/schemas/${name}` }
  }

  /**
   * The failures of an operation: a response per status and set of codes. @param common those that it shares with most: they are the
   * default, in words with their statuses, because a reference for each status of each operation would be a third of the document.
   */
  failures(codes: readonly FailureCode[], common: CommonFailures): Record<string, unknown> {
    const shared = [...anywhere, ...common.codes]
    const others = codes.filter((code) => !shared.includes(code))
    // Linters want a response of the client's fault with each operation.
    const isRefusable = others.some((code) => failures[code].status < 500)
    const own: readonly FailureCode[] = isRefusable ? others : ['invalid_request', ...others]
    const statuses = [...new Set(own.map((code) => failures[code].status))]
    return Object.fromEntries([
      ...statuses.map((status) => [
        status,
        this.#response(own.filter((code) => failures[code].status === status).sort()),
      ]),
      ['default', this.#response(shared, common.name)],
    ])
  }

  /** The headers of a response, by reference. */
  referToHeaders(names: readonly HeaderName[]): Record<string, Reference> {
    return Object.fromEntries(
      names.map((name) => {
        this.headers[name] ??= { description: responseHeaders[name], schema: { type: 'string' } }
        return [name, { $ref: `#/components/headers/${name}` }]
      }),
    )
  }

  #response(codes: readonly FailureCode[], name?: string): unknown {
    const headers = this.referToHeaders([
      ...(codes.some((code) => failures[code].status === 429 || failures[code].status === 503)
        ? retryHeaders
        : []),
      ...(codes.includes('rate_limited') ? limitHeaders : []),
    ])
    const response = {
      description: codes
        .map((code) => `${failures[code].status} \`${code}\`: ${failures[code].title}`)
        .join('; '),
      ...(Object.keys(headers).length > 0 ? { headers } : {}),
      content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
    }
    const text = JSON.stringify(response)
    if (!this.responseNames.has(text)) this.responseNames.set(text, name ?? this.#shortName(codes))
    return response
  }

  /** The first of the codes and their number, or more of them where another response is named so. */
  #shortName(codes: readonly FailureCode[]): string {
    const used = new Set(this.responseNames.values())
    const names = codes.map((_, last) =>
      last === codes.length - 1 ? codes.join('.') : [...codes.slice(0, last + 1), codes.length].join('.'),
    )
    return names.find((name) => !used.has(name)) ?? codes.join('.')
  }

  /** An input refuses members that it does not know; an answer may gain some, so its shape does not say that it is closed. */
  #add(name: string, shape: unknown, side: 'input' | 'output'): void {
    if (isRecord(shape) && (side === 'input' || !(name in this.schemas))) this.schemas[name] = shape
  }
}

/** Failures of a kind of operations, beside those of any request. */
export interface CommonFailures {
  readonly name: string
  readonly codes: readonly FailureCode[]
}

const responseHeaders = {
  'Retry-After': 'Whole seconds after which the same request may succeed.',
  RateLimit: 'What is left of the window (IETF draft): `"class";r=remaining;t=seconds`.',
  'RateLimit-Policy': 'The limit (IETF draft): `"class";q=count;w=seconds`.',
  'Bursar-Hint': 'What could be done better: this call moved money without an `Idempotency-Key`.',
  'PAYMENT-REQUIRED': 'The x402 v2 challenge, base64 of its JSON.',
  'PAYMENT-RESPONSE': 'The receipt of an x402 v2 payment, base64 of its JSON.',
  'X-PAYMENT-RESPONSE': 'The receipt of an x402 v1 payment, base64 of its JSON.',
} as const

export type HeaderName = keyof typeof responseHeaders

const retryHeaders = ['Retry-After'] as const
const limitHeaders = ['RateLimit', 'RateLimit-Policy'] as const

/** Codes that any request may be answered with, from its credential to its body. */
const anywhere: readonly FailureCode[] = [
  'invalid_request',
  'ambiguous_credentials',
  'credential_in_query',
  'unauthenticated',
  'signature_invalid',
  'signature_expired',
  'signature_replayed',
  'digest_mismatch',
  'unknown_key',
  'delegation_invalid',
  'cross_site_request',
  'request_timeout',
  'body_too_large',
  'unsupported_media_type',
  'headers_too_large',
  'internal',
  'provider_unavailable',
]

/** Leaves out what a generator does not need: bounds of every integer of an answer, and patterns that a format already says. */
function concise(at: unknown, side: 'input' | 'output'): unknown {
  if (Array.isArray(at)) return at.map((one) => concise(one, side))
  if (!isRecord(at)) return at
  const { $ref, anyOf, propertyNames, ...rest } = at
  if (typeof $ref === 'string')
    return {
      $ref: $ref.replace('#/$defs/', '#/components/schemas/'),
      ...('description' in rest ? { description: rest.description } : {}),
    }
  const members = Object.entries(rest).filter(
    ([keyword, value]) =>
      !(side === 'output' && typeof value === 'number' && Math.abs(value) >= Number.MAX_SAFE_INTEGER) &&
      !(keyword === 'pattern' && 'format' in rest) &&
      // A map: its keys are described in words.
      !(keyword === 'required' && propertyNames !== undefined) &&
      !(keyword === 'additionalProperties' && value === false && side === 'output'),
  )
  const kept = Object.fromEntries(
    members.map(([name, value]) => [
      name,
      name === 'properties' && isRecord(value)
        ? Object.fromEntries(Object.entries(value).map(([member, one]) => [member, concise(one, side)]))
        : concise(value, side),
    ]),
  )
  return {
    ...(Array.isArray(anyOf) ? alternatives(anyOf.map((one) => concise(one, side))) : {}),
    ...kept,
  }
}

/** Null beside one plain type is written into the type. */
function alternatives(anyOf: readonly unknown[]): JsonSchema {
  const [only, ...others] = anyOf.filter((one) => !(isRecord(one) && one.type === 'null'))
  const isNullable = anyOf.length > 1 + others.length
  const isPlain = isRecord(only) && typeof only.type === 'string' && !('enum' in only) && !('const' in only)
  return isNullable && others.length === 0 && isPlain ? { ...only, type: [only.type, 'null'] } : { anyOf }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
