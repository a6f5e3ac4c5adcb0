/**
 * Mails to owners about events of their accounts. Publishing an event writes its mails in the same transaction; this folder claims
 * them, writes their text, and records the outcome. May import base, money, the ports and spending. Invariants: an event is mailed
 * once to each e-mail address, except that a crash between sending and recording, or a lost answer of the mail server, repeats it; no
 * text of an agent is a link.
 */
import type { Connection, Statement } from '../../storage/database.ts'

/** Longer than one round of sending. */
const CLAIM_MS = 60_000
const FIRST_RETRY_MS = 15_000
const MAX_RETRY_MS = 60 * 60 * 1000

const claimStatement: Statement = {
  name: 'owner_mail_claim',
  text: 'select * from owner_mail_claim($1, $2, $3)',
}

/** An event to tell an owner of. */
export interface ClaimedEvent {
  readonly sequence: bigint
  readonly account_id: string
  readonly type: string
  readonly object_id: string
  readonly data: unknown
  readonly at: Date
  readonly tries: number
  readonly expires_at: Date
}

/** What is said of an event. */
export type ToldEvent = Pick<ClaimedEvent, 'account_id' | 'type' | 'object_id' | 'data' | 'at'>

/** An event to tell an address of. */
export interface ClaimedMail extends ClaimedEvent {
  readonly destination_hash: string
  readonly sealed_address: Uint8Array
}

/** Claims the mails that are due for some addresses. @returns one list for each mail: its events, all of one type and address. */
export async function claimMails(
  database: Connection,
  { limit, at }: { limit: number; at: Date },
): Promise<(readonly [ClaimedMail, ...ClaimedMail[]])[]> {
  const until = new Date(at.getTime() + CLAIM_MS)
  const rows = await database.call<ClaimedMail>(claimStatement, [limit, at, until])
  const mails = new Map<string, [ClaimedMail, ...ClaimedMail[]]>()
  for (const row of rows) {
    const name = `${row.destination_hash} ${row.type}`
    const mail = mails.get(name)
    if (mail === undefined) mails.set(name, [row])
    else mail.push(row)
  }
  return [...mails.values()]
}

type Claimed = readonly [ClaimedMail, ...ClaimedMail[]]

function toRows(events: Claimed) {
  return { hash: events[0].destination_hash, sequences: events.map(({ sequence }) => sequence) }
}

export async function markSent({ kysely }: Connection, events: Claimed, at: Date): Promise<void> {
  const { hash, sequences } = toRows(events)
  await kysely
    .updateTable('owner_mail')
    .set({ sent_at: at })
    .where('destination_hash', '=', hash)
    .where('sequence', 'in', sequences)
    .execute()
}

/** Schedules the next attempt, later each time. Events whose last attempt this was are given up. */
export async function scheduleRetry({ kysely }: Connection, events: Claimed, at: Date): Promise<void> {
  const { hash, sequences } = toRows(events)
  const tries = Math.max(...events.map((event) => event.tries)) + 1
  const pause = Math.min(FIRST_RETRY_MS * 2 ** Math.min(tries - 1, 20), MAX_RETRY_MS)
  await kysely
    .updateTable('owner_mail')
    .set({ tries, held_until: new Date(at.getTime() + pause) })
    .where('destination_hash', '=', hash)
    .where('sequence', 'in', sequences)
    .execute()
  await kysely
    .deleteFrom('owner_mail')
    .where('destination_hash', '=', hash)
    .where('sequence', 'in', sequences)
    .where('expires_at', '<=', at)
    .execute()
}

/** Removes events that need no mail any more. */
export async function dropMails({ kysely }: Connection, events: Claimed): Promise<void> {
  const { hash, sequences } = toRows(events)
  await kysely
    .deleteFrom('owner_mail')
    .where('destination_hash', '=', hash)
    .where('sequence', 'in', sequences)
    .execute()
}

/** Deletes mails a day after their last possible attempt. */
export async function sweepOwnerMails({ kysely }: Connection, before: Date): Promise<void> {
  await kysely.deleteFrom('owner_mail').where('expires_at', '<', before).execute()
}
