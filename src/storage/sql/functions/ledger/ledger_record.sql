-- Records transactions of the ledger, with their postings. The only writer of postings. Their balances are changed by balance_change
-- in the same transaction.
--
-- Arguments: the arrays are one posting for each index, units above zero. Postings of one transaction have its kind, its reference
--   and its time; p_ordinals counts them from one.
-- Returns false, and records nothing, if the only transaction exists; raises if one of several does.
-- Locks: none but new rows.
create or replace function ledger_record(
  p_ids text[], p_ordinals int[], p_kinds text[], p_references text[], p_ats timestamptz[],
  p_sources text[], p_destinations text[], p_assets text[], p_units bigint[]
) returns boolean language plpgsql as $$
declare
  v_recorded int;
begin
  insert into ledger_transaction (id, kind, reference, at)
  select t.id, t.kind, t.reference, t.at
  from unnest(p_ids, p_ordinals, p_kinds, p_references, p_ats) as t (id, ordinal, kind, reference, at)
  where t.ordinal = 1
  on conflict do nothing;
  get diagnostics v_recorded = row_count;
  if v_recorded < cardinality(array_positions(p_ordinals, 1)) then
    if v_recorded > 0 then
      raise exception 'a transaction of several exists';
    end if;
    return false;
  end if;
  insert into posting (transaction_id, ordinal, source, destination, asset, units)
  select p.id, p.ordinal, p.source, p.destination, p.asset, p.units
  from unnest(p_ids, p_ordinals, p_sources, p_destinations, p_assets, p_units) as p (id, ordinal, source, destination, asset, units);
  return true;
end $$;
