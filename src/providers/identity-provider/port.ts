/** External identity providers for sign-in: OpenID Connect, authorization code with PKCE. */

/** Values that link the two steps of a sign-in. All are random and used once. */
export interface SignInSecrets {
  readonly state: string
  readonly nonce: string
  /** PKCE, RFC 7636. */
  readonly codeVerifier: string
}

/** Identity of a person, as stated by a provider. */
export interface ProvidedIdentity {
  readonly issuer: string
  /** Unique within the issuer and never reassigned, unlike an e-mail address. */
  readonly subject: string
  readonly displayName: string | null
}

/** The identity provider port. Adapter: `openid`. */
export interface IdentityProvider {
  /** Builds the URL for sign-in. @throws Failure `provider_unavailable`. */
  authorizationUrl(secrets: SignInSecrets, redirectUri: string): Promise<string>
  /**
   * Exchanges the returned code.
   * @param iss the `iss` parameter of RFC 9207, if the client received one.
   * @throws Failure `unauthenticated` when the code or the provider's answer is invalid; `provider_unavailable`.
   */
  identify(
    callback: { readonly code: string; readonly iss: string | null },
    secrets: SignInSecrets,
    redirectUri: string,
  ): Promise<ProvidedIdentity>
}
