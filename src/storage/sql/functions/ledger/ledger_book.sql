-- Posts transactions that must be possible and new, because their caller holds the money: raises if one is not.
--
-- Arguments: those of ledger_record.
-- Locks: those of balance_change.
create or replace function ledger_book(
  p_ids text[], p_ordinals int[], p_kinds text[], p_references text[], p_ats timestamptz[],
  p_sources text[], p_destinations text[], p_assets text[], p_units bigint[]
) returns void language plpgsql as $$
declare
  c record;
begin
  select * into c from balance_change(p_sources || p_destinations, p_assets || p_assets,
    array(select -u.units from unnest(p_units) with ordinality as u (units, place) order by u.place) || p_units);
  if c.account is not null then
    raise exception '% has only % of % % to be posted', c.account, c.available_units, c.needed_units, c.asset;
  elsif not ledger_record(p_ids, p_ordinals, p_kinds, p_references, p_ats, p_sources, p_destinations, p_assets, p_units) then
    raise exception 'the transaction % exists', p_ids[1];
  end if;
end $$;
