/** Pages that a sign-in may lead to. The sign-in page's script and its route use the same list. */

const ID = '[A-Za-z0-9_-]{1,64}'

/** Paths of the console, and of the pages that ask for a decision. Nothing is percent-encoded in any of them. */
const PATHS = [
  '',
  `agents(?:/(?:connect/)?${ID})?`,
  `approvals(?:/${ID})?`,
  'activity',
  `cards(?:/${ID})?`,
  'accounts(?:/send)?',
  'invest',
  'messages',
  'compliance',
  'contacts',
  'people(?:/join)?',
  'schedules',
  'security',
  'developers',
  'operator',
  `oauth/consent/${ID}`,
  `devices/${ID}`,
]

/** A query has no fragment, no space and no second question mark; its values may be percent-encoded. */
const OWN_PAGE = new RegExp(`^/(?:${PATHS.join('|')})(?:\\?[A-Za-z0-9_.~:,+&=%-]{0,512})?$`)

/**
 * Returns the text if it is the path of a page of ours, and null for everything else: other origins, `//host`,
 * backslashes, dot segments, schemes and encoded forms of them.
 */
export function parseOwnPage(text: string): string | null {
  return OWN_PAGE.test(text) ? text : null
}
