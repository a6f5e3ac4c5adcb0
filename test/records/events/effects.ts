/** Effects without their event, and events without their effect, over the whole database. */
import { sql } from 'kysely'
import { expect } from 'vitest'
import type { Connection } from '../../../src/storage/database.ts'

/**
 * Expects one event for each effect and the reverse, published or not. An effect that can change twice (a card's controls,
 * a partly reversed purchase) and a state that can be skipped (an order that is filled at once) have tests of their own.
 */
export async function expectEventsOfEffects({ kysely }: Pick<Connection, 'kysely'>): Promise<void> {
  const { rows } = await sql<{ side: string; type: string; object: string }>`
    with written as (
      select type, object_id, account_id, data, 0 as is_pending, sequence as place from published_event
      union all
      select e.type, e.object_id, e.account_id, e.data, 1, o.position from event_outbox o join event e on e.id = o.event_id
    ), found as (
      select type, case when type like 'deposit.%' then account_id || ' ' || (data->>'asset') || ' ' || (data->>'units')
        else object_id end as object
      from written where type not in ('card.updated', 'card.reversed', 'order.accepted', 'key.updated', 'key.paused', 'key.resumed',
        'kyc.updated', 'wallet.shortfall', 'webhook.disabled', 'ping', 'security.locked', 'security.unlocked', 'deposit.reversed')
        and type not like 'purchase.%'
      union all
      -- The last outcome of a purchase: what was not delivered at first may be delivered later.
      (select distinct on (object_id) type, object_id from written where type like 'purchase.%'
        order by object_id, is_pending desc, place desc)
    ), effect as (
      select 'transfer.submitted' as type, id as object from transfer
      union all select 'transfer.' || state, id from transfer where state in ('confirmed', 'failed')
      union all select 'transfer.confirmed', reference from ledger_transaction where kind = 'transfer_reversal'
      union all select 'relay.' || state, id from relay where state in ('confirmed', 'failed')
      union all select 'decision.denied', id from decision where verdict in ('deny', 'insufficient_funds')
      union all
      select 'deposit.credited', split_part(p.destination, ':', 1) || ' ' || p.asset || ' ' || p.units
      from posting p join ledger_transaction l on l.id = p.transaction_id
      where l.kind in ('deposit', 'settle') and p.destination like 'acct\\_%'
        and split_part(p.source, ':', 1) <> split_part(p.destination, ':', 1)
      union all select 'card.issued', id from card
      union all select 'card.authorized', id from card_authorization where approved > 0
      union all select 'card.declined', a.id from card_authorization a where a.reason <> 'approved'
      union all select 'card.cleared', authorization_id from card_event where kind in ('clearing', 'return_reversal') and units > 0
      union all select 'card.refunded', authorization_id from card_event where kind = 'refund' and units > 0
      union all select 'approval.requested', id from approval
      union all select 'approval.' || status, id from approval where status <> 'pending'
      union all select 'approval.expired', id from approval where expired_at is not null
      union all
      select case status when 'rejected' then 'order.canceled' else 'order.' || status end, id from investing_order
      where status in ('filled', 'canceled', 'rejected', 'expired')
      union all
      select case when delivered_at is not null then 'purchase.delivered' when state = 'failed' then 'purchase.failed'
        else 'purchase.undelivered' end, id
      from purchase where state in ('settled', 'failed') and (delivered_at is not null or state = 'failed' or failure_code is not null)
      union all select 'channel.opened', id from channel where deposit > 0
      union all select 'channel.closed', id from channel where status = 'closed'
      union all select 'key.created', id from access_key
      union all select 'key.revoked', id from access_key where status = 'revoked'
      union all select 'security.signed_in', id from session
    )
    select 'an effect without its event' as side, type, object from (table effect except all table found) missing
    union all
    select 'an event without its effect', type, object from (table found except all table effect) surplus
    limit 20`.execute(kysely)
  expect(rows).toEqual([])
  const { rows: torn } = await sql`
    select account_id from published_event group by account_id
    having count(distinct sequence) <> count(*) or count(distinct id) <> count(*) or max(sequence) - min(sequence) + 1 <> count(*)
    union select e.account_id from published_event e left join event_head h on h.account_id = e.account_id
    where h.last_sequence is null or e.sequence > h.last_sequence
    -- An event is published, or waits in the outbox.
    union select e.account_id from event e
    where (exists (select from published_event p where p.id = e.id)) = (exists (select from event_outbox o where o.event_id = e.id))`.execute(
    kysely,
  )
  expect(torn).toEqual([])
}
