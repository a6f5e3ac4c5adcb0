import type { Log } from '../../core/base/log.ts'
import type { Config } from '../../core/config/read-config.ts'
import { createOpenIdProvider } from './openid.ts'
import type { IdentityProvider } from './port.ts'

/** The sandbox's own OpenID provider, which stands in for every provider without an issuer. */
export interface SandboxIssuer {
  readonly issuer: string
  /** Where the gateway itself reaches the issuer. */
  readonly reachedAt: () => string
  readonly clientId: (name: string) => string
  readonly clientSecret: () => Promise<string>
}

/** The identity providers of a configuration by name. Production always names an issuer. */
export async function createConfiguredIdentityProviders(
  { identityProviders }: Pick<Config, 'identityProviders'>,
  { sandbox, log }: { readonly sandbox: SandboxIssuer; readonly log: Log },
): Promise<ReadonlyMap<string, IdentityProvider>> {
  const clients = identityProviders.map(async ({ name, issuer, clientId, clientSecret, scope }) => ({
    name,
    issuer: issuer ?? sandbox.issuer,
    clientId: clientId ?? sandbox.clientId(name),
    clientSecret: clientSecret ?? (await sandbox.clientSecret()),
    scope,
    ...(issuer === null ? { reachedAt: sandbox.reachedAt } : {}),
  }))
  return new Map(
    (await Promise.all(clients)).map((client) => [client.name, createOpenIdProvider(client, { log })]),
  )
}
