/** Pages of a statement, newest first. */

/** @property nextCursor null on the last page. */
interface Pages<Entry> {
  readonly entries: readonly Entry[]
  readonly nextCursor: string | null
}

/**
 * Puts the newest page before what was loaded further down. If more than a page is new, entries between the two are
 * missing: what was further down is left out then, and loaded again on demand, so that a statement has no hole.
 */
export function joinPages<Entry extends { readonly id: string; readonly at: string }>(
  before: Pages<Entry>,
  page: Pages<Entry>,
): Pages<Entry> {
  const fresh = new Set(page.entries.map(({ id }) => id))
  const last = page.entries.at(-1)
  const isJoined = page.nextCursor === null || before.entries.some(({ id }) => fresh.has(id))
  const older = before.entries.filter(
    ({ id, at }) => isJoined && !fresh.has(id) && last !== undefined && at <= last.at,
  )
  return {
    entries: [...page.entries, ...older],
    nextCursor: older.length > 0 ? before.nextCursor : page.nextCursor,
  }
}
