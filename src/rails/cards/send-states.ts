/**
 * Tells the card processor which cards are frozen or canceled. The gateway declines them itself; the processor has to
 * know for purchases that it decides while the gateway cannot be reached.
 */
import type { Clock } from '../../core/base/clock.ts'
import type { Log } from '../../core/base/log.ts'
import type { CardProcessor } from '../../providers/card-processor/port.ts'
import type { Connection, Database, Statement } from '../../storage/database.ts'

/** Longer than a request takes, so that an older state never arrives after a newer one. */
const RETRY_MS = 12_000
const BATCH = 20

interface UnsentState {
  readonly id: string
  readonly token: string
  readonly status: 'active' | 'frozen' | 'canceled'
}

const claim: Statement = {
  name: 'cards_claim_states',
  text: `update card set status_tried_at = $2 where id in (
      select id from card where status <> sent_status and (status_tried_at is null or status_tried_at < $1)
      order by status_tried_at nulls first limit $3 for update skip locked)
    returning id, processor_token as token, status`,
}

/** Runs one round. A failing card does not block the others. @param signal stops the round early. */
export async function sendCardStates(
  {
    database,
    cardProcessor,
    clock,
    log,
  }: {
    readonly database: Database
    readonly cardProcessor: Pick<CardProcessor, 'setStatus'>
    readonly clock: Clock
    readonly log: Log
  },
  signal: AbortSignal,
): Promise<number> {
  if (cardProcessor.setStatus === null) return 0
  const at = clock()
  const due = await database.call<UnsentState>(claim, [new Date(at.getTime() - RETRY_MS), at, BATCH])
  for (const { id, token, status } of due) {
    if (signal.aborted) break
    await cardProcessor.setStatus({ token, status }).then(
      () => keepSent(database, { id, status, at }),
      (err: unknown) =>
        log.warn({ err, cardId: id, status }, 'the processor does not know the state of a card yet'),
    )
  }
  return due.length
}

/** The next change need not wait: this one has arrived. Does nothing if another round has tried since. */
async function keepSent(
  { kysely }: Connection,
  { id, status, at }: Omit<UnsentState, 'token'> & { readonly at: Date },
): Promise<void> {
  await kysely
    .updateTable('card')
    .set({ sent_status: status, status_tried_at: null })
    .where('id', '=', id)
    .where('status_tried_at', '=', at)
    .execute()
}
