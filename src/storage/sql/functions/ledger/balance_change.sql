-- Adds to the owners' balances, or takes from them where the units are negative: all or nothing. The only writer of balances. System
-- accounts have no balance row and are passed over.
--
-- Arguments: the arrays are one change for each index; changes of one balance are summed up. Zero units only lock a balance, and open
--   one that is not there: so a batch takes all of its locks before its first change.
-- Returns null if all was done. Otherwise the first balance that is too low, with what it has and what it needs; nothing is changed.
-- Locks: the balances that change, by account and asset.
create or replace function balance_change(p_accounts text[], p_assets text[], p_units bigint[],
  out account text, out asset text, out available_units bigint, out needed_units bigint
) language plpgsql as $$
#variable_conflict use_column
declare
  v_accounts text[] := p_accounts;
  v_assets text[] := p_assets;
  v_units bigint[] := p_units;
  v_account text;
  v_asset text;
  v_change bigint;
begin
  -- A single posting is in order already: an owner's places sort as money goes into a hold.
  if cardinality(p_units) > 2 or p_accounts[1] collate "C" >= p_accounts[2] collate "C" then
    select array_agg(m.account), array_agg(m.asset), array_agg(m.units) into v_accounts, v_assets, v_units
    from (
      select m.account, m.asset, sum(m.units)::bigint as units from unnest(p_accounts, p_assets, p_units) as m (account, asset, units)
      where left(m.account, 5) = 'acct_'
      group by m.account, m.asset
      order by m.account collate "C", m.asset collate "C"
    ) m;
  end if;
  for v_place in 1 .. coalesce(cardinality(v_units), 0) loop
    v_account := v_accounts[v_place];
    continue when left(v_account, 5) <> 'acct_';
    v_asset := v_assets[v_place];
    v_change := v_units[v_place];
    loop
      update balance b set units = b.units + v_change
      where b.account = v_account and b.asset = v_asset and b.units + v_change >= 0;
      exit when found;
      if v_change >= 0 then
        insert into balance (account, asset, units) values (v_account, v_asset, v_change) on conflict do nothing;
        exit when found;
        continue;
      end if;
      -- Money may have arrived between the two statements: then it is tried once more.
      select b.units into available_units from balance b where b.account = v_account and b.asset = v_asset for update;
      available_units := coalesce(available_units, 0);
      continue when available_units + v_change >= 0;
      account := v_account;
      asset := v_asset;
      needed_units := -v_change;
      for v_done in 1 .. v_place - 1 loop
        update balance b set units = b.units - v_units[v_done] where b.account = v_accounts[v_done] and b.asset = v_assets[v_done];
      end loop;
      return;
    end loop;
  end loop;
  available_units := null;
end $$;
