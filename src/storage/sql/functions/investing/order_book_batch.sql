-- Books a batch of reports in one transaction, and returns a verdict for each, in their order. A request is an object with
-- order_book's parameters, without their prefix. A request that cannot be booked raises, which undoes all of them.
--
-- Verdicts: those of order_book.
-- Locks: each level of order_book as a whole before the next, sorted: all orders, all reservations, all accounts, all
--   balances.
create or replace function order_book_batch(p_requests jsonb) returns table (verdict text) language plpgsql as $$
#variable_conflict use_column
declare
  v_name text;
  v_verdicts text[];
  v_is_known boolean;
begin
  -- A single report takes its locks in this order by itself.
  if jsonb_array_length(p_requests) > 1 then
    -- One look-up each: a single statement is planned for more rows than a batch has, and reads the whole table.
    for v_name in
      select q."order" from jsonb_to_recordset(p_requests) as q ("order" text) order by q."order" collate "C"
    loop
      perform 1 from investing_order o where o.id = v_name for update;
    end loop;

    for v_name in
      select q.decision from jsonb_to_recordset(p_requests) as q (decision text) order by q.decision collate "C"
    loop
      perform 1 from reservation r where r.decision_id = v_name for update;
    end loop;

    perform pg_advisory_xact_lock(owner.hash)
    from (
      select distinct hashtextextended(q.account, 0) as hash
      from jsonb_to_recordset(p_requests) as q (account text)
      order by 1
    ) owner;

    -- The balance that a fill would open is opened now, in lock order.
    perform balance_change(array_agg(p.account), array_agg(p.asset), array_agg(0::bigint))
    from jsonb_to_recordset(p_requests) as q (decision text, destination text, asset text, got bigint, ends boolean)
    cross join lateral (
      select r.source, r.held, r.asset from reservation r where r.decision_id = q.decision limit 1
    ) r
    cross join lateral (values
      (r.held, r.asset),
      (case when q.ends then r.source end, r.asset),
      (case when q.got > 0 then q.destination end, q.asset)
    ) as p (account, asset);
  end if;

  select array_agg(b.verdict order by q.ordinality), bool_and(q.status in ('accepted', 'partially_filled', 'filled'))
  into v_verdicts, v_is_known
  from rows from (jsonb_to_recordset(p_requests) as (
    was_status text, was_filled_qty bigint, was_filled_cash bigint, was_canceling boolean, "order" text, decision text,
    account text, at timestamptz, part text, broker text, given bigint, destination text, asset text, got bigint, change text,
    symbol text, qty bigint, cash bigint, ends boolean, status text, reject_reason text, filled_qty bigint, filled_cash bigint,
    filled_avg_price bigint, filled_at timestamptz
  )) with ordinality as q
  cross join lateral order_book(
    q.was_status, q.was_filled_qty, q.was_filled_cash, q.was_canceling, q."order", q.decision, q.account, q.at, q.part, q.broker,
    q.given, q.destination, q.asset, q.got, q.change, q.symbol, q.qty, q.cash, q.ends, q.status, q.reject_reason, q.filled_qty,
    q.filled_cash, q.filled_avg_price, q.filled_at) b;

  -- An order that the broker has need not wait for the disk. Where a crash forgets what was booked, the row is still open and its
  -- hold reserved, and the broker's report books it again. Shares or dollars that are spent meanwhile flush it: the log is
  -- sequential, so a reserve that is durable makes all commits before it durable. Any other end waits: forgotten, it might place an
  -- order that was refused.
  -- The embedded engine (fsync off) would lose it with its process: there a flush costs nothing.
  if v_is_known and current_setting('fsync') = 'on' then
    perform set_config('synchronous_commit', 'off', true);
  end if;
  return query select v.verdict from unnest(v_verdicts) with ordinality as v (verdict, place) order by v.place;
end $$;
