/** The operations of the OpenAPI document as the reference shows them. */
import { type FailureCode, isFailureCode } from '../../../../core/failures/failure.ts'
import type { CatalogueEntry, JsonSchema } from '../../../../kernel/catalogue.ts'
import type { Services } from '../../../../kernel/context.ts'
import { exampleOf, responseExample } from '../../openapi/example-of.ts'
import { pathsOf } from '../../tool-paths.ts'

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
    catalogue.flatMap((entry) => pathsOf(entry.tool, services).map(({ name }) => [name, entry] as const)),
  )
  const operations = Object.entries(recordOf(document.paths)).flatMap(([path, methods]) =>
    METHODS.filter((method) => method in recordOf(methods)).map((method) => {
      const described = recordOf(recordOf(methods)[method])
      const id = textOf(described.operationId)
      const [tag] = listOf(described.tags).map(textOf)
      const entry = entries.get(id)
      const tool = entry?.tool
      const request = jsonOf(described.requestBody)
      const failures = failuresOf(recordOf(described.responses), document)
      const response = jsonOf(recordOf(described.responses)['200'])
      const parameters = listOf(described.parameters).map((one) => resolve(recordOf(one), document))
      return {
        id,
        slug: slugOf(id),
        tag: tag ?? '',
        href: `/docs/reference/${slugOf(tag ?? '')}/${slugOf(id)}`,
        method: method.toUpperCase(),
        path,
        summary: textOf(described.summary),
        description: textOf(described.description),
        caller: tool?.who ?? 'provider',
        scopes: tool?.who === 'account' ? tool.scopes : [],
        secondFactor:
          tool?.proof === 'step-up' || tool?.proof === 'recent'
            ? 'always'
            : failures.includes('step_up_required')
              ? 'sometimes'
              : 'never',
        isOverMcp: tool?.mcp === true,
        isRepeatable: parameters.some(({ name }) => name === 'Idempotency-Key'),
        parameters: parameters.flatMap((one) => parameterOf(one, document)),
        body: membersOf(recordOf(request.schema), document),
        bodyExample: 'example' in request ? request.example : requiredExample(request.schema, document),
        answer: membersOf(recordOf(response.schema), document),
        answerExample:
          entry === undefined ? response.example : responseExample(entry.output, entry.tool.example),
        failures,
      } as const
    }),
  )
  return listOf(document.tags).map((one) => {
    const { name, description } = recordOf(one)
    return {
      name: textOf(name),
      slug: slugOf(textOf(name)),
      description: textOf(description),
      operations: operations.filter(({ tag }) => tag === name),
    }
  })
}

/** `wallets.transfer_intent` is `wallets-transfer-intent`. */
function slugOf(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]+/g, '-')
}

function parameterOf(parameter: Record<string, unknown>, document: JsonSchema): Parameter[] {
  const { name, in: where, required, schema, example } = parameter
  if (where !== 'path' && where !== 'query') return []
  const shape = recordOf(schema)
  const isRequired = required === true
  const sample = example ?? (isRequired ? exampleOf(shape, textOf(name), document) : '')
  return [
    {
      name: textOf(name),
      in: where,
      depth: 0,
      type: typeOf(shape, document),
      isRequired,
      description: textOf(shape.description),
      example: typeof sample === 'string' ? sample : JSON.stringify(sample),
    },
  ]
}

/** The members of an object, those of its objects behind them. */
function membersOf(schema: JsonSchema, document: JsonSchema, before = '', depth = 0): Member[] {
  const shape = resolve(schema, document)
  const variants = [shape.oneOf, shape.anyOf].find(Array.isArray)
  if (variants !== undefined && shape.properties === undefined) {
    const known = new Set<string>()
    return variants
      .flatMap((one) => membersOf(recordOf(one), document, before, depth))
      .filter(({ name }) => !known.has(name) && known.add(name))
  }
  if (Array.isArray(shape.allOf))
    return shape.allOf.flatMap((part) => membersOf(recordOf(part), document, before, depth))
  if (shape.type === 'array' || listOf(shape.type).includes('array'))
    return membersOf(recordOf(shape.items), document, before, depth)
  const required = listOf(shape.required)
  return Object.entries(recordOf(shape.properties)).flatMap(([name, one]) => {
    const member = recordOf(one)
    const own = {
      name: `${before}${name}`,
      depth,
      type: typeOf(member, document),
      isRequired: required.includes(name) && !('default' in member),
      description: textOf(member.description) || textOf(resolve(member, document).description),
    }
    const inner = depth < MAX_DEPTH ? membersOf(member, document, `${before}${name}.`, depth + 1) : []
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
    return [...new Set(variants.map((one) => typeOf(recordOf(one), document)))].join(' | ')
  if (Array.isArray(type)) return type.map((one) => typeOf({ ...schema, type: one }, document)).join(' | ')
  if (type === 'array') return `${typeOf(recordOf(items), document)}[]`
  if (type === 'string' && typeof format === 'string') return `string (${format})`
  return typeof type === 'string' ? type : 'any'
}

/** An example of the required members only, for requests without an example of their own. */
function requiredExample(schema: unknown, document: JsonSchema): unknown {
  if (schema === undefined) return undefined
  const shape = resolve(recordOf(schema), document)
  const { properties, required } = shape
  if (properties === undefined) return exampleOf(shape, '', document)
  const names = listOf(required)
  return Object.fromEntries(
    Object.entries(recordOf(properties))
      .filter(([name]) => names.includes(name))
      .map(([name, one]) => [name, exampleOf(recordOf(one), name, document)]),
  )
}

/** Codes of the responses that are the operation's own: the default holds those of every request. */
function failuresOf(responses: Record<string, unknown>, document: JsonSchema): FailureCode[] {
  return Object.entries(responses)
    .filter(([status]) => status !== 'default')
    .map(([, one]) => textOf(resolve(recordOf(one), document).description))
    .flatMap((told) => [...told.matchAll(/`(\w+)`/g)].map(([, code = '']) => code))
    .filter(isFailureCode)
}

function jsonOf(content: unknown): Record<string, unknown> {
  return recordOf(recordOf(recordOf(content).content)['application/json'])
}

/** The target of a reference; members beside the reference override its members. */
function resolve(schema: JsonSchema, document: JsonSchema): Record<string, unknown> {
  const { $ref, ...beside } = schema
  if (typeof $ref !== 'string') return { ...schema }
  const target = $ref
    .replace('#/', '')
    .split('/')
    .reduce<unknown>((at, name) => recordOf(at)[name], document)
  return { ...recordOf(target), ...beside }
}

function recordOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
