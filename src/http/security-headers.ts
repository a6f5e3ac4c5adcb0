/** What every answer tells browsers: to guess nothing, to run nothing, to frame nothing, and to tell others nothing. */
import type { Context } from 'hono'
import type { Env } from './request.ts'

/** Pages that a client may open in a window of its own and be told by when it closes: those keep their opener. */
const opened = /^\/(oauth|sign-in)(\/|$)/

/** What no page of ours uses; passkeys are for our own. */
const permissions =
  'accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), midi=(), payment=(), usb=(), publickey-credentials-create=(self), publickey-credentials-get=(self)'

/** What holds for whoever answers, also for pages that others' code makes. */
const framing = "base-uri 'none'; object-src 'none'; frame-ancestors 'none'"

/** What is no page loads nothing at all. Pages bring a policy of their own. */
const nothing = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const always: readonly (readonly [name: string, value: string])[] = [
  ['X-Content-Type-Options', 'nosniff'],
  ['X-Frame-Options', 'DENY'],
  ['Referrer-Policy', 'no-referrer'],
  ['Permissions-Policy', permissions],
  ['Cross-Origin-Resource-Policy', 'same-origin'],
]

/** A year; once seen, a browser never asks us in the clear again. @see https://www.rfc-editor.org/rfc/rfc6797 */
const STRICT_TRANSPORT = 'max-age=31536000'

/**
 * Sets the headers. @param set sets one where the answer has none of its own. @param isBefore the answer is not made yet, and
 * whoever makes it may bring a page.
 */
export function setSecurityHeaders(
  c: Context<Env>,
  set: (name: string, value: string) => void,
  { origin, isBefore }: { readonly origin: string; readonly isBefore: boolean },
): void {
  for (const [name, value] of always) set(name, value)
  if (!opened.test(c.req.path)) set('Cross-Origin-Opener-Policy', 'same-origin')
  if (origin.startsWith('https:')) set('Strict-Transport-Security', STRICT_TRANSPORT)
  set('Content-Security-Policy', isBefore ? framing : nothing)
}
