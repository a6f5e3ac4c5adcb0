/** The operations of the OpenAPI document as the reference shows them. */
import { type FailureCode, isFailureCode } from '../../../../core/failures/failure.ts'
import type { CatalogueEntry, JsonSchema } from '../../../../kernel/catalogue.ts'
import type { Services } from '../../../../kernel/context.ts'
import { buildExample, responseExample } from '../../openapi/build-example.ts'
import { listPaths } from '../../tool-paths.ts'

/** @property name with the names of the objects around it: `policy.perTransaction.max`. */
export interface Member {
  readonly name: string
  readonly depth: number
  readonly type: string
  readonly isRequired: boolean
  readonly description: string
}

export interface Parameter extends Member {
  readonly in: 'path' | 'query'
  /** Empty: left out of samples. */
  readonly example: string
}

export interface Operation {
  readonly id: string
  readonly slug: string
  readonly tag: string
  readonly href: string
  readonly method: string
  readonly path: string
  readonly summary: string
  readonly description: string
  /** `provider`: the webhook of a provider, signed by it. */
  readonly caller: 'public' | 'person' | 'admin' | 'account' | 'provider'
  readonly scopes: readonly string[]
  /** `sometimes`: depending on the input, such as approving and not rejecting. */
  readonly secondFactor: 'always' | 'sometimes' | 'never'
  readonly isOverMcp: boolean
  readonly isRepeatable: boolean
  readonly parameters: readonly Parameter[]
  readonly body: readonly Member[]
  readonly bodyExample: unknown
  readonly answer: readonly Member[]
  readonly answerExample: unknown
  /** Failures of its own. */
  readonly failures: readonly FailureCode[]
}

export interface Tag {
  readonly name: string
  readonly slug: string
  readonly description: string
  readonly operations: readonly Operation[]
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const
/** Depth to which members of members are listed. */
const MAX_DEPTH = 2

/** Reads the reference from the document; the catalogue adds who may call. */
export function readReference(
  document: Record<string, unknown>,
  catalogue: readonly CatalogueEntry[],
  services: Pick<Services, 'identityProviders'>,
): readonly Tag[] {
  const entries = new Map(
    catalogue.flatMap((entry) => listPaths(entry.tool, services).map(({ name }) => [name, entry] as const)),
  )
  const operations = Object.entries(toRecord(document.paths)).flatMap(([path, methods]) =>
    METHODS.filter((method) => method in toRecord(methods)).map((method) => {
      const described = toRecord(toRecord(methods)[method])
      const id = toText(described.operationId)
      const [tag] = toList(described.tags).map(toText)
      const entry = entries.get(id)
      const tool = entry?.tool
      const request = readJsonContent(described.requestBody)
      const failures = listFailures(toRecord(described.responses), document)
      const response = readJsonContent(toRecord(described.responses)['200'])
      const parameters = toList(described.parameters).map((one) => resolve(toRecord(one), document))
      return {
        id,
        slug: toSlug(id),
        tag: tag ?? '',
        href: `/docs/reference/${toSlug(tag ?? '')}/${toSlug(id)}`,
        method: method.toUpperCase(),
        path,
        summary: toText(described.summary),
        description: toText(described.description),
        caller: tool?.who ?? 'provider',
        scopes: tool?.who === 'account' ? [...tool.scopes, ...(tool.orScopes ?? [])] : [],
        secondFactor:
          tool?.proof === 'step-up' || tool?.proof === 'recent'
            ? 'always'
            : failures.includes('step_up_required')
              ? 'sometimes'
              : 'never',
        isOverMcp: tool?.mcp === true,
        isRepeatable: parameters.some(({ name }) => name === 'Idempotency-Key'),
        parameters: parameters.flatMap((one) => toParameters(one, document)),
        body: listMembers(toRecord(request.schema), document),
        bodyExample: 'example' in request ? request.example : requiredExample(request.schema, document),
        answer: listMembers(toRecord(response.schema), document),
        answerExample:
          entry === undefined ? response.example : responseExample(entry.output, entry.tool.example),
        failures,
      } as const
    }),
  )
  return toList(document.tags).map((one) => {
    const { name, description } = toRecord(one)
    return {
      name: toText(name),
      slug: toSlug(toText(name)),
      description: toText(description),
      operations: operations.filter(({ tag }) => tag === name),
    }
  })
}

/** `wallets.transfer_intent` is `wallets-transfer-intent`. */
function toSlug(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]+/g, '-')
}

function toParameters(parameter: Record<string, unknown>, document: JsonSchema): Parameter[] {
  const { name, in: where, required, description, schema, example } = parameter
  if (where !== 'path' && where !== 'query') return []
  // An example may come from the description.
  const shape: JsonSchema = { ...toRecord(schema), ...(description === undefined ? {} : { description }) }
  const isRequired = required === true
  const sample = example ?? (isRequired ? buildExample(shape, toText(name), document) : '')
  return [
    {
      name: toText(name),
      in: where,
      depth: 0,
      type: typeOf(shape, document),
      isRequired,
      description: toText(description),
      example: typeof sample === 'string' ? sample : JSON.stringify(sample),
    },
  ]
}

/** The members of an object, those of its objects behind them. */
function listMembers(schema: JsonSchema, document: JsonSchema, before = '', depth = 0): Member[] {
  const shape = resolve(schema, document)
  const variants = [shape.oneOf, shape.anyOf].find(Array.isArray)
  if (variants !== undefined && shape.properties === undefined) {
    const known = new Set<string>()
    return variants
      .flatMap((one) => listMembers(toRecord(one), document, before, depth))
      .filter(({ name }) => !known.has(name) && known.add(name))
  }
  if (Array.isArray(shape.allOf))
    return shape.allOf.flatMap((part) => listMembers(toRecord(part), document, before, depth))
  if (shape.type === 'array' || toList(shape.type).includes('array'))
    return listMembers(toRecord(shape.items), document, before, depth)
  const required = toList(shape.required)
  return Object.entries(toRecord(shape.properties)).flatMap(([name, one]) => {
    const member = toRecord(one)
    const own = {
      name: `${before}${name}`,
      depth,
      type: typeOf(member, document),
      isRequired: required.includes(name) && !('default' in member),
      description: toText(member.description) || toText(resolve(member, document).description),
    }
    const inner = depth < MAX_DEPTH ? listMembers(member, document, `${before}${name}.`, depth + 1) : []
    return [own, ...inner]
  })
}

/** Short name of a type: `string`, `"USDC" | "EURC"`, `Card[]`. */
function typeOf(schema: JsonSchema, document: JsonSchema): string {
  const { $ref, type, anyOf, oneOf, items, format } = schema
  if (typeof $ref === 'string') {
    const target = resolve(schema, document)
    return 'enum' in target ? typeOf(target, document) : $ref.replace('#/components/schemas/', '')
  }
  if ('const' in schema) return JSON.stringify(schema.const)
  if (Array.isArray(schema.enum)) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  const variants = [anyOf, oneOf].find(Array.isArray)
  if (variants !== undefined)
    return [...new Set(variants.map((one) => typeOf(toRecord(one), document)))].join(' | ')
  if (Array.isArray(type)) return type.map((one) => typeOf({ ...schema, type: one }, document)).join(' | ')
  if (type === 'array') return `${typeOf(toRecord(items), document)}[]`
  if (type === 'string' && typeof format === 'string') return `string (${format})`
  return typeof type === 'string' ? type : 'any'
}

/** An example of the required members only, for requests without an example of their own. */
function requiredExample(schema: unknown, document: JsonSchema): unknown {
  if (schema === undefined) return undefined
  const shape = resolve(toRecord(schema), document)
  const { properties, required } = shape
  if (properties === undefined) return buildExample(shape, '', document)
  const names = toList(required)
  return Object.fromEntries(
    Object.entries(toRecord(properties))
      .filter(([name]) => names.includes(name))
      .map(([name, one]) => [name, buildExample(toRecord(one), name, document)]),
  )
}

/** Codes of the responses that are the operation's own: the default holds those of every request. */
function listFailures(responses: Record<string, unknown>, document: JsonSchema): FailureCode[] {
  return Object.entries(responses)
    .filter(([status]) => status !== 'default')
    .map(([, one]) => toText(resolve(toRecord(one), document).description))
    .flatMap((told) => [...told.matchAll(/`(\w+)`/g)].map(([, code = '']) => code))
    .filter(isFailureCode)
}

function readJsonContent(content: unknown): Record<string, unknown> {
  return toRecord(toRecord(toRecord(content).content)['application/json'])
}

/** The target of a reference; members beside the reference override its members. */
function resolve(schema: JsonSchema, document: JsonSchema): Record<string, unknown> {
  const { $ref, ...beside } = schema
  if (typeof $ref !== 'string') return { ...schema }
  const target = $ref
    .replace('#/', '')
    .split('/')
    .reduce<unknown>((at, name) => toRecord(at)[name], document)
  return { ...toRecord(target), ...beside }
}

function toRecord(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}

function toList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function toText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
