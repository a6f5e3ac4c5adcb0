-- Decides on spends one after the other, in one transaction, and records them together; the outcomes are in their order. A spend that
-- depends on the rows of one before it finds them recorded.
--
-- Locks: each level of spend_decide as a whole before the next, sorted: all pairs, all accounts, all balances.
create or replace function spend_reserve(p_requests spend_request[]) returns spend_outcome[] language plpgsql as $$
#variable_conflict use_column
declare
  v_count int := cardinality(p_requests);
  v_pairs text[] := '{}';
  v_pair text;
  v_from int := 1;
  v_is_alone boolean := false;
  v_outcomes spend_outcome[] := '{}';
  q spend_request;
begin
  -- A single spend takes its locks in this order by itself.
  if v_count > 1 then
    perform pg_advisory_xact_lock(pair.principal, pair.key)
    from (
      select distinct hashtext(r.principal) as principal, hashtext(r.idempotency_key) as key
      from unnest(p_requests) r
      where r.idempotency_key is not null
      order by 1, 2
    ) pair;

    perform pg_advisory_xact_lock(owner.hash)
    from (select distinct hashtextextended(r.account, 0) as hash from unnest(p_requests) r order by 1) owner;

    -- A balance that a hold would open is opened now, if there is something to hold.
    perform balance_change(array_agg(p.account), array_agg(p.asset), array_agg(0::bigint))
    from (
      select distinct p.account, r.asset
      from unnest(p_requests) r
      cross join lateral (values (r.source, r.source), (r.held, r.source), (r.purse->>'source', r.purse->>'source'),
        (r.purse->>'held', r.purse->>'source'), (r.funding->>'source', r.funding->>'source'), (r.funding->>'held', r.funding->>'source')) as p (account, filled_from)
      where exists (select from balance b where b.account = p.filled_from and b.asset = r.asset)
    ) p;
  end if;

  for v_place in 1 .. v_count loop
    q := p_requests[v_place];
    v_pair := q.principal || ' ' || q.idempotency_key;
    if v_place > v_from and (v_is_alone or v_pair = any (v_pairs)
      or q.approval is not null or q.released is not null or q.purse is not null or q.funding is not null)
    then
      perform spend_record(p_requests[v_from:v_place - 1], v_outcomes[v_from:]);
      v_from := v_place;
      v_pairs := '{}';
    end if;
    v_outcomes := v_outcomes || spend_decide(q);
    v_pairs := v_pairs || v_pair;
    v_is_alone := q.approval is not null or q.released is not null or q.purse is not null or q.funding is not null;
  end loop;
  perform spend_record(p_requests[v_from:], v_outcomes[v_from:]);
  return v_outcomes;
end $$;
