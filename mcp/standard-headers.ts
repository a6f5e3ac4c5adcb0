/**
 * Headers in which 2026-era clients repeat message members, so that intermediaries need not parse the body.
 * @see https://modelcontextprotocol.io/specification/2026-07-28/basic/transports#standard-headers
 */

const VERSION = 'io.modelcontextprotocol/protocolVersion'

/** Parameter repeated in Mcp-Name, by method. */
const named: ReadonlyMap<unknown, string> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
])

/** Returns the headers of a 2026-era message; empty for other messages. */
export function standardHeaders(message: object): Record<string, string> {
  const { method, params } = { method: undefined, params: undefined, ...message }
  const version = readMember(readMember(params, '_meta'), VERSION)
  if (typeof method !== 'string' || typeof version !== 'string' || !isPlain(method) || !isPlain(version))
    return {}
  const name = readMember(params, named.get(method) ?? '')
  return {
    'mcp-protocol-version': version,
    'mcp-method': method,
    ...(typeof name === 'string' ? { 'mcp-name': encodeValue(name) } : {}),
  }
}

function readMember(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? new Map(Object.entries(value)).get(name) : undefined
}

/** True if a header can hold the text unencoded. */
function isPlain(text: string): boolean {
  return /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text)
}

function encodeValue(text: string): string {
  const isSafe = isPlain(text) && !/^=\?base64\?.*\?=$/.test(text)
  return isSafe ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`
}
