-- Counts what still needs a decision made before a month's end: it keeps the month from being archived. Whatever has ended reads its
-- decision for histories alone, which know archived ones.
--
-- Arguments: p_end is first_id_at of the next month; p_at the time of the calendar.
-- Locks: none.
create or replace function archive_blockers(p_end text, p_at timestamptz) returns table (what text, count bigint) language plpgsql stable as $$
#variable_conflict use_column
begin
  return query
  select b.what, count(*) from (
    select 'spends that hold money' as what from reservation r
    where r.status = 'reserved' and r.decision_id >= 'dec_' and r.decision_id < p_end
    union all
    select 'approvals that wait' from approval a
    where a.decision_id < p_end
      and (a.status = 'pending' and a.expires_at > p_at or a.status = 'approved' and a.answer is null and a.problem is null)
    union all
    select 'reviews that are open' from aml_review r where r.decision_id < p_end and r.status = 'open'
    union all
    select 'transfers under way' from transfer t
    where t.decision_id < p_end and t.state in ('funding', 'reserved', 'submitted', 'settlement_pending')
    union all
    select 'relays under way' from relay r where r.decision_id < p_end and r.state in ('reserved', 'submitted', 'settlement_pending')
    union all
    select 'swaps under way' from swap_order s where s.decision_id < p_end and s.state in ('submitted', 'bridging')
    union all
    select 'movements before a payment' from funding f where f.decision_id < p_end and f.state = 'moving'
    union all
    select 'purchases under way' from purchase p
    where p.decision_id < p_end and (p.state in ('reserved', 'signed') or p.state = 'settled' and p.escrow_look_at is not null)
    union all
    select 'payouts under way' from payout p where p.decision_id < p_end and p.rank < 5
    union all
    select 'orders at the broker' from investing_order o
    where o.decision_id < p_end and o.status in ('new', 'accepted', 'partially_filled')
    union all
    select 'card purchases that are pending' from card_authorization a where a.decision_id < p_end and a.status = 'pending'
    union all
    select 'card disputes' from card_dispute d join card_authorization a on a.id = d.authorization_id
    where a.decision_id < p_end and d.status = 'open'
    union all
    select 'pulls of a card''s money' from card_pull p where p.decision_id < p_end and p.status = 'open'
    union all
    select 'settlements of card purchases' from card_settlement s where s.decision_id < p_end and s.status in ('sending', 'refused')
    union all
    select 'recourses that are open' from recourse r where r.decision_id < p_end and r.status = 'open'
    union all
    -- One that ended between its payment and its record finds its decision again.
    select 'runs of schedules' from schedule_run r
    where r.status = 'running' and coalesce(r.decision_id, first_id_at('dec', r.claimed_at)) < p_end
    union all
    select 'calls that may be repeated' from idempotency i
    where i.decision_id < p_end and i.created_at >= p_at - interval '24 hours'
      -- By the index.
      and date_trunc('hour', i.created_at at time zone 'UTC') >= date_trunc('hour', (p_at - interval '24 hours') at time zone 'UTC')
  ) b
  group by b.what order by b.what;
end $$;
