/** Writes the journal. */
import type { NewId } from '../../core/base/ids.ts'
import type { Json } from '../../core/base/json.ts'
import { Failure } from '../../core/failures/failure.ts'
import { type Connection, callForRow, type Statement } from '../../storage/database.ts'
import { type EntryContent, entryHash, entryMac, FIRST_PREVIOUS } from './entry.ts'
import { countBytes, type KeptStates, shorten, withoutDetails } from './shorten.ts'

export interface Change extends Omit<EntryContent, 'id' | 'at' | keyof KeptStates> {
  readonly before?: Json
  readonly after?: Json
  /** The person has shown a second factor just now. */
  readonly isProven?: boolean
  readonly at: Date
}

/** Bytes of a day, for each account and kind of actor, after which entries have hashes in place of states. */
const DETAILED_BYTES = 1_048_576

/** Bytes of a day after which persons change no more of their account, except to stop something. */
const MAX_BYTES = 4 * DETAILED_BYTES

/** The same with a second factor: a stolen session must not use up what its owner needs to tighten limits. */
const MAX_PROVEN_BYTES = 2 * MAX_BYTES

/** Bytes of an entry beside its states, with its indexes. */
const ENTRY_BYTES = 600

/** Actions that stop something, prove who somebody is, or answer an agent: never refused. */
const STOPPING =
  /^(account\.|device\.|factor\.|key\.(paused|revoked)$|schedule\.(paused|ended)$|approval\.|session|[a-z_]+\.(deleted|removed|revoked|canceled|frozen)$)/

/**
 * Writes a change. Call it last in the change's transaction, because it locks the journal until the transaction ends.
 * @throws Failure `rate_limited` when a person has changed more than a day's journal takes; nothing that stops money is refused.
 */
export type WriteJournal = (transaction: Connection, change: Change) => Promise<void>

const head: Statement = { name: 'journal_head', text: 'select * from journal_head($1, $2, $3::date)' }

const append: Statement = {
  name: 'journal_append',
  text: `with used as (
      insert into journal_usage as u (account_id, actor_kind, day, bytes) values ($3, $5, $17::date, $18)
      on conflict (account_id, actor_kind) do update
      set bytes = excluded.bytes + case when u.day = excluded.day then u.bytes else 0 end, day = excluded.day
    )
    insert into journal_entry (sequence, id, account_id, at, actor_kind, actor_id, action, object_kind, object_id, before,
      after, previous, hash, mac, before_hash, after_hash)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::jsonb, $11::jsonb, $12, $13, $14, $15, $16)`,
}

export function createJournal({
  dataKey,
  newId,
}: {
  readonly dataKey: Uint8Array
  readonly newId: NewId
}): WriteJournal {
  return async (transaction, change) => {
    const { at, before = null, after = null, accountId, actor, action, object } = change
    const id = newId('jrn', at)
    const day = at.toISOString().slice(0, 10)
    const last = await callForRow<Head>(transaction, head, [accountId, actor.kind, day])
    const used = last.used ?? 0n
    const most = change.isProven === true ? MAX_PROVEN_BYTES : MAX_BYTES
    if (used >= most && actor.kind === 'person' && !isStopping(action, after)) throw tooManyChanges(at)
    const states = { before, after }
    const kept = used >= DETAILED_BYTES ? withoutDetails(states) : shorten(states)
    const content: EntryContent = { id, accountId, at: at.toISOString(), actor, action, object, ...kept }
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
      kept.before === null ? null : JSON.stringify(kept.before),
      kept.after === null ? null : JSON.stringify(kept.after),
      previous,
      hash,
      mac,
      kept.beforeHash ?? null,
      kept.afterHash ?? null,
      day,
      ENTRY_BYTES + countBytes(kept.before) + countBytes(kept.after),
    ])
  }
}

interface Head {
  readonly sequence: bigint | null
  readonly hash: string | null
  readonly used: bigint | null
}

/** A card or key that is not active any more was stopped, whatever the action is called. */
function isStopping(action: string, after: Json): boolean {
  const status = typeof after === 'object' && after !== null && 'status' in after ? after.status : 'active'
  return STOPPING.test(action) || (action.endsWith('.updated') && status !== 'active')
}

const DAY_MS = 24 * 60 * 60 * 1000

function tooManyChanges(at: Date): Failure {
  return new Failure('rate_limited', 'The account was changed too often today.', {
    retryAfter: Math.ceil((DAY_MS - (at.getTime() % DAY_MS)) / 1000),
    hint: 'Stopping an agent, a card or the account works. Make other changes with a second factor (POST /api/security/mfa), or tomorrow (UTC).',
  })
}
