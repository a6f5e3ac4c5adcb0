import type { CatalogueEntry } from '../src/kernel/catalogue.ts'

/** A REST route in a text, with its query. */
const MENTION = /\b(GET|POST|PUT|PATCH|DELETE) (\/api\/[\w{}/-]*[\w}])/g

/**
 * Rewrites the REST routes that a hint or description names as the tools that do the same: agents have no routes. An id in
 * the path becomes the tool's argument. Routes without a tool, such as the owner's, stay as they are.
 */
export function createToolTerms(catalogue: readonly CatalogueEntry[]): (text: string) => string {
  const tools = catalogue
    .filter(({ tool }) => tool.mcp)
    .map(({ tool }) => {
      const [method, path = ''] = tool.route.split(' ')
      const segments = path.split('/').map((segment) => /^\{(\w+)\}$/.exec(segment)?.[1] ?? { is: segment })
      return { name: tool.name.replaceAll('.', '_'), method, segments }
    })
  const argumentsOf = ({ segments }: (typeof tools)[number], path: string): Record<string, string> | null => {
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
    text.replaceAll(MENTION, (mention, method: string, path: string) => {
      for (const tool of tools) {
        const found = tool.method === method ? argumentsOf(tool, path) : null
        if (found === null) continue
        const concrete = Object.entries(found).filter(([, value]) => !value.startsWith('{'))
        return concrete.length === 0
          ? tool.name
          : `${tool.name} ${JSON.stringify(Object.fromEntries(concrete))}`
      }
      return mention
    })
}
