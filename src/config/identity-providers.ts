/** The part of the configuration that names who signs people in: `OIDC_{NAME}_…` for each provider. */
import { list } from './list.ts'

/** An OpenID provider as the environment names it. @property issuer null: the sandbox's own. */
export interface IdentityProviderConfig {
  /** In the route: `/api/auth/{name}`. */
  readonly name: string
  readonly issuer: string | null
  readonly clientId: string | null
  readonly clientSecret: string | null
  readonly scope: string | null
}

/** The names in a list of providers. */
export function providerNames(text = 'google,apple'): string[] {
  return list.parse(text)
}

/** What the variables of a provider begin with. */
export function providerVariablePrefix(name: string): string {
  return `OIDC_${name.toUpperCase().replaceAll('-', '_')}_`
}

/** The providers of these names, as the environment describes each. */
export function identityProvidersOf(
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
