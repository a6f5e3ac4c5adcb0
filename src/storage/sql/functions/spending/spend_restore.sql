-- Counts a spend again that was released, because it was paid after all: on its own day, in its budgets and windows. Books nothing.
-- A spend that was never released is counted already. What was paid may be less than was reserved, and counts for that part.
--
-- Locks: the reservation; the account.
create or replace function spend_restore(p_decision text, p_units bigint, p_at timestamptz) returns void language plpgsql as $$
declare
  r reservation;
  v_micros bigint;
begin
  select * into r from reservation where decision_id = p_decision for update;
  perform pg_advisory_xact_lock(hashtextextended(r.account_id, 0));
  if r.status is distinct from 'released' then
    return;
  end if;
  v_micros := ceil(r.usd_micros::numeric * least(p_units, r.units) / r.units)::bigint;
  update reservation set status = 'settled', resolved_at = p_at, units = least(p_units, r.units), taken = least(p_units, r.units),
    usd_micros = v_micros
  where decision_id = p_decision;
  update budget_usage set used_micros = used_micros + v_micros, count = count + 1
  where key_id = any (key_path(r.key_id)) and day = r.day;
  if r.windows is not null then
    perform outflow_count(r.account_id, r.windows, r.reserved_at);
  end if;
end $$;
