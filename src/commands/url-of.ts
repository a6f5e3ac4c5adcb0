/** URLs as people type them on a command line. */

/** Where the sandbox listens unless it was told otherwise. */
const SANDBOX = 'http://127.0.0.1:8787'

/** The URL that a text means; a path is one of the gateway's. @param gateway its URL. @throws Error that repeats the text. */
export function urlOf(text: string, gateway: string = SANDBOX): URL {
  const url = URL.canParse(text, gateway) ? new URL(text, gateway) : null
  const isWeb = url?.protocol === 'http:' || url?.protocol === 'https:'
  if (url === null || !isWeb || (!text.startsWith('/') && !/^https?:\/\//i.test(text)))
    throw new Error(`"${text}" is not a URL such as ${SANDBOX}.`)
  return url
}
