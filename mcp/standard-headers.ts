/**
 * What clients of 2026 repeat of a message in its headers, so that whatever stands between need not read the body.
 * @see https://modelcontextprotocol.io/specification/2026-07-28/basic/transports#standard-headers
 */

const VERSION = 'io.modelcontextprotocol/protocolVersion'

/** The member of the parameters that Mcp-Name repeats, by method. */
const named: ReadonlyMap<unknown, string> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
])

/** The headers of a message; none where it does not say itself that it is of that era. */
export function standardHeaders(message: object): Record<string, string> {
  const { method, params } = { method: undefined, params: undefined, ...message }
  const version = memberOf(memberOf(params, '_meta'), VERSION)
  if (typeof method !== 'string' || typeof version !== 'string' || !isPlain(method) || !isPlain(version))
    return {}
  const name = memberOf(params, named.get(method) ?? '')
  return {
    'mcp-protocol-version': version,
    'mcp-method': method,
    ...(typeof name === 'string' ? { 'mcp-name': encoded(name) } : {}),
  }
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? new Map(Object.entries(value)).get(name) : undefined
}

/** Whether a header can hold a text as it is. */
function isPlain(text: string): boolean {
  return /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text)
}

function encoded(text: string): string {
  const isSafe = isPlain(text) && !/^=\?base64\?.*\?=$/.test(text)
  return isSafe ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`
}
