/** A document without references: each `{ $ref }` is replaced by its target; members beside the reference win. */
export function dereference(document: unknown): unknown {
  const replace = (at: unknown): unknown => {
    if (Array.isArray(at)) return at.map(replace)
    if (!isRecord(at)) return at
    const { $ref, ...rest } = at
    const target = typeof $ref === 'string' ? resolveTarget(document, $ref) : {}
    return Object.fromEntries(
      Object.entries({ ...target, ...rest }).map(([name, member]) => [name, replace(member)]),
    )
  }
  return replace(document)
}

function resolveTarget(document: unknown, ref: string): Record<string, unknown> {
  const found = ref
    .replace(/^#\//, '')
    .split('/')
    .reduce<unknown>((at, name) => (isRecord(at) ? at[name] : undefined), document)
  if (!isRecord(found)) throw new Error(`${ref} points to nothing`)
  return found
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
