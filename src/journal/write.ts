/** Writes the journal. */
import type { NewId } from '../base/ids.ts'
import type { Json } from '../base/json.ts'
import { type Connection, callForRow, type Statement } from '../storage/database.ts'
import { type EntryContent, entryHash, entryMac, FIRST_PREVIOUS } from './entry.ts'

export interface Change extends Omit<EntryContent, 'id' | 'at' | 'before' | 'after'> {
  readonly before?: Json
  readonly after?: Json
  readonly at: Date
}

/**
 * Writes a change. Call it last in the change's transaction, because it locks the journal until the transaction ends.
 */
export type WriteJournal = (transaction: Connection, change: Change) => Promise<void>

const head: Statement = { name: 'journal_head', text: 'select * from journal_head()' }

const append: Statement = {
  name: 'journal_append',
  text: `insert into journal_entry (sequence, id, account_id, at, actor_kind, actor_id, action, object_kind, object_id, before,
      after, previous, hash, mac)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::jsonb, $11::jsonb, $12, $13, $14)`,
}

export function createJournal({
  dataKey,
  newId,
}: {
  readonly dataKey: Uint8Array
  readonly newId: NewId
}): WriteJournal {
  return async (transaction, { at, before = null, after = null, accountId, actor, action, object }) => {
    const id = newId('jrn', at)
    const content: EntryContent = {
      id,
      accountId,
      at: at.toISOString(),
      actor,
      action,
      object,
      before,
      after,
    }
    const last = await callForRow<{ sequence: bigint | null; hash: string | null }>(transaction, head, [])
    const sequence = (last.sequence ?? 0n) + 1n
    const previous = last.hash ?? FIRST_PREVIOUS
    const hash = entryHash(previous, content)
    const mac = entryMac(dataKey, { sequence, hash })
    await transaction.call(append, [
      sequence,
      id,
      accountId,
      at,
      actor.kind,
      actor.id,
      action,
      object.kind,
      object.id,
      before === null ? null : JSON.stringify(before),
      after === null ? null : JSON.stringify(after),
      previous,
      hash,
      mac,
    ])
  }
}
