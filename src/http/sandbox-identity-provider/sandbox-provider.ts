/**
 * The sandbox's identity provider: an OpenID provider that the gateway serves, where anybody may be anybody. Its protocol is
 * the original's: codes are good once, PKCE is required, redirect URIs are exact. Nothing of it exists in production.
 */
import type { Provider } from 'oidc-provider'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { Connection } from '../../storage/database.ts'
import { handleWithNodeResponse, type NodeListener } from '../oidc/handle-with-node-response.ts'
import { createOpenIdStorage } from '../oidc/storage.ts'
import type { HttpContext } from '../request.ts'
import type { SandboxClient, SandboxOpenIdSecrets } from './client.ts'
import { sandboxProviderConfiguration } from './configuration.ts'
import { interact } from './interaction.ts'

/** What it is made of. */
export interface SandboxProviderParts {
  /**
   * Below the origin that clients use. A browser that came from a page at localhost is sent to the same process at
   * 127.0.0.1, keeps this provider's cookies there, and is sent back; the gateway itself asks where it listens.
   */
  readonly issuer: URL
  readonly clients: readonly SandboxClient[]
  readonly secrets: () => Promise<SandboxOpenIdSecrets>
  readonly database: Connection
  readonly clock: Clock
  readonly log: Log
}

/** A provider that is there, and its listener. */
interface Opened {
  readonly provider: Provider
  readonly listener: NodeListener
}

/** Answers everything below its issuer. The library is loaded by the first request. */
export function createSandboxProvider(parts: SandboxProviderParts): (c: HttpContext) => Promise<Response> {
  const { issuer } = parts
  const storage = createOpenIdStorage(parts)
  let opened: Promise<Opened> | undefined
  const open = async (): Promise<Opened> => {
    const [{ Provider, interactionPolicy }, secrets] = await Promise.all([
      import('oidc-provider'),
      parts.secrets(),
    ])
    const configuration = sandboxProviderConfiguration({ ...parts, storage, secrets, interactionPolicy })
    const provider = new Provider(issuer.href, configuration)
    // The host and scheme that it is told are ours: answerByNode puts them there.
    provider.proxy = true
    provider.on('server_error', (_context, err) =>
      parts.log.error({ err }, 'the sandbox identity provider failed'),
    )
    return { provider, listener: provider.callback() }
  }
  return async (c) => {
    opened ??= open()
    const { provider, listener } = await opened.catch((error: unknown) => {
      opened = undefined
      throw error
    })
    const people = storage('SandboxPerson')
    return c.req.path.startsWith(`${issuer.pathname}/interaction/`)
      ? interact(c, { provider, people, clients: parts.clients })
      : handleWithNodeResponse(c, listener, issuer)
  }
}
