/** Errors of the protocol, as both eras put them on the wire. */

/** The JSON-RPC code of wrong parameters. @see https://www.jsonrpc.org/specification#error_object */
const INVALID_PARAMS = -32602

/** A JSON-RPC error. Not an SDK's class, whose message its client would prefix a second time. @param data what it is about. */
export function protocolError(
  message: string,
  data?: Readonly<Record<string, string>>,
): Error & { readonly code: number } {
  return Object.assign(new Error(message), { code: INVALID_PARAMS, ...(data === undefined ? {} : { data }) })
}
