/** Resolves the paths of a tool: one, or one per configured value of a route parameter. */
import type { Services } from '../../kernel/context.ts'
import type { Tool } from '../../kernel/tool.ts'

/** @property fixed parameters that this path sets. */
export interface ToolPath {
  /** OpenAPI operationId. */
  readonly name: string
  readonly at: string
  readonly fixed: Readonly<Record<string, string>>
}

/**
 * Uses one literal path per value: unknown values stay 404, and a parameter cannot shadow other routes
 * (`/api/auth/google` beside `/api/auth/logout`).
 */
export function listPaths(tool: Tool, services: Pick<Services, 'identityProviders'>): ToolPath[] {
  const [, path = ''] = tool.route.split(' ')
  const [[parameter, values] = []] = Object.entries(tool.pathValues ?? {})
  if (parameter === undefined || values === undefined) return [{ name: tool.name, at: path, fixed: {} }]
  return values(services).map((value) => ({
    name: `${tool.name}.${value}`,
    at: path.replace(`{${parameter}}`, value),
    fixed: { [parameter]: value },
  }))
}
