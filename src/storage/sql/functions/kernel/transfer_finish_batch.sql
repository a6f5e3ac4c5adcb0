-- Ends a batch of transfers in one transaction, and returns a verdict for each, in their order. A request is an object with
-- transfer_finish's parameters, without their prefix.
--
-- Confirmed transfers of money that is simply held are settled together, in one statement, as transfer_finish would settle each.
-- All others, and a batch of one, go through transfer_finish.
--
-- The plans look rows up by their index, however few rows a table had when the session made them, and are never compiled: a plan
-- that has to read a whole table in spite of these settings counts as expensive.
--
-- Locks: each level of transfer_finish as a whole before the next, sorted: all reservations, all accounts of releases, all
--   balances, all transfers.
create or replace function transfer_finish_batch(p_requests jsonb) returns table (verdict text) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
#variable_conflict use_column
declare
  v_together bigint[] := '{}';
  v_ids text[];
  v_kinds text[];
  v_decisions text[];
  v_ats timestamptz[];
  v_held text[];
  v_destinations text[];
  v_assets text[];
  v_units bigint[];
  v_verdicts text[];
begin
  -- A single transfer takes its locks in this order by itself.
  if jsonb_array_length(p_requests) > 1 then
    perform 1 from reservation r
    where r.decision_id in (select q.decision from jsonb_to_recordset(p_requests) as q (decision text))
    order by r.decision_id
    for update;

    perform pg_advisory_xact_lock(owner.hash)
    from (
      select distinct hashtextextended(r.account_id, 0) as hash
      from jsonb_to_recordset(p_requests) as q (decision text, is_confirmed boolean)
      join reservation r on r.decision_id = q.decision
      where not q.is_confirmed or exists (select from card_pull l where l.decision_id = q.decision)
      order by 1
    ) owner;

    -- The balance that a receipt would open is opened now, in lock order.
    perform balance_change(array_agg(p.account), array_agg(p.asset), array_agg(0::bigint))
    from (
      select p.account, r.asset
      from jsonb_to_recordset(p_requests) as q (decision text, chain text, destination text, is_confirmed boolean)
      join reservation r on r.decision_id = q.decision and r.status = 'reserved' and r.source is not null
      left join wallet w on q.is_confirmed and w.address = q.destination
      left join card_pull l on l.decision_id = q.decision
      cross join lateral (values
        (r.held),
        (case when not q.is_confirmed then r.source else w.account_id || ':' || q.chain || ':available' end),
        (r.account_id || case when q.is_confirmed then ':escrow.' else ':' end || l.place || ':available'),
        (r.account_id || case when q.is_confirmed then ':escrow.' else ':' end || l.place || ':held')
      ) as p (account)
      where p.account is not null
    ) p;

    perform 1 from transfer t
    where t.id in (select q.transfer from jsonb_to_recordset(p_requests) as q (transfer text))
    order by t.id
    for update;

    with request as (
      select q.*, row_number() over (partition by q.decision order by q.place) as turn
      from rows from (jsonb_to_recordset(p_requests) as (
        transfer text, decision text, chain text, destination text, is_confirmed boolean, hash text, failure text, code text,
        at timestamptz
      )) with ordinality as q (
        transfer, decision, chain, destination, is_confirmed, hash, failure, code, at, place)
    ), together as materialized (
      select q.place, q.transfer, q.decision, q.at, q.hash, q.failure, q.code, r.held, r.asset, r.units,
        coalesce(w.account_id || ':' || q.chain || ':available', 'external:' || q.chain) as destination
      from request q
      join reservation r on r.decision_id = q.decision
      left join wallet w on w.address = q.destination
      where q.is_confirmed and q.turn = 1 and r.status = 'reserved' and r.taken = 0 and r.source is not null
        and not exists (select from purchase p where p.decision_id = q.decision)
        and not exists (select from card_pull l where l.decision_id = q.decision)
      order by q.place
    ), resolved as (
      update reservation r set status = 'settled', resolved_at = s.at, taken = r.units
      from together s where r.decision_id = s.decision
    ), ended as (
      update transfer t
      set state = 'confirmed', transaction_hash = coalesce(s.hash, t.transaction_hash), failure = s.failure,
        failure_code = s.code, updated_at = s.at
      from together s where t.id = s.transfer and t.state not in ('confirmed', 'failed')
    )
    select coalesce(array_agg(s.place), '{}'), array_agg(s.decision || ':settle'), array_agg('settle'::text), array_agg(s.decision),
      array_agg(s.at), array_agg(s.held), array_agg(s.destination), array_agg(s.asset), array_agg(s.units)
    into v_together, v_ids, v_kinds, v_decisions, v_ats, v_held, v_destinations, v_assets, v_units
    from together s;
    if v_together <> '{}' then
      perform ledger_book(v_ids, array_fill(1, array[cardinality(v_ids)]), v_kinds, v_decisions, v_ats, v_held, v_destinations, v_assets, v_units);
    end if;
  end if;

  select array_agg(
    case when q.place = any(v_together) then 'settled'
      else transfer_finish(q.transfer, q.decision, q.chain, q.destination, q.is_confirmed, q.hash, q.failure, q.code, q.at) end
    order by q.place) into v_verdicts
  from rows from (jsonb_to_recordset(p_requests) as (
    transfer text, decision text, chain text, destination text, is_confirmed boolean, hash text, failure text, code text,
    at timestamptz
  )) with ordinality as q (transfer, decision, chain, destination, is_confirmed, hash, failure, code, at, place);

  -- A settlement need not wait for the disk. Where a crash forgets it, the money is still held and the row still open, and the
  -- chain's evidence settles it again. A receiver that spends it meanwhile flushes it: the log is sequential, so a reserve that is
  -- durable makes all commits before it durable. A release waits: forgotten, it would have a refused transfer sent again.
  -- The embedded engine (fsync off) would lose it with its process: there a flush costs nothing.
  if 'settled' = all (v_verdicts) and current_setting('fsync') = 'on' then
    perform set_config('synchronous_commit', 'off', true);
  end if;
  return query select v.verdict from unnest(v_verdicts) with ordinality as v (verdict, place) order by v.place;
end $$;
