/** Configuration of identity providers: `OIDC_{NAME}_…` for each provider. */
import { list } from './list.ts'

/** @property issuer null uses the sandbox's identity provider. */
export interface IdentityProviderConfig {
  /** Name in the route `/api/auth/{name}`. */
  readonly name: string
  readonly issuer: string | null
  readonly clientId: string | null
  readonly clientSecret: string | null
  readonly scope: string | null
}

export function providerNames(text = 'google,apple'): string[] {
  return list.parse(text)
}

export function providerVariablePrefix(name: string): string {
  return `OIDC_${name.toUpperCase().replaceAll('-', '_')}_`
}

export function readIdentityProviders(
  given: Readonly<Record<string, string | undefined>>,
  names: readonly string[],
): IdentityProviderConfig[] {
  return names.map((name) => {
    const read = (member: string) => given[`${providerVariablePrefix(name)}${member}`] ?? null
    return {
      name,
      issuer: read('ISSUER'),
      clientId: read('CLIENT_ID'),
      clientSecret: read('CLIENT_SECRET'),
      scope: read('SCOPE'),
    }
  })
}
