-- Links money that arrived to the payment that it returns: at most what was paid and has not come back, over all arrivals. It is in the
-- books already, as a deposit. The budgets that paid get it back, unless the owner wants otherwise. A recourse that has all of its
-- money ends.
--
-- Arguments: p_movement: the ledger's transaction, or the payment's part of what a channel returned; p_entry: its entry in the activity;
--   p_units: what arrived; p_evidence: what the step says of it.
-- Verdicts: linked; ended (the recourse is over); nothing_left (all of it is back, or nothing is paid); taken (it returned another
--   payment, or this one before).
-- Locks: the payment; the recourse; those of spend_refund.
create or replace function refund_book(
  p_recourse text, p_movement text, p_entry text, p_units bigint, p_evidence jsonb, p_at timestamptz, out verdict text
) language plpgsql as $$
#variable_conflict use_column
declare
  c recourse;
  v_left bigint;
  v_units bigint;
  v_micros bigint := 0;
  v_is_all boolean;
begin
  select * into c from recourse where id = p_recourse;
  select case when p.state = 'settled' then coalesce(p.charged, p.units) else 0 end into v_left
  from purchase p where p.id = c.object_id and c.object_kind = 'purchase' for update;
  select * into c from recourse where id = p_recourse for update;
  if c.status is distinct from 'open' then
    verdict := 'ended';
    return;
  end if;
  v_left := coalesce(v_left, 0) - (
    select coalesce(sum(f.units), 0) from refund f where f.object_kind = c.object_kind and f.object_id = c.object_id);
  v_units := least(p_units, v_left, c.claimed - c.recovered);
  if v_units <= 0 then
    verdict := 'nothing_left';
    return;
  end if;
  insert into refund (movement, entry_id, recourse_id, account_id, object_kind, object_id, asset, units, usd_micros, at)
  values (p_movement, p_entry, c.id, c.account_id, c.object_kind, c.object_id, c.asset, v_units, 0, p_at)
  on conflict do nothing;
  if not found then
    verdict := 'taken';
    return;
  end if;
  if c.decision_id is not null and (select a.refunds_refill from account a where a.id = c.account_id) then
    select s.usd_micros into v_micros from spend_refund(c.decision_id, v_units, v_left) s;
    update refund set usd_micros = v_micros where movement = p_movement;
  end if;
  v_is_all := c.recovered + v_units = c.claimed;
  update recourse set recovered = c.recovered + v_units, updated_at = p_at,
    steps = c.steps || jsonb_build_array(jsonb_build_object('at', p_at, 'action', 'refund', 'outcome', 'done', 'evidence', p_evidence)),
    status = case when v_is_all then 'recovered' else 'open' end, ended_at = case when v_is_all then p_at end
  where id = c.id;
  verdict := 'linked';
end $$;
