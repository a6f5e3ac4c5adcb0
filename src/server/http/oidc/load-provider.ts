/** Loads `oidc-provider`, which calls `URL.parse`: the first versions of Node 20 that Bursar runs on lack it. */
export function loadProviderLibrary() {
  URL.parse ??= (url, base) => (URL.canParse(url, base) ? new URL(url, base) : null)
  return import('oidc-provider')
}
