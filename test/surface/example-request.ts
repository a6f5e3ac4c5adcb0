/** The request of an operation's documented example. */
import { z } from 'zod'
import type { Tool } from '../../src/kernel/tool.ts'

/** @param route served route; the tool's own by default. @param changes replaces members of the example. */
export function exampleRequest(
  tool: Pick<Tool, 'route' | 'example'>,
  route: string = tool.route,
  changes: Readonly<Record<string, unknown>> = {},
): { method: string; target: string; body?: string } {
  const [method = '', template = ''] = route.split(' ')
  const example = { ...z.record(z.string(), z.unknown()).parse(tool.example ?? {}), ...changes }
  const inPath = [...(tool.route.match(/\{(\w+)\}/g) ?? [])].map((name) => name.slice(1, -1))
  const target = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(example[name]))
  const rest = Object.entries(example).filter(([name]) => !inPath.includes(name))
  if (method === 'GET') {
    const query = new URLSearchParams(
      Object.fromEntries(rest.map(([name, value]) => [name, String(value)])),
    ).toString()
    return { method, target: query === '' ? target : `${target}?${query}` }
  }
  return rest.length === 0
    ? { method, target }
    : { method, target, body: JSON.stringify(Object.fromEntries(rest)) }
}
