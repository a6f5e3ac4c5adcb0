/**
 * Debts: what the gateway has paid for an owner who did not have it. A debt is a row here and a posting from
 * `receivable:debts`, whose balance is the sum of all open debts below zero. It is collected from the owner's money, in the
 * order and at the rates that the caller gives. What a debt was paid with is booked as if it had been paid with it at first.
 *
 * Under the account's lock lie debt and card_settlement; balances are locked after them. See 0014-cards.
 */
export const debtTables = `
create table debt (
  id text collate "C" primary key,
  account_id text not null references account,
  kind text not null check (kind in ('card', 'settlement', 'deposit')),
  -- The card authorization, card settlement or deposit that it comes from.
  reference text collate "C" not null,
  -- The card whose priority orders what is collected from.
  card_id text collate "C",
  asset text not null,
  units bigint not null check (units > 0),
  owed bigint not null check (owed >= 0 and owed <= units),
  -- The system account that the gateway has paid.
  paid_to text not null,
  created_at timestamptz not null,
  tried_at timestamptz not null,
  paid_at timestamptz,
  check ((owed = 0) = (paid_at is not null))
) with (fillfactor = 80);
create index debt_of_account on debt (account_id) where owed > 0;
create index debt_due on debt (tried_at) where owed > 0;
`

export const debtFunctions = `
-- What is taken of an owner's money for so many millionths of a currency: each source as far as it goes, in order. A rate is
-- what the smallest unit of a source is worth, in ten-billionths of a millionth. The balances are locked by the caller.
create function money_to_take(p_account text, p_places text[], p_assets text[], p_rates bigint[], p_micros numeric)
returns table (place text, asset text, units bigint, micros bigint) language plpgsql as $$
#variable_conflict use_column
declare
  h record;
  v_left numeric := p_micros;
  v_units bigint;
begin
  for h in select * from unnest(p_places, p_assets, p_rates) with ordinality as p (place, asset, rate, ordinal)
    order by p.ordinal
  loop
    exit when v_left <= 0;
    select b.units into v_units from balance b where b.account = p_account || ':' || h.place || ':available' and b.asset = h.asset;
    place := h.place;
    asset := h.asset;
    units := least(coalesce(v_units, 0), div(v_left * 10000000000 + h.rate - 1, h.rate::numeric));
    micros := least(v_left, div(units::numeric * h.rate, 10000000000));
    continue when micros = 0;
    v_left := v_left - micros;
    return next;
  end loop;
end $$;

-- Books a debt: the gateway has paid for its owner. The caller holds the account's lock.
create function debt_book(
  p_id text, p_account text, p_kind text, p_reference text, p_card text, p_asset text, p_units bigint, p_paid_to text,
  p_at timestamptz
) returns void language plpgsql as $$
declare
  v_posted text;
begin
  insert into debt (id, account_id, kind, reference, card_id, asset, units, owed, paid_to, created_at, tried_at)
  values (p_id, p_account, p_kind, p_reference, p_card, p_asset, p_units, p_units, p_paid_to, p_at, p_at);
  select l.verdict into v_posted from ledger_post('debt:' || p_id, 'debt', p_id, p_at,
    array['receivable:debts'], array[p_paid_to], array[p_asset], array[p_units]) l;
  if v_posted <> 'posted' then
    raise exception 'a debt was not posted: %', v_posted;
  end if;
end $$;

-- Collects as much of a debt as there is. Cash leaves at once, stablecoins by a settlement to the treasury, which has a debt
-- of its own where the chain refuses it for good. The debt of such a settlement is secured by what the settlement still
-- holds, which is freed as the debt is paid: by cash, or by another token where the token was what the chain refused.
create function debt_collect(
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
    -- A try that is under way may pay all of it.
    if s.status = 'sending' then
      return;
    end if;
  end if;
  perform 1 from balance b where b.account > v_account || ':' and b.account < v_account || ';'
  order by b.account, b.asset for update;

  select array_agg(p.place order by p.ordinal), array_agg(p.asset order by p.ordinal), array_agg(p.rate order by p.ordinal)
  into v_places, v_names, v_rates
  from unnest(p_places, p_assets, p_rates) with ordinality as p (place, asset, rate, ordinal)
  where p.place = 'bank' or d.kind <> 'settlement' or s.refused_by = 'transfer' and p.asset <> s.asset;
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
      ended_at = case collected when d.owed then p_at end
    where id = s.id;
    if v_free > 0 then
      v_from := v_from || (v_account || ':' || s.place || ':held');
      v_to := v_to || (v_account || ':' || s.place || ':available');
      v_assets := v_assets || s.asset;
      v_takes := v_takes || v_free;
    end if;
  end if;
  -- What is owed only ever falls: it names one collection.
  select l.verdict into v_posted
  from ledger_post('debt:' || d.id || ':' || d.owed, 'debt_payment', d.id, p_at, v_from, v_to, v_assets, v_takes) l;
  if v_posted <> 'posted' then
    raise exception 'a payment of a debt was not posted: %', v_posted;
  end if;
  update debt set owed = d.owed - collected, paid_at = case d.owed - collected when 0 then p_at end where id = d.id;
end $$;
`
