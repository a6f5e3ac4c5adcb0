/** Secrets shared by all processes on one database. @property signingKey a private JWK, Ed25519. */
export interface SandboxOpenIdSecrets {
  readonly clientSecret: string
  readonly cookieKey: string
  readonly signingKey: Readonly<Record<string, unknown>>
}

/** A registered client. @property redirectUri its only redirect URI. */
export interface SandboxClient {
  readonly clientId: string
  readonly redirectUri: string
}
