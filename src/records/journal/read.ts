/** Reads an account's journal entries, and the whole chain. */
import type { Selectable } from 'kysely'
import { cutPage, type Page } from '../../core/base/page.ts'
import type { Connection } from '../../storage/database.ts'
import type { JournalEntryTable } from '../../storage/schema.ts'
import { type ChainedEntry, FIRST_PREVIOUS } from './entry.ts'

const PAGE = 500

function parseEntry(row: Selectable<JournalEntryTable>): ChainedEntry {
  const { sequence, previous, hash, mac } = row
  const content = {
    id: row.id,
    accountId: row.account_id,
    at: row.at.toISOString(),
    actor: { kind: row.actor_kind, id: row.actor_id },
    action: row.action,
    object: { kind: row.object_kind, id: row.object_id },
    before: row.before,
    after: row.after,
    // Absent where they are null: entries from before have hashes without them.
    ...(row.before_hash === null ? {} : { beforeHash: row.before_hash }),
    ...(row.after_hash === null ? {} : { afterHash: row.after_hash }),
  }
  return { sequence, previous, hash, mac, content }
}

/**
 * Lists an account's entries, newest first in chain order. Ids are created before the journal is locked, so their
 * order can differ for simultaneous changes.
 */
export async function listJournal(
  database: Connection,
  { accountId, page }: { accountId: string; page: Page },
): Promise<{ entries: readonly ChainedEntry[]; nextCursor: string | null }> {
  const query = database.kysely.selectFrom('journal_entry').selectAll().where('account_id', '=', accountId)
  const { after } = page
  const rest =
    after === null
      ? query
      : query.where('sequence', '<', (own) =>
          own
            .selectFrom('journal_entry')
            .select('sequence')
            .where('id', '=', after)
            .where('account_id', '=', accountId),
        )
  const found = await rest
    .orderBy('sequence', 'desc')
    .limit(page.limit + 1)
    .execute()
  const { rows, nextCursor } = cutPage(found, page)
  return { entries: rows.map(parseEntry), nextCursor }
}

export async function readJournalHead(database: Connection): Promise<{ sequence: bigint; hash: string }> {
  const row = await database.kysely
    .selectFrom('journal_entry')
    .select(['sequence', 'hash'])
    .orderBy('sequence', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row ?? { sequence: 0n, hash: FIRST_PREVIOUS }
}

/** Reads the whole journal in pages, in chain order. @param until last sequence; all by default. */
export async function* journalPages(database: Connection, until?: bigint): AsyncGenerator<ChainedEntry[]> {
  let after = 0n
  for (;;) {
    const rows = await database.kysely
      .selectFrom('journal_entry')
      .selectAll()
      .where('sequence', '>', after)
      .orderBy('sequence')
      .limit(PAGE)
      .execute()
    const last = rows.at(-1)
    if (last === undefined) return
    const page = rows.map(parseEntry)
    yield until === undefined ? page : page.filter(({ sequence }) => sequence <= until)
    if (until !== undefined && last.sequence >= until) return
    after = last.sequence
  }
}
