/** The paths at which a tool is served: one, or one for each value that the deployment gives a parameter of its route. */
import type { Services } from '../kernel/context.ts'
import type { Tool } from '../kernel/tool.ts'

/** A path of a tool. @property fixed the parameters that it stands for. */
export interface ToolPath {
  /** The operation's name, OpenAPI's operationId. */
  readonly name: string
  readonly at: string
  readonly fixed: Readonly<Record<string, string>>
}

/**
 * The paths of a tool. A path of its own for each value keeps what is not there a 404, and swallows no neighbour
 * (`/api/auth/google` beside `/api/auth/logout`).
 */
export function pathsOf(tool: Tool, services: Pick<Services, 'identityProviders'>): ToolPath[] {
  const [, path = ''] = tool.route.split(' ')
  const [[parameter, values] = []] = Object.entries(tool.pathValues ?? {})
  if (parameter === undefined || values === undefined) return [{ name: tool.name, at: path, fixed: {} }]
  return values(services).map((value) => ({
    name: `${tool.name}.${value}`,
    at: path.replace(`{${parameter}}`, value),
    fixed: { [parameter]: value },
  }))
}
