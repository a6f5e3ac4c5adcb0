/**
 * Shortens JSON Schemas for tools/list, which a model reads as a whole before its first call. A short schema says what to send
 * and what comes back; the tool itself validates every limit and explains each violation.
 */

type Schema = Readonly<Record<string, unknown>>

/** Longer patterns cost more than they tell: the description says the form. */
const MAX_PATTERN = 20

/** More alternatives than this, such as a shape for each type of event, are described by what they have in common. */
const MAX_ALTERNATIVES = 6

/** A shape that is repeated at this length or more is written once. */
const MIN_SHARED = 120

/** Keywords that limit sizes. Numbers beyond the safe integers are no limits of ours. */
const dropped = new Set(['maxLength', 'minLength', 'maxItems', 'minItems', 'exclusiveMinimum'])

/**
 * Shortens a schema. @param schema of an object, whose `additionalProperties` stays.
 * @param side of the call. An input leaves out null, which some hosts cannot write: a member without a value is left out.
 */
export function compactSchema(schema: Schema, side: 'input' | 'output'): Record<string, unknown> {
  const { additionalProperties } = schema
  const compacted = compact(schema, side === 'output')
  return { ...compacted, ...(additionalProperties === undefined ? {} : { additionalProperties }) }
}

/** Writes shapes that occur more than once in `$defs`. */
export function shareShapes(schema: Schema): Record<string, unknown> {
  const counts = new Map<string, number>()
  const count = (at: unknown) => visitObjects(at, (shape) => counts.set(shape, (counts.get(shape) ?? 0) + 1))
  count(schema)
  const shared = [...counts].filter(([shape, times]) => times > 1 && shape.length >= MIN_SHARED)
  if (shared.length === 0) return { ...schema }
  const names = new Map(shared.map(([shape], index) => [shape, `shape${index + 1}`]))
  const replaceShared = (at: unknown, isRoot: boolean): unknown => {
    if (Array.isArray(at)) return at.map((member) => replaceShared(member, false))
    if (!isSchema(at)) return at
    const { shape, description } = splitShape(at)
    const name = isRoot ? undefined : names.get(shape)
    if (name !== undefined)
      return { $ref: `#/$defs/${name}`, ...(description === undefined ? {} : { description }) }
    return Object.fromEntries(Object.entries(at).map(([key, member]) => [key, replaceShared(member, false)]))
  }
  const $defs = Object.fromEntries(
    [...names].map(([shape, name]) => [name, replaceShared(JSON.parse(shape), true)]),
  )
  const root = replaceShared(schema, true)
  return { ...(isSchema(root) ? root : {}), $defs }
}

function visitObjects(at: unknown, see: (shape: string) => void): void {
  if (Array.isArray(at)) for (const member of at) visitObjects(member, see)
  if (!isSchema(at)) return
  if (at.type === 'object') see(splitShape(at).shape)
  for (const member of Object.values(at)) visitObjects(member, see)
}

function splitShape({ description, ...shape }: Schema): { shape: string; description: unknown } {
  return { shape: JSON.stringify(shape), description }
}

function compact(schema: Schema, hasNull: boolean): Record<string, unknown> {
  const { anyOf: either, oneOf, additionalProperties, pattern, properties, items, ...rest } = schema
  const anyOf = either ?? oneOf
  const kept = Object.fromEntries(
    Object.entries(rest).filter(
      ([keyword, value]) =>
        !dropped.has(keyword) && !(typeof value === 'number' && Math.abs(value) >= Number.MAX_SAFE_INTEGER),
    ),
  )
  return {
    ...kept,
    ...(typeof pattern === 'string' && pattern.length <= MAX_PATTERN ? { pattern } : {}),
    ...(isSchema(additionalProperties) && Object.keys(additionalProperties).length > 0
      ? { additionalProperties: compact(additionalProperties, hasNull) }
      : {}),
    ...(isSchema(properties)
      ? {
          properties: Object.fromEntries(
            Object.entries(properties).map(([name, one]) => [name, member(one, hasNull)]),
          ),
        }
      : {}),
    ...(items === undefined ? {} : { items: member(items, hasNull) }),
    ...(Array.isArray(anyOf) ? alternatives(anyOf, hasNull) : {}),
  }
}

function member(schema: unknown, hasNull: boolean): unknown {
  return isSchema(schema) ? withoutToldBounds(compact(schema, hasNull)) : schema
}

/** Bounds that the description says in words are not said twice. */
function withoutToldBounds(schema: Record<string, unknown>): Record<string, unknown> {
  const { minimum, maximum, ...rest } = schema
  const isTold = typeof rest.description === 'string' && rest.description.includes(`${minimum} to ${maximum}`)
  return isTold ? rest : schema
}

/**
 * Amounts and limits are accepted as text and as numbers: the first form is enough. Null is written into the type of a plain
 * value.
 */
function alternatives(anyOf: readonly unknown[], hasNull: boolean): Record<string, unknown> {
  if (anyOf.length > MAX_ALTERNATIVES) return findCommon(anyOf.filter(isSchema), hasNull)
  const all = anyOf
    .filter(isSchema)
    .filter(({ type }) => hasNull || type !== 'null')
    .map((one) => compact(one, hasNull))
  const isNullable = all.some(({ type }) => type === 'null')
  const [first, ...others] = all.filter(({ type }) => type !== 'null')
  if (first === undefined) return { anyOf: all }
  const isNumeric = (one: Schema) => one.type === 'number' || one.type === 'integer'
  const isSameInTwoForms =
    others.length === 1 && others.every((other) => isNumeric(other) !== isNumeric(first) && isPlain(other))
  if (others.length > 0 && !(isPlain(first) && isSameInTwoForms)) return { anyOf: all }
  if (!isNullable) return first
  if (!isPlain(first)) return { anyOf: [first, { type: 'null' }] }
  const values = Array.isArray(first.enum) ? { enum: [...first.enum, null] } : {}
  return { ...first, ...values, type: [first.type, 'null'] }
}

/** An object with the members that all shapes have, without the texts that differ. */
function findCommon(shapes: readonly Schema[], hasNull: boolean): Record<string, unknown> {
  const [first = {}, ...others] = shapes.map((shape) => (isSchema(shape.properties) ? shape.properties : {}))
  const isSame = (name: string) =>
    others.every((other) => JSON.stringify(other[name]) === JSON.stringify(first[name]))
  const typeOf = (name: string) => {
    const one = first[name]
    return isSchema(one) ? { type: one.type } : {}
  }
  const properties = Object.keys(first)
    .filter((name) => others.every((other) => name in other))
    .map((name) => [name, isSame(name) ? member(first[name], hasNull) : typeOf(name)])
  return { type: 'object', properties: Object.fromEntries(properties) }
}

/** A text, number or truth value without a structure of its own. */
function isPlain({ type }: Schema): boolean {
  return type === 'string' || type === 'number' || type === 'integer' || type === 'boolean'
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
