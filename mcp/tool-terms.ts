import type { CatalogueEntry } from '../src/kernel/catalogue.ts'

/** A REST route in a text, with its query. */
const MENTION = /\b(GET|POST|PUT|PATCH|DELETE) (\/api\/[\w{}/-]*[\w}])/g

/** Members that say what to do, at any depth: an approval holds the problem of its call. */
const ADVICE: ReadonlySet<string> = new Set(['hint', 'next', 'detail', 'message'])

/** Rewrites what an answer or a problem advises. @param verbatim members of third parties, which stay as they are. */
export function advisedInToolTerms(
  body: Record<string, unknown>,
  inToolTerms: (text: string) => string,
  verbatim: readonly string[] = [],
): Record<string, unknown> {
  const rewrite = (name: string, value: unknown): unknown => {
    if (typeof value === 'string') return ADVICE.has(name) ? inToolTerms(value) : value
    if (Array.isArray(value)) return value.map((member) => rewrite('', member))
    if (typeof value !== 'object' || value === null || 'toJSON' in value) return value
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, rewrite(key, member)]))
  }
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => [
      name,
      verbatim.includes(name) ? value : rewrite(name, value),
    ]),
  )
}

/**
 * Rewrites the REST routes that a hint or description names as the tools that do the same: agents have no routes. An id in
 * the path becomes the tool's argument, the header Idempotency-Key the argument of a tool. Routes without a tool, such as
 * the owner's, stay as they are.
 */
export function createToolTerms(catalogue: readonly CatalogueEntry[]): (text: string) => string {
  const tools = catalogue
    .filter(({ tool }) => tool.mcp)
    .map(({ tool }) => {
      const [method, path = ''] = tool.route.split(' ')
      const segments = path.split('/').map((segment) => /^\{(\w+)\}$/.exec(segment)?.[1] ?? { is: segment })
      return { name: tool.name.replaceAll('.', '_'), method, segments }
    })
  const matchArguments = (
    { segments }: (typeof tools)[number],
    path: string,
  ): Record<string, string> | null => {
    const given = path.split('/')
    if (given.length !== segments.length) return null
    const found: Record<string, string> = {}
    for (const [at, segment] of segments.entries()) {
      const text = given[at] ?? ''
      if (typeof segment === 'string') found[segment] = text
      else if (segment.is !== text) return null
    }
    return found
  }
  return (text) =>
    text
      .replaceAll('Idempotency-Key', 'idempotency_key')
      .replaceAll(MENTION, (mention, method: string, path: string) => {
        for (const tool of tools) {
          const found = tool.method === method ? matchArguments(tool, path) : null
          if (found === null) continue
          const concrete = Object.entries(found).filter(([, value]) => !value.startsWith('{'))
          return concrete.length === 0
            ? tool.name
            : `${tool.name} ${JSON.stringify(Object.fromEntries(concrete))}`
        }
        return mention
      })
}
