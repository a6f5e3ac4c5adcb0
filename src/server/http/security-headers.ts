/** Security headers of every response. */
import type { Context } from 'hono'
import type { Env } from './request.ts'

/** Pages that clients open in a popup and observe closing; these keep their opener. */
const popupPaths = /^\/(oauth|sign-in)(\/|$)/

/** Disables browser features that our pages do not use; passkeys are limited to this origin. */
const permissions =
  'accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), midi=(), payment=(), usb=(), publickey-credentials-create=(self), publickey-credentials-get=(self)'

/** Base policy that also applies to pages rendered by libraries. */
const basePolicy = "base-uri 'none'; object-src 'none'; frame-ancestors 'none'"

/** Policy of responses that are not pages. Pages set their own. */
const nonPagePolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const fixedHeaders: readonly (readonly [name: string, value: string])[] = [
  ['X-Content-Type-Options', 'nosniff'],
  ['X-Frame-Options', 'DENY'],
  ['Referrer-Policy', 'no-referrer'],
  ['Permissions-Policy', permissions],
  ['Cross-Origin-Resource-Policy', 'same-origin'],
]

/** One year of https only. @see https://www.rfc-editor.org/rfc/rfc6797 */
const STRICT_TRANSPORT = 'max-age=31536000'

/**
 * @param set sets a header unless the response has it. @param isBefore the response is not built yet and may be a
 * page.
 */
export function setSecurityHeaders(
  c: Context<Env>,
  set: (name: string, value: string) => void,
  { origin, isBefore }: { readonly origin: string; readonly isBefore: boolean },
): void {
  for (const [name, value] of fixedHeaders) set(name, value)
  if (!popupPaths.test(c.req.path)) set('Cross-Origin-Opener-Policy', 'same-origin')
  if (origin.startsWith('https:')) set('Strict-Transport-Security', STRICT_TRANSPORT)
  set('Content-Security-Policy', isBefore ? basePolicy : nonPagePolicy)
}
