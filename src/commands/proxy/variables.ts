/** The environment in which programs use the proxy. */
import type { ProxyFolder } from './folder.ts'

/**
 * Builds the variables that common clients read. Some read lower case only (curl for `http_proxy`), some upper case only.
 * Files that replace a client's roots hold the system's roots too.
 */
export function buildVariables({
  port,
  gateway,
  folder: { token, certificates },
}: {
  readonly port: number
  readonly gateway: string
  readonly folder: Pick<ProxyFolder, 'token' | 'certificates'>
}): Readonly<Record<string, string>> {
  const url = `http://bursar:${token}@127.0.0.1:${port}`
  const proxied = { HTTP_PROXY: url, HTTPS_PROXY: url, NO_PROXY: exempt(new URL(gateway)) }
  return {
    ...proxied,
    ...Object.fromEntries(Object.entries(proxied).map(([name, value]) => [name.toLowerCase(), value])),
    NODE_USE_ENV_PROXY: '1',
    NODE_EXTRA_CA_CERTS: certificates.own,
    SSL_CERT_FILE: certificates.all,
    REQUESTS_CA_BUNDLE: certificates.all,
    CURL_CA_BUNDLE: certificates.all,
    GIT_SSL_CAINFO: certificates.all,
    npm_config_cafile: certificates.all,
  }
}

/**
 * A gateway on this machine is exempt with its port, because programs may buy from other ports of the same host. Clients that
 * compare hosts only then use the proxy, which passes their requests on.
 */
function exempt({ hostname, host, port }: URL): string {
  return port !== '' && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname) ? host : hostname
}

/** Lines for a POSIX shell to evaluate. */
export function writeExports(variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables)
    .map(([name, value]) => `export ${name}='${value.replaceAll("'", "'\\''")}'\n`)
    .join('')
}
