/**
 * The sandbox's identity provider: an OpenID provider served by the gateway, where any identity can be entered. It
 * follows the real protocol: single-use codes, required PKCE, exact redirect URIs. It does not exist in production.
 */
import type { Provider } from 'oidc-provider'
import type { Clock } from '../../../core/base/clock.ts'
import type { Log } from '../../../core/base/log.ts'
import type { Connection } from '../../../storage/database.ts'
import { handleWithNodeResponse, type NodeListener } from '../oidc/handle-with-node-response.ts'
import { createOpenIdStorage } from '../oidc/storage.ts'
import type { HttpContext } from '../request.ts'
import type { SandboxClient, SandboxOpenIdSecrets } from './client.ts'
import { sandboxProviderConfiguration } from './configuration.ts'
import { handleInteraction } from './interaction.ts'

export interface SandboxProviderParts {
  /**
   * Below the public origin. A browser on a localhost page is redirected to the same process at 127.0.0.1, keeps this
   * provider's cookies there, and is redirected back. The gateway itself calls the address it listens on.
   */
  readonly issuer: URL
  readonly clients: readonly SandboxClient[]
  readonly secrets: () => Promise<SandboxOpenIdSecrets>
  readonly database: Connection
  readonly clock: Clock
  readonly log: Log
}

interface LoadedProvider {
  readonly provider: Provider
  readonly listener: NodeListener
}

/** Serves all routes below the issuer. The library is loaded by the first request. */
export function createSandboxProvider(parts: SandboxProviderParts): (c: HttpContext) => Promise<Response> {
  const { issuer } = parts
  const storage = createOpenIdStorage(parts)
  let loaded: Promise<LoadedProvider> | undefined
  const load = async (): Promise<LoadedProvider> => {
    const [{ Provider, interactionPolicy }, secrets] = await Promise.all([
      import('oidc-provider'),
      parts.secrets(),
    ])
    const configuration = sandboxProviderConfiguration({ ...parts, storage, secrets, interactionPolicy })
    const provider = new Provider(issuer.href, configuration)
    // handleWithNodeResponse sets the forwarded host and scheme, so they can be trusted.
    provider.proxy = true
    provider.on('server_error', (_context, err) =>
      parts.log.error({ err }, 'the sandbox identity provider failed'),
    )
    return { provider, listener: provider.callback() }
  }
  return async (c) => {
    loaded ??= load()
    const { provider, listener } = await loaded.catch((error: unknown) => {
      loaded = undefined
      throw error
    })
    const people = storage('SandboxPerson')
    return c.req.path.startsWith(`${issuer.pathname}/interaction/`)
      ? handleInteraction(c, { provider, people, clients: parts.clients })
      : handleWithNodeResponse(c, listener, issuer)
  }
}
