/** What every process on one database must have alike. @property signingKey a private JWK, Ed25519. */
export interface SandboxOpenIdSecrets {
  readonly clientSecret: string
  readonly cookieKey: string
  readonly signingKey: Readonly<Record<string, unknown>>
}

/** Who may send people here. @property redirectUri the one place they are sent back to. */
export interface SandboxClient {
  readonly clientId: string
  readonly redirectUri: string
}
