/** Writes once what several operations or shapes have in common. */
import type { JsonSchema } from '../../../kernel/catalogue.ts'

export interface Parameter {
  readonly name: string
  readonly [member: string]: unknown
}

/** An operation as it is described. */
export interface DescribedOperation {
  readonly operationId: string
  readonly parameters: readonly Parameter[]
  readonly responses: Readonly<Record<string, unknown>>
  readonly [member: string]: unknown
}

type Paths<O> = Readonly<Record<string, Readonly<Record<string, O>>>>

interface Shared {
  readonly paths: Paths<Readonly<Record<string, unknown>>>
  readonly parameters: Readonly<Record<string, unknown>>
  readonly responses: Readonly<Record<string, unknown>>
}

/**
 * Moves parameters and responses that occur more than once to the components. @param responseNames names of responses, by
 * their JSON. A response without a name stays.
 */
export function shareRepeated(
  paths: Paths<DescribedOperation>,
  responseNames: ReadonlyMap<string, string>,
): Shared {
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods))
  // Parameters of one name that differ are named after the room of their operations.
  const parameters = nameRepeated(
    operations.flatMap(({ operationId, parameters: own }) =>
      own.map((parameter) => {
        const room = /^\w+/.exec(operationId)?.[0]
        return { value: parameter, names: [parameter.name, `${parameter.name}.${room}`] }
      }),
    ),
  )
  const responses = nameRepeated(
    operations.flatMap((operation) =>
      Object.values(operation.responses).map((value) => {
        const name = responseNames.get(JSON.stringify(value))
        return { value, names: name === undefined ? [] : [name] }
      }),
    ),
  )
  const reference = (names: ReadonlyMap<string, string>, kind: string, value: unknown) => {
    const name = names.get(JSON.stringify(value))
    return name === undefined ? value : { $ref: `#/components/${kind}/${name}` }
  }
  const shareParts = ({ parameters: own, ...operation }: DescribedOperation) => ({
    ...operation,
    ...(own.length === 0
      ? {}
      : { parameters: own.map((one) => reference(parameters.names, 'parameters', one)) }),
    responses: mapValues(operation.responses, (one) => reference(responses.names, 'responses', one)),
  })
  return {
    paths: mapValues(paths, (methods) => mapValues(methods, shareParts)),
    parameters: parameters.components,
    responses: responses.components,
  }
}

/** Names each value that occurs more than once, the most frequent first, by the first of its names that is free. */
function nameRepeated(found: readonly { readonly value: unknown; readonly names: readonly string[] }[]) {
  const counts = new Map<string, { value: unknown; names: readonly string[]; count: number }>()
  for (const { value, names } of found) {
    const key = JSON.stringify(value)
    counts.set(key, { value, names, count: (counts.get(key)?.count ?? 0) + 1 })
  }
  const components: Record<string, unknown> = {}
  const names = new Map<string, string>()
  const repeated = [...counts].filter(([, { count }]) => count > 1)
  for (const [key, { value, names: wanted }] of repeated.sort(
    ([, one], [, other]) => other.count - one.count,
  )) {
    const name = wanted.find((one) => !(one in components))
    if (name === undefined) continue
    components[name] = value
    names.set(key, name)
  }
  return { components, names }
}

/** Members that two shapes must share before one is written as an extension of the other. */
const MIN_SHARED = 3

/**
 * Writes variants with common members as an envelope and their own parts, and an answer that has all members of a named shape
 * as an extension of it. Inputs stay: they are closed, and a closed shape cannot be extended.
 */
export function shareMembers(schemas: Readonly<Record<string, JsonSchema>>): Record<string, JsonSchema> {
  const named = Object.fromEntries(
    Object.entries(schemas).flatMap(([name, schema]) => Object.entries(withEnvelope(name, schema))),
  )
  const bases = Object.entries(named).filter(
    ([, schema]) => Object.keys(readMembers(schema)).length >= MIN_SHARED,
  )
  return mapValues(named, (schema) => extending(schema, bases))
}

/** Splits variants of objects into their common members and their own. */
function withEnvelope(name: string, schema: JsonSchema): Record<string, JsonSchema> {
  const { oneOf, ...rest } = schema
  const variants = Array.isArray(oneOf) ? oneOf.filter(isSchema) : []
  const [first, ...others] = variants.map(readMembers)
  const common = Object.entries(first ?? {}).filter(([member, shape]) =>
    others.every((members) => isEqual(members[member], shape)),
  )
  if (others.length === 0 || common.length < MIN_SHARED) return { [name]: schema }
  const names = common.map(([member]) => member)
  const envelope = { type: 'object', properties: Object.fromEntries(common), required: names }
  return {
    [`${name}Envelope`]: envelope,
    [name]: {
      ...rest,
      allOf: [refTo(`${name}Envelope`), { oneOf: variants.map((one) => without(one, names)) }],
    },
  }
}

/** Replaces the members of the largest named shape in an object, and in the objects in it, by a reference. */
function extending(schema: JsonSchema, bases: readonly (readonly [string, JsonSchema])[]): JsonSchema {
  const inner = mapValues(schema, (member, keyword) => {
    if (keyword === 'properties' && isSchema(member))
      return mapValues(member, (one) => (isSchema(one) ? extending(one, bases) : one))
    if (keyword === 'items' && isSchema(member)) return extending(member, bases)
    return member
  })
  if (!isOpen(schema)) return inner
  const members = readMembers(schema)
  const fitting = bases.filter(([, base]) => {
    const own = Object.entries(readMembers(base))
    const isContained = own.every(([name, shape]) => isEqual(members[name], shape))
    return isOpen(base) && isContained && own.length < Object.keys(members).length
  })
  const [largest] = fitting.sort(
    ([, one], [, other]) => Object.keys(readMembers(other)).length - Object.keys(readMembers(one)).length,
  )
  if (largest === undefined) return inner
  const { description, ...extension } = without(inner, Object.keys(readMembers(largest[1])))
  return { ...(description === undefined ? {} : { description }), allOf: [refTo(largest[0]), extension] }
}

/** An object of an answer, which may have further members, and of which all members are required. */
function isOpen(schema: JsonSchema): boolean {
  const { type, required, additionalProperties } = schema
  const names = Object.keys(readMembers(schema))
  const isRequired = Array.isArray(required) && names.every((name) => required.includes(name))
  return type === 'object' && additionalProperties === undefined && isRequired
}

function without(schema: JsonSchema, names: readonly string[]): JsonSchema {
  const members = Object.entries(readMembers(schema)).filter(([name]) => !names.includes(name))
  const required = Array.isArray(schema.required)
    ? schema.required.filter((name) => !names.includes(name))
    : []
  return { ...schema, properties: Object.fromEntries(members), required }
}

function readMembers({ properties }: JsonSchema): JsonSchema {
  return isSchema(properties) ? properties : {}
}

function refTo(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` }
}

function mapValues<V, W>(record: Readonly<Record<string, V>>, map: (value: V, name: string) => W) {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value, name)]))
}

function isEqual(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
