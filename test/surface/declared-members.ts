/** Members of schemas and of declared directions, as paths such as `limits.daily`. */
import { z } from 'zod'

/** Paths of the innermost members of an object schema. */
export function listMembers(schema: z.ZodType): readonly string[] {
  const object = unwrap(schema)
  if (!(object instanceof z.ZodObject)) return []
  return Object.entries(object.shape).flatMap(([name, member]) => {
    const inner = listMembers(member as z.ZodType)
    return inner.length === 0 ? [name] : inner.map((path) => `${name}.${path}`)
  })
}

function unwrap(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault)
    return unwrap(schema.unwrap() as z.ZodType)
  if (schema instanceof z.ZodPipe) return unwrap(schema.in as z.ZodType)
  return schema
}

/** The direction of each innermost member. */
export function listDirections(declared: Readonly<Record<string, unknown>>): ReadonlyMap<string, unknown> {
  return new Map(
    Object.entries(declared).flatMap(([name, direction]): [string, unknown][] =>
      typeof direction === 'object' && direction !== null
        ? [...listDirections({ ...direction })].map(([path, inner]) => [`${name}.${path}`, inner])
        : [[name, direction]],
    ),
  )
}
