/** Signs Sumsub's requests. @see https://docs.sumsub.com/reference/authentication */
import { createHmac } from 'node:crypto'

/** @param path path with its query, as sent. @param body as sent; empty without one. */
export function sumsubHeaders(
  { appToken, secretKey }: { readonly appToken: string; readonly secretKey: string },
  { method, path, body, at }: { method: 'GET' | 'POST'; path: string; body: string; at: Date },
): Record<string, string> {
  const seconds = Math.floor(at.getTime() / 1000)
  const signature = createHmac('sha256', secretKey).update(`${seconds}${method}${path}${body}`).digest('hex')
  return {
    'x-app-token': appToken,
    'x-app-access-ts': String(seconds),
    'x-app-access-sig': signature,
    accept: 'application/json',
  }
}
