/**
 * What cards may take of a wallet that its owner holds: the chain lets the gateway spend so much of it, and what is held or
 * under way already counts. Its locks: see 0014-cards.
 */
export const cardCoverage = `
-- What a wallet must still pay for cards, in millionths of a USD as the chain's allowances count. A price is what a whole
-- token (10^6 units) counts as. What was settled since p_since counts too: who read the chain then may not have seen it. Clocks
-- of gateways may differ by a little.
create function card_open_micros(
  p_account text, p_place text, p_tokens text[], p_prices bigint[], p_since timestamptz
) returns bigint language sql stable as $$
  select coalesce(sum(div(o.units::numeric * p.price + 999999, 1000000)), 0)::bigint
  from (
    select h.asset, h.units from card_authorization a join card_hold h on h.authorization_id = a.id
    where a.account_id = p_account and a.status = 'pending' and h.place = p_place
    union all
    select s.asset, s.units from card_settlement s join reservation r on r.decision_id = s.decision_id
    where s.account_id = p_account and s.place = p_place and s.status <> 'freed'
      and (s.ended_at is null or s.ended_at > p_since - interval '100 milliseconds')
      and (r.status <> 'settled' or r.resolved_at > p_since - interval '100 milliseconds')
  ) o join unnest(p_tokens, p_prices) as p (token, price) on p.token = o.asset
$$;

-- Gives a wallet that the gateway owns to somebody, with all that cards hold of it noted. Cards and their clearings wait.
create function wallet_give(p_account text, p_owner jsonb, p_tokens text[], p_prices bigint[]) returns void language plpgsql as $$
begin
  perform pg_advisory_xact_lock(hashtextextended(p_account, 0));
  update wallet set owner = p_owner, card_cover = card_open_micros(p_account, chain, p_tokens, p_prices, null)
  where account_id = p_account and owner->>'kind' = 'gateway' and p_owner->>'kind' <> 'gateway';
end $$;

-- How much of each source a purchase may take, in the order of the sources, which share what is left of the allowance. Of a
-- token no more than the chain has beyond what is held; what has left the books since the chain was read is no longer there.
create function card_caps(
  p_account text, p_places text[], p_assets text[], p_left bigint,
  p_tokens text[], p_prices bigint[], p_on_chain bigint[], p_booked bigint[]
) returns bigint[] language plpgsql as $$
declare
  f record;
  v_caps bigint[] := '{}';
  v_left numeric := p_left;
  v_cap bigint;
  v_held bigint;
begin
  for f in
    select s.place, s.asset, t.price, t.on_chain, t.booked
    from unnest(p_places, p_assets) with ordinality as s (place, asset, ordinal)
    left join unnest(p_tokens, p_prices, p_on_chain, p_booked) as t (token, price, on_chain, booked) on t.token = s.asset
    order by s.ordinal
  loop
    select coalesce(max(b.units), 0) into v_cap from balance b
    where b.account = p_account || ':' || f.place || ':available' and b.asset = f.asset;
    -- A wallet that holds less than it has promised funds nothing more.
    if f.place <> 'bank' and exists (
      select from wallet_shortfall s where s.account_id = p_account and s.token = f.asset and s.uncovered > 0
    ) then
      v_cap := 0;
    end if;
    if p_left is not null and f.place <> 'bank' then
      select coalesce(max(b.units), 0) into v_held from balance b
      where b.account = p_account || ':' || f.place || ':held' and b.asset = f.asset;
      v_cap := greatest(0, coalesce(least(v_cap, f.on_chain - v_held - greatest(f.booked - v_cap - v_held, 0),
        case when v_left > 0 then div(v_left * 1000000, f.price::numeric) else 0 end), 0));
      v_left := v_left - div(v_cap::numeric * coalesce(f.price, 0) + 999999, 1000000::numeric);
    end if;
    v_caps := v_caps || v_cap;
  end loop;
  return v_caps;
end $$;
`
