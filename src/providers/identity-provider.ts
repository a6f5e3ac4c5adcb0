/** Identity providers elsewhere that sign people in: OpenID Connect, authorization code with PKCE. */

/** What binds the two halves of one sign-in. All are random and used once. */
export interface SignInSecrets {
  readonly state: string
  readonly nonce: string
  /** PKCE, RFC 7636. */
  readonly codeVerifier: string
}

/** Who a provider says that a person is. */
export interface ProvidedIdentity {
  readonly issuer: string
  /** Unique within the issuer and never given to somebody else; an e-mail address is neither. */
  readonly subject: string
  readonly displayName: string | null
}

/** The identity provider port. Adapter: `openid`. */
export interface IdentityProvider {
  /** Where to send the person. @throws Failure `provider_unavailable`. */
  authorizationUrl(secrets: SignInSecrets, redirectUri: string): Promise<string>
  /**
   * Exchanges what the provider sent back. @param iss the `iss` parameter of RFC 9207, where the client got one.
   * @throws Failure `unauthenticated` where the provider or its answer does not hold, `provider_unavailable`.
   */
  identify(
    callback: { readonly code: string; readonly iss: string | null },
    secrets: SignInSecrets,
    redirectUri: string,
  ): Promise<ProvidedIdentity>
}
