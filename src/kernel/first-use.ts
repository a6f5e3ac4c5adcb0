/** Keeps when a key made its first call, so that its owner sees that an agent really works. */
import { LRUCache } from 'lru-cache'
import type { Principal } from '../core/base/principal.ts'
import type { Database } from '../storage/database.ts'

/** Keys that this process knows to have made a call. A forgotten one costs one statement that changes nothing. */
const MAX_KNOWN = 10_000

// By database, because a process of tests has several with equal ids.
const known = new WeakMap<object, LRUCache<string, true>>()

/** Records a call of a key, unless it has made one before. */
export async function recordFirstUse(
  database: Pick<Database, 'kysely'>,
  principal: Principal,
  now: Date,
): Promise<void> {
  if (principal.kind !== 'key' || principal.key.firstUsedAt instanceof Date) return
  const { id } = principal.key
  const used = known.get(database) ?? new LRUCache<string, true>({ max: MAX_KNOWN })
  known.set(database, used)
  if (used.has(id)) return
  await database.kysely
    .updateTable('access_key')
    .set({ first_used_at: now })
    .where('id', '=', id)
    .where('first_used_at', 'is', null)
    .execute()
  used.set(id, true)
}
