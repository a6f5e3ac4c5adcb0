-- Posts a transaction: all of its postings or none. It returns a verdict and does not raise, because an exception would cost its
-- caller the whole transaction.
--
-- Arguments: the arrays are one posting for each index, p_units above zero. p_id makes it idempotent.
-- Verdicts: posted; already_posted (a transaction of this id exists); insufficient_funds (account, asset, available_units and
--   needed_units name the first balance that is too low; nothing is posted).
-- Locks: those of balance_change.
create or replace function ledger_post(
  p_id text, p_kind text, p_reference text, p_at timestamptz,
  p_sources text[], p_destinations text[], p_assets text[], p_units bigint[],
  out verdict text, out account text, out asset text, out available_units bigint, out needed_units bigint
) language plpgsql as $$
#variable_conflict use_column
declare
  v_count int := cardinality(p_units);
  v_taken bigint[] := array(select -u.units from unnest(p_units) with ordinality as u (units, place) order by u.place);
begin
  if exists (select 1 from ledger_transaction where id = p_id) then
    verdict := 'already_posted';
    return;
  end if;
  select c.account, c.asset, c.available_units, c.needed_units into account, asset, available_units, needed_units
  from balance_change(p_sources || p_destinations, p_assets || p_assets, v_taken || p_units) c;
  if account is not null then
    verdict := 'insufficient_funds';
    -- A concurrent call with the same id may have spent the money while this one waited for the lock.
    if exists (select 1 from ledger_transaction where id = p_id) then
      verdict := 'already_posted';
      account := null;
      asset := null;
      available_units := null;
      needed_units := null;
    end if;
  elsif ledger_record(array_fill(p_id, array[v_count]), array(select generate_series(1, v_count)), array_fill(p_kind, array[v_count]),
    array_fill(p_reference, array[v_count]), array_fill(p_at, array[v_count]), p_sources, p_destinations, p_assets, p_units)
  then
    verdict := 'posted';
  else
    perform balance_change(p_sources || p_destinations, p_assets || p_assets, p_units || v_taken);
    verdict := 'already_posted';
  end if;
end $$;
