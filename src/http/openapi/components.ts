/** Collects what several operations share, so that the document says it once and a generated client names it. */
import { type FailureCode, failures } from '../../failures/failure.ts'
import type { JsonSchema } from '../../kernel/catalogue.ts'

export interface Reference {
  readonly $ref: string
}

export class Components {
  readonly schemas: Record<string, JsonSchema> = {}
  readonly responses: Record<string, unknown> = {}
  readonly parameters: Record<string, unknown> = {}

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
  named(name: string, schema: JsonSchema): Reference | JsonSchema {
    if ('$ref' in schema) return schema
    this.#add(name, schema, 'input')
    return { $ref: `#/components/schemas/${name}` }
  }

  /** The failures of an operation: a response per status and set of codes. */
  failures(codes: readonly FailureCode[]): Record<string, Reference> {
    const own = codes.filter((code) => !anywhere.includes(code))
    const statuses = [...new Set(own.map((code) => failures[code].status))]
    return Object.fromEntries([
      ...statuses.map((status) => [
        status,
        this.#response(own.filter((code) => failures[code].status === status).sort()),
      ]),
      ['default', this.#response(anywhere, 'Failure')],
    ])
  }

  /** A parameter that is the same wherever it occurs. Parameters of one name that differ stay with their operations. */
  parameter<P extends { readonly name: string }>(parameter: P): P | Reference {
    const { name } = parameter
    this.parameters[name] ??= parameter
    return JSON.stringify(this.parameters[name]) === JSON.stringify(parameter)
      ? { $ref: `#/components/parameters/${name}` }
      : parameter
  }

  #response(codes: readonly FailureCode[], name = codes.join('.')): Reference {
    this.responses[name] ??= {
      description: codes.map((code) => `\`${code}\`: ${failures[code].title}`).join('; '),
      content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
    }
    return { $ref: `#/components/responses/${name}` }
  }

  /** An input refuses members that it does not know; an answer may gain some, so its shape does not say that it is closed. */
  #add(name: string, shape: unknown, side: 'input' | 'output'): void {
    if (isRecord(shape) && (side === 'input' || !(name in this.schemas))) this.schemas[name] = shape
  }
}

/** Codes that any request may be answered with, from its credential to its body. */
const anywhere: readonly FailureCode[] = [
  'ambiguous_credentials',
  'credential_in_query',
  'unauthenticated',
  'signature_invalid',
  'signature_expired',
  'signature_replayed',
  'digest_mismatch',
  'unknown_key',
  'cross_site_request',
  'request_timeout',
  'body_too_large',
  'unsupported_media_type',
  'account_locked',
  'rate_limited',
  'headers_too_large',
  'internal',
  'provider_unavailable',
]

/** Leaves out what a generator does not need: bounds of every integer, and patterns that a format already says. */
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
      !(typeof value === 'number' && Math.abs(value) >= Number.MAX_SAFE_INTEGER) &&
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
