/**
 * Browsers that an account signed in with before. A long-lived cookie names the account under a keyed hash; it grants
 * nothing but rate budgets of its own, so that strangers cannot use up those of an owner's browser.
 * @see https://owasp.org/www-community/Slow_Down_Online_Guessing_Attacks_with_Device_Cookies
 */
import { timingSafeEqual } from 'node:crypto'
import { randomToken } from '../../../core/base/ids.ts'
import type { KnownBrowser } from '../../../core/base/principal.ts'
import { keyedHash } from '../../../core/base/seal.ts'

interface BrowserSettings {
  readonly dataKey: Uint8Array
}

/** Builds the cookie's value. @param known browser that already has one; it keeps its id. */
export function browserToken(
  settings: BrowserSettings,
  accountId: string,
  known: KnownBrowser | null = null,
): string {
  const id = known?.accountId === accountId ? known.id : randomToken(16)
  return `${id}.${accountId}.${hashBrowser(settings, { id, accountId })}`
}

/** @returns null unless this deployment issued the token. */
export function readBrowserToken(settings: BrowserSettings, token: string): KnownBrowser | null {
  const match = /^([\w-]{22})\.(\w{1,64})\.([0-9a-f]{64})$/.exec(token)
  if (match === null) return null
  const [, id = '', accountId = '', hash = ''] = match
  const isOurs = timingSafeEqual(Buffer.from(hash), Buffer.from(hashBrowser(settings, { id, accountId })))
  return isOurs ? { id, accountId } : null
}

function hashBrowser({ dataKey }: BrowserSettings, { id, accountId }: KnownBrowser): string {
  return keyedHash(dataKey, 'known browser', `${id}.${accountId}`)
}
