-- The most that a purchase may take from each source, in their order. Where the owner holds the wallet, sources on a chain share what
-- is left of the allowance there, and one that was not read has nothing. Of a token, no more than the chain has beyond what is held;
-- what has left the books since the chain was read is no longer there.
--
-- Arguments: as in card_authorize.
-- Locks: none. The caller holds the account and its balances.
create or replace function card_caps(
  p_account text, p_places text[], p_assets text[], p_is_ours boolean, p_since timestamptz, p_chains text[], p_left bigint[],
  p_tokens text[], p_prices bigint[], p_on_chain bigint[], p_booked bigint[]
) returns bigint[] language plpgsql as $$
declare
  f record;
  v_caps bigint[] := '{}';
  v_lefts jsonb := '{}';
  v_left numeric;
  v_cap bigint;
  v_held bigint;
begin
  for f in
    select s.place, s.asset, t.allowed, t.price, t.on_chain, t.booked
    from unnest(p_places, p_assets) with ordinality as s (place, asset, ordinal)
    left join unnest(p_chains, p_left, p_tokens, p_prices, p_on_chain, p_booked) as t (chain, allowed, token, price, on_chain, booked)
      on t.chain = s.place and t.token = s.asset
    order by s.ordinal
  loop
    select coalesce(max(b.units), 0) into v_cap from balance b
    where b.account = p_account || ':' || f.place || ':available' and b.asset = f.asset;
    -- A wallet that holds less than it has promised pays for nothing more there.
    if f.place <> 'bank' and left(f.place, 7) <> 'escrow.' and exists (
      select from wallet_shortfall s
      where s.account_id = p_account and s.chain = f.place and s.token = f.asset and s.uncovered > 0
    ) then
      v_cap := 0;
    end if;
    if not p_is_ours and f.place <> 'bank' and left(f.place, 7) <> 'escrow.' then
      v_left := coalesce((v_lefts->>f.place)::numeric, f.allowed - (
        select card_open_micros(p_account, f.place, array_agg(t.token), array_agg(t.price), p_since)
        from unnest(p_chains, p_tokens, p_prices) as t (chain, token, price) where t.chain = f.place
      ), 0);
      select coalesce(max(b.units), 0) into v_held from balance b
      where b.account = p_account || ':' || f.place || ':held' and b.asset = f.asset;
      v_cap := case when f.price is null or v_left <= 0 then 0 else greatest(0, least(
        v_cap, f.on_chain - v_held - greatest(f.booked - v_cap - v_held, 0), div(v_left * 1000000, f.price::numeric)
      )) end;
      v_lefts := v_lefts || jsonb_build_object(f.place,
        v_left - div(v_cap::numeric * coalesce(f.price, 0) + 999999, 1000000::numeric));
    end if;
    v_caps := v_caps || v_cap;
  end loop;
  return v_caps;
end $$;
