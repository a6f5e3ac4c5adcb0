-- Gives the budgets of a spend back what came back of it, on the day that counted it: windows that hold that day have the room again.
-- What AML counted stays counted, and so does the number of spends.
--
-- Arguments: p_units came back, of p_left that had not come back yet.
-- Returns the millionths of a US dollar that the budgets got back.
-- Locks: the reservation; the account.
create or replace function spend_refund(p_decision text, p_units bigint, p_left bigint, out usd_micros bigint) language plpgsql as $$
#variable_conflict use_column
declare
  r reservation;
begin
  usd_micros := 0;
  select * into r from reservation where decision_id = p_decision for update;
  if r.status is distinct from 'settled' or r.key_id is null then
    return;
  end if;
  usd_micros := floor(r.usd_micros::numeric * p_units / p_left)::bigint;
  perform pg_advisory_xact_lock(hashtextextended(r.account_id, 0));
  update reservation v set usd_micros = r.usd_micros - spend_refund.usd_micros where v.decision_id = p_decision;
  update budget_usage u set used_micros = u.used_micros - spend_refund.usd_micros
  where u.key_id = any (key_path(r.key_id)) and u.day = r.day;
end $$;
