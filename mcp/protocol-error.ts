/** JSON-RPC errors for both protocol eras. */

/** Invalid params. @see https://www.jsonrpc.org/specification#error_object */
const INVALID_PARAMS = -32602

/**
 * Creates a JSON-RPC error. It is not an SDK class, whose message the client would prefix twice. @param data
 * structured details.
 */
export function protocolError(
  message: string,
  data?: Readonly<Record<string, string>>,
): Error & { readonly code: number } {
  return Object.assign(new Error(message), { code: INVALID_PARAMS, ...(data === undefined ? {} : { data }) })
}
