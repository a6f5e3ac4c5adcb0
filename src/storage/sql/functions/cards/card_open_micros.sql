-- The amount that a wallet must still pay for cards, in millionths of a USD as the chain's allowances count.
--
-- Arguments: a price is the worth of a whole token (10^6 units). Settlements that ended after p_since count too, because a reader
--   of the chain at that moment may not have seen them; 100 ms allow for differing clocks.
-- Locks: none. The caller holds the account.
create or replace function card_open_micros(
  p_account text, p_place text, p_tokens text[], p_prices bigint[], p_since timestamptz
) returns bigint language plpgsql stable as $$
begin
  return (select coalesce(sum(div(o.units::numeric * p.price + 999999, 1000000)), 0)::bigint
  from (
    select h.asset, h.units from card_authorization a join card_hold h on h.authorization_id = a.id
    where a.account_id = p_account and a.status = 'pending' and h.place = p_place
    union all
    select l.asset, l.units from card_pull l
    where l.account_id = p_account and l.place = p_place
      and (l.ended_at is null or l.status = 'settled' and l.ended_at > p_since - interval '100 milliseconds')
    union all
    select s.asset, s.units from card_settlement s join reservation r on r.decision_id = s.decision_id
    where s.account_id = p_account and s.place = p_place and s.status <> 'freed'
      and (s.ended_at is null or s.ended_at > p_since - interval '100 milliseconds')
      and (r.status <> 'settled' or r.resolved_at > p_since - interval '100 milliseconds')
  ) o join unnest(p_tokens, p_prices) as p (token, price) on p.token = o.asset);
end $$;
