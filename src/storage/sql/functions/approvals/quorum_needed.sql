-- Returns how many different people of an account must agree to a spend of an amount; at least one. An unknown amount needs as many as any.
--
-- Locks: none.
create or replace function quorum_needed(p_account text, p_usd_micros bigint) returns int language sql stable as $$
  select greatest(1, coalesce((
    select max((step ->> 'count')::int) from account a, jsonb_array_elements(a.quorums) step
    where a.id = p_account and (p_usd_micros is null or p_usd_micros > (step ->> 'above')::numeric * 1000000)), 1))
$$;
