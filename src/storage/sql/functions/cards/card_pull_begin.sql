-- Begins to pull money of one asset from a wallet to the account's escrow, before any of it is sent: p_units of what is available,
-- for a purchase that waits for it, or everything that is held for approved purchases. The money is held until the chain decides.
--
-- Arguments: p_decision is the id of the decision, and of the pull; p_token names the purchase; p_token and p_units are null for holds.
--   p_left, p_since, p_tokens and p_prices: what is left of the allowance on the chain, when it was read (null: it was not), and the
--   tokens' prices there. A purchase takes nothing of the allowance that others need.
-- Returns how much is pulled by this call; null: nothing, because there is not enough, or the purchase has a pull under way already.
-- Locks: the account; then all balances of the account, by account and asset.
create or replace function card_pull_begin(
  p_decision text, p_account text, p_token text, p_place text, p_asset text, p_units bigint, p_at timestamptz,
  p_left bigint default null, p_since timestamptz default null, p_tokens text[] default null, p_prices bigint[] default null
) returns bigint language plpgsql as $$
declare
  v_units bigint := p_units;
  v_posted text;
begin
  perform pg_advisory_xact_lock(hashtextextended(p_account, 0));
  perform 1 from balance b where b.account > p_account || ':' and b.account < p_account || ';'
  order by b.account, b.asset for update;
  if p_token is not null and exists (
    select from card_pull p where p.account_id = p_account and p.ended_at is null and p.token = p_token and p.place = p_place
      and p.asset = p_asset
  ) then
    return null;
  elsif p_token is null then
    select sum(h.units)::bigint into v_units from card_authorization a join card_hold h on h.authorization_id = a.id
    where a.account_id = p_account and a.status = 'pending' and h.place = p_place and h.asset = p_asset;
  elsif p_units > (
    select coalesce(max(b.units), 0) from balance b
    where b.account = p_account || ':' || p_place || ':available' and b.asset = p_asset
  ) or coalesce(p_left, 0) - card_open_micros(p_account, p_place, p_tokens, p_prices, p_since) < (
    select div(p_units::numeric * p.price + 999999, 1000000) from unnest(p_tokens, p_prices) as p (token, price) where p.token = p_asset
  ) then
    return null;
  end if;
  if coalesce(v_units, 0) = 0 then
    return null;
  end if;
  insert into decision (id, at, account_id, key_id, policy_version, policy_hash, operation, facts, verdict, violations, available_units)
  values (p_decision, p_at, p_account, null, null, null, 'cards.pull', jsonb_build_object('category', 'card', 'asset', p_asset,
    'units', v_units::text, 'chain', p_place), 'allow', '[]', null);
  insert into reservation (decision_id, account_id, key_id, day, usd_micros, source, held, asset, units, reserved_at)
  values (p_decision, p_account, null, (p_at at time zone 'UTC')::date, 0, p_account || ':' || p_place || ':held',
    p_account || ':' || p_place || ':held', p_asset, v_units, p_at);
  insert into card_pull (decision_id, account_id, token, place, asset, units, created_at)
  values (p_decision, p_account, p_token, p_place, p_asset, v_units, p_at);
  if p_token is null then
    update card_hold h set place = 'pull.' || p_decision from card_authorization a
    where a.id = h.authorization_id and a.account_id = p_account and a.status = 'pending' and h.place = p_place and h.asset = p_asset
      and h.units > 0;
  else
    select l.verdict into v_posted from ledger_post('pull:' || p_decision || ':hold', 'card_pull', p_decision, p_at,
      array[p_account || ':' || p_place || ':available'], array[p_account || ':' || p_place || ':held'], array[p_asset],
      array[v_units]) l;
    if v_posted <> 'posted' then
      raise exception 'the money of a pull was not held: %', v_posted;
    end if;
  end if;
  return v_units;
end $$;
