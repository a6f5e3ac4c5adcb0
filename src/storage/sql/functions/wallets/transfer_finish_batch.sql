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
  v_locked record;
  v_together bigint[] := '{}';
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

    for v_locked in
      select p.account, p.asset, bool_or(p.is_filled) as is_filled
      from jsonb_to_recordset(p_requests) as q (decision text, chain text, destination text, is_confirmed boolean)
      join reservation r on r.decision_id = q.decision and r.status = 'reserved' and r.source is not null
      left join wallet w on q.is_confirmed and w.address = q.destination
      left join card_pull l on l.decision_id = q.decision
      cross join lateral (values
        (r.held, r.asset, false),
        (case when not q.is_confirmed then r.source else w.account_id || ':' || q.chain || ':available' end, r.asset, true),
        (r.account_id || case when q.is_confirmed then ':escrow.' else ':' end || l.place || ':available', r.asset, true),
        (r.account_id || case when q.is_confirmed then ':escrow.' else ':' end || l.place || ':held', r.asset, true)
      ) as p (account, asset, is_filled)
      where p.account is not null
      group by p.account, p.asset
      order by p.account collate "C", p.asset collate "C"
    loop
      -- The balance that a receipt would insert is inserted now, in lock order.
      if v_locked.is_filled then
        insert into balance (account, asset, units) values (v_locked.account, v_locked.asset, 0) on conflict do nothing;
      end if;
      perform 1 from balance b where b.account = v_locked.account and b.asset = v_locked.asset for update;
    end loop;

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
    ), debited as (
      update balance b set units = b.units - h.units
      from (select s.held, s.asset, sum(s.units)::bigint as units from together s group by s.held, s.asset) h
      where b.account = h.held and b.asset = h.asset
    ), credited as (
      -- A wallet that was opened after the locks were taken has no balance yet.
      insert into balance as b (account, asset, units)
      select s.destination, s.asset, sum(s.units)::bigint from together s
      where left(s.destination, 5) = 'acct_'
      group by s.destination, s.asset
      order by s.destination collate "C", s.asset collate "C"
      on conflict (account, asset) do update set units = b.units + excluded.units
    ), booked as (
      insert into ledger_transaction (id, kind, reference, at)
      select s.decision || ':settle', 'settle', s.decision, s.at from together s
    ), posted as (
      insert into posting (transaction_id, ordinal, source, destination, asset, units)
      select s.decision || ':settle', 1, s.held, s.destination, s.asset, s.units from together s
    ), ended as (
      update transfer t
      set state = 'confirmed', transaction_hash = coalesce(s.hash, t.transaction_hash), failure = s.failure,
        failure_code = s.code, updated_at = s.at
      from together s where t.id = s.transfer and t.state not in ('confirmed', 'failed')
    )
    select coalesce(array_agg(s.place), '{}') into v_together from together s;
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
