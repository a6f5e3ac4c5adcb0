/** OAuth state that an MCP client keeps, and the browser that it opens. */

export function keptAuthorization(
  { name, redirectUrl }: { name: string; redirectUrl: string },
  open: (url: URL) => Promise<void>,
) {
  const kept: { client?: object; tokens?: object; verifier?: string; discovery?: object } = {}
  return {
    redirectUrl,
    clientMetadata: {
      client_name: name,
      redirect_uris: [redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    },
    clientInformation: () => kept.client as never,
    saveClientInformation: (client: object) => {
      kept.client = client
    },
    tokens: () => kept.tokens as never,
    saveTokens: (tokens: object) => {
      kept.tokens = tokens
    },
    redirectToAuthorization: open,
    saveCodeVerifier: (verifier: string) => {
      kept.verifier = verifier
    },
    codeVerifier: () => kept.verifier ?? '',
    saveDiscoveryState: (discovery: object) => {
      kept.discovery = discovery
    },
    discoveryState: () => kept.discovery as never,
  }
}
