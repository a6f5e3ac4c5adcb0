-- Posts a transaction: all of its postings or none. It returns a verdict and does not raise, because an exception would cost its
-- caller the whole transaction.
--
-- Arguments: the arrays are one posting for each index, p_units above zero. p_id makes it idempotent.
-- Verdicts: posted; already_posted (a transaction of this id exists); insufficient_funds (account, asset, available_units and
--   needed_units name the first balance that is too low; nothing is posted).
-- Locks: the owners' balances that change, by account and asset. System accounts have no balance row.
create or replace function ledger_post(
  p_id text, p_kind text, p_reference text, p_at timestamptz,
  p_sources text[], p_destinations text[], p_assets text[], p_units bigint[],
  out verdict text, out account text, out asset text, out available_units bigint, out needed_units bigint
) language plpgsql as $$
#variable_conflict use_column
declare
  change record;
  v_units bigint;
begin
  if exists (select 1 from ledger_transaction where id = p_id) then
    verdict := 'already_posted';
    return;
  end if;

  for change in
    select m.account, m.asset, sum(m.units)::bigint as units
    from (
      select s.account, s.asset, -s.units as units from unnest(p_sources, p_assets, p_units) as s (account, asset, units)
      union all
      select d.account, d.asset, d.units from unnest(p_destinations, p_assets, p_units) as d (account, asset, units)
    ) m
    where left(m.account, 5) = 'acct_'
    group by m.account, m.asset
    order by m.account collate "C", m.asset collate "C"
  loop
    if change.units > 0 then
      insert into balance (account, asset, units) values (change.account, change.asset, 0) on conflict do nothing;
    end if;
    select b.units into v_units from balance b
    where b.account = change.account and b.asset = change.asset for update;
    if coalesce(v_units, 0) + change.units < 0 then
      -- A concurrent call with the same id may have spent the money while this one waited for the lock.
      if exists (select 1 from ledger_transaction where id = p_id) then
        verdict := 'already_posted';
        return;
      end if;
      verdict := 'insufficient_funds';
      account := change.account;
      asset := change.asset;
      available_units := coalesce(v_units, 0);
      needed_units := -change.units;
      return;
    end if;
  end loop;

  insert into ledger_transaction (id, kind, reference, at) values (p_id, p_kind, p_reference, p_at) on conflict do nothing;
  if not found then
    verdict := 'already_posted';
    return;
  end if;

  insert into posting (transaction_id, ordinal, source, destination, asset, units)
  select p_id, p.ordinal, p.source, p.destination, p.asset, p.units
  from unnest(p_sources, p_destinations, p_assets, p_units) with ordinality
    as p (source, destination, asset, units, ordinal);

  update balance b set units = b.units + m.units
  from (
    select c.account, c.asset, sum(c.units)::bigint as units
    from (
      select s.account, s.asset, -s.units as units from unnest(p_sources, p_assets, p_units) as s (account, asset, units)
      union all
      select d.account, d.asset, d.units from unnest(p_destinations, p_assets, p_units) as d (account, asset, units)
    ) c
    group by c.account, c.asset
  ) m
  where b.account = m.account and b.asset = m.asset and m.units <> 0;

  verdict := 'posted';
end $$;
