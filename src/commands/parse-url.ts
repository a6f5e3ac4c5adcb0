/** Parses URLs from the command line. */

/** Default address of the sandbox. */
const SANDBOX = 'http://127.0.0.1:8787'

/**
 * Parses a URL; a path is resolved against the gateway. @param gateway gateway URL. @throws Error that repeats the
 * text.
 */
export function parseUrl(text: string, gateway: string = SANDBOX): URL {
  const url = URL.canParse(text, gateway) ? new URL(text, gateway) : null
  const isWeb = url?.protocol === 'http:' || url?.protocol === 'https:'
  if (url === null || !isWeb || (!text.startsWith('/') && !/^https?:\/\//i.test(text)))
    throw new Error(`"${text}" is not a URL such as ${SANDBOX}.`)
  return url
}
