-- Collects as much of a debt as the owner has, and returns it in the debt's smallest units. Cash leaves at once, stablecoins by a
-- settlement to the treasury, which has a debt of its own if the chain refuses it for good. The debt of such a settlement is
-- secured by what the settlement still holds, which is freed as the debt is paid: by cash, from another place, or by another token
-- when the token was what the chain refused. What an owner can keep from being paid is tried again after a pause that doubles, because
-- one whose wallet refuses on every chain would have the debt carried between them for ever. A settlement that a lost pull has freed
-- secures nothing, and its debt is collected from any place.
--
-- Arguments: p_places, p_assets and p_rates as in money_to_take; p_ids are ids for the decisions of settlements.
-- Locks: the account; the debt's row; the settlement's row; then all balances of the account, by account and asset.
create or replace function debt_collect(
  p_debt text, p_places text[], p_assets text[], p_rates bigint[], p_ids text[], p_at timestamptz, out collected bigint
) language plpgsql as $$
#variable_conflict use_column
declare
  d debt;
  s card_settlement;
  h record;
  v_account text;
  v_worth numeric;
  v_free bigint;
  v_pause interval := '0';
  v_next int := 1;
  v_places text[];
  v_names text[];
  v_rates bigint[];
  v_from text[] := '{}';
  v_to text[] := '{}';
  v_assets text[] := '{}';
  v_takes bigint[] := '{}';
  v_posted text;
begin
  collected := 0;
  select account_id into v_account from debt where id = p_debt and owed > 0;
  if not found then
    return;
  end if;
  perform pg_advisory_xact_lock(hashtextextended(v_account, 0));
  update debt set tried_at = p_at where id = p_debt and owed > 0 returning * into d;
  if not found then
    return;
  end if;
  if d.kind = 'settlement' then
    select * into s from card_settlement where id = d.reference for update;
    -- A pending try may pay all of it.
    if s.status = 'sending' then
      return;
    end if;
    select least(interval '1 second' * (power(2, least(count(*), 12)) - 1), interval '1 hour') into v_pause from card_settlement f
    where f.account_id = v_account and f.status = 'freed' and f.refused_by is not null and f.ended_at > p_at - interval '1 day';
  end if;
  perform 1 from balance b where b.account > v_account || ':' and b.account < v_account || ';'
  order by b.account, b.asset for update;

  select array_agg(p.place order by p.ordinal), array_agg(p.asset order by p.ordinal), array_agg(p.rate order by p.ordinal)
  into v_places, v_names, v_rates
  from unnest(p_places, p_assets, p_rates) with ordinality as p (place, asset, rate, ordinal)
  where p.place = 'bank' or d.kind <> 'settlement' or (
    (p.place <> s.place or s.status = 'freed' or s.refused_by = 'transfer' and p.asset <> s.asset)
    and (left(p.place, 7) = 'escrow.' or d.created_at + v_pause <= p_at));
  select coalesce(sum(t.micros), 0) into v_worth
  from money_to_take(v_account, v_places, v_names, v_rates, d.owed::numeric * 10000) t;
  collected := least(d.owed, div(v_worth, 10000));
  if collected = 0 then
    return;
  end if;

  for h in select * from money_to_take(v_account, v_places, v_names, v_rates, d.owed::numeric * 10000) loop
    v_from := v_from || (v_account || ':' || h.place || ':available');
    v_to := v_to || case h.place when 'bank' then d.paid_to else v_account || ':' || h.place || ':held' end;
    v_assets := v_assets || h.asset;
    v_takes := v_takes || h.units;
    if h.place <> 'bank' then
      perform card_settle(p_ids[v_next], v_account, null, d.card_id, h.place, h.asset, h.units, d.asset,
        div(h.micros + 9999, 10000::numeric)::bigint, d.paid_to, p_at);
      v_next := v_next + 1;
    end if;
  end loop;
  v_from := v_from || d.paid_to;
  v_to := v_to || 'receivable:debts'::text;
  v_assets := v_assets || d.asset;
  v_takes := v_takes || collected;
  if d.kind = 'settlement' then
    v_free := case collected when d.owed then s.units else div(s.units::numeric * collected, d.owed::numeric) end;
    update card_settlement set units = units - v_free, owed_units = d.owed - collected,
      status = case collected when d.owed then 'freed' else status end,
      next_try_at = case collected when d.owed then null else next_try_at end,
      ended_at = case collected when d.owed then p_at else ended_at end
    where id = s.id;
    if v_free > 0 then
      v_from := v_from || (v_account || ':' || s.place || ':held');
      v_to := v_to || (v_account || ':' || s.place || ':available');
      v_assets := v_assets || s.asset;
      v_takes := v_takes || v_free;
    end if;
  end if;
  -- The amount owed only falls, so it identifies one collection.
  select l.verdict into v_posted
  from ledger_post('debt:' || d.id || ':' || d.owed, 'debt_payment', d.id, p_at, v_from, v_to, v_assets, v_takes) l;
  if v_posted <> 'posted' then
    raise exception 'a payment of a debt was not posted: %', v_posted;
  end if;
  update debt set owed = d.owed - collected, paid_at = case d.owed - collected when 0 then p_at end where id = d.id;
end $$;
