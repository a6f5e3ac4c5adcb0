-- Records transactions of the ledger, with their postings. The only writer of postings. Their balances are changed by balance_change
-- in the same transaction, before.
--
-- Arguments: the arrays are one posting for each index, units above zero. Postings of one transaction have its kind, its reference
--   and its time; p_ordinals counts them from one.
-- Returns false, and records nothing, if the only transaction exists; raises if one of several does.
-- Locks: where no owner's balance is changed, the names of the transactions. Elsewhere twins have the lock of a balance in common, so the
--   one that comes second finds the first.
create or replace function ledger_record(
  p_ids text[], p_ordinals int[], p_kinds text[], p_references text[], p_ats timestamptz[],
  p_sources text[], p_destinations text[], p_assets text[], p_units bigint[]
) returns boolean language plpgsql as $$
begin
  if not exists (select from unnest(p_sources || p_destinations) as a (account) where left(a.account, 5) = 'acct_') then
    perform pg_advisory_xact_lock(t.name) from (select distinct hashtextextended(id, 1) as name from unnest(p_ids) id order by 1) t;
  end if;
  if exists (select from posting p where p.transaction_id = any (p_ids) and p.ordinal = 1) then
    if cardinality(array_positions(p_ordinals, 1)) > 1 then
      raise exception 'a transaction of several exists';
    end if;
    return false;
  end if;
  if cardinality(array_positions(p_ordinals, 1)) <> (select count(distinct id) from unnest(p_ids) id) then
    raise exception 'a transaction has no first posting';
  end if;
  -- An upsert would also write a confirmation of each row to the log.
  insert into posting (transaction_id, ordinal, source, destination, asset, units, kind, reference, at)
  select p.id, p.ordinal, p.source, p.destination, p.asset, p.units, case p.ordinal when 1 then p.kind end,
    case when p.ordinal = 1 and p.reference <> split_part(p.id, ':', 1) then p.reference end, case p.ordinal when 1 then p.at end
  from unnest(p_ids, p_ordinals, p_kinds, p_references, p_ats, p_sources, p_destinations, p_assets, p_units)
    as p (id, ordinal, kind, reference, at, source, destination, asset, units);
  return true;
end $$;
