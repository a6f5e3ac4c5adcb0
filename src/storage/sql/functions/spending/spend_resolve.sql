-- Ends a spend, once: settles what was not yet taken (from the hold to the destination), or releases it (back to its source, and
-- the budget of its day gets it back). A spend of which a part has gone is settled by its release, and counts for that part.
--
-- Arguments: p_status is settled or released; p_destination is read only when it is settled.
-- Verdicts: settled; released; not_reserved; already_settled; already_released.
-- Locks: the reservation; the account, when budgets or AML windows get something back; then the balances of the hold and the
--   destination, by account.
create or replace function spend_resolve(
  p_decision text, p_status text, p_destination text, p_at timestamptz, out verdict text
) language plpgsql as $$
#variable_conflict use_column
declare
  r record;
  v_destination text;
  v_kind text := case p_status when 'settled' then 'settle' else 'release' end;
  v_units bigint;
  v_unused bigint;
begin
  -- Locking the row before its update would write another record to the log. Its version tells whether it is still what was read.
  loop
    select v.*, v.xmin as version into r from reservation v where v.decision_id = p_decision;
    if not found then
      verdict := 'not_reserved';
      return;
    elsif r.status <> 'reserved' then
      verdict := 'already_' || r.status;
      return;
    end if;
    v_units := r.units - r.taken;
    v_unused := case when r.taken = 0 then r.usd_micros else floor(r.usd_micros::numeric * v_units / r.units)::bigint end;
    update reservation v set resolved_at = p_at,
      status = case when p_status = 'settled' or r.taken > 0 then 'settled' else 'released' end,
      taken = case p_status when 'settled' then r.units else r.taken end,
      units = case when p_status = 'settled' or r.taken = 0 then r.units else r.taken end,
      usd_micros = case when p_status = 'settled' or r.taken = 0 then r.usd_micros else r.usd_micros - v_unused end
    where v.decision_id = p_decision and v.xmin = r.version;
    exit when found;
  end loop;

  verdict := p_status;
  v_destination := case p_status when 'settled' then p_destination else r.source end;
  if p_status = 'released' and (r.key_id is not null or r.windows is not null) then
    perform pg_advisory_xact_lock(hashtextextended(r.account_id, 0));
    if r.taken = 0 and r.windows is not null then
      perform outflow_return(r.account_id, r.windows, r.reserved_at);
    end if;
    update budget_usage set used_micros = used_micros - v_unused, count = count - (case r.taken when 0 then 1 else 0 end)
    where key_id = any (key_path(r.key_id)) and day = r.day;
  end if;

  -- Money that is not ours was never held, and money that was held before its reservation stays held. Of a payment whose money is on its
  -- way, nothing may be held yet.
  if r.source is null or v_destination = r.held or v_units = 0 then
    return;
  end if;

  perform ledger_book(array[p_decision || ':' || v_kind], array[1], array[v_kind], array[p_decision], array[p_at],
    array[r.held], array[v_destination], array[r.asset], array[v_units]);
end $$;
