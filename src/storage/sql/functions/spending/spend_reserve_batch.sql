-- Decides a batch of requests one after the other, in one transaction, and returns a row for each, in their order. A request is an
-- object with spend_reserve's parameters, without their prefix. A request that cannot be read fails all of them.
--
-- Allowed spends that nothing else in the batch depends on are recorded together, as spend_reserve records one.
--
-- The plans look rows up by their index, however few rows a table had when the session made them, and are never compiled: a plan
-- that has to read a whole table in spite of these settings counts as expensive.
--
-- Locks: each level of spend_reserve as a whole before the next, sorted: all pairs, all accounts, all balances.
create or replace function spend_reserve_batch(p_requests jsonb)
returns table (verdict text, replayed boolean, decision_id text, violations jsonb, available_units bigint, written jsonb)
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
#variable_conflict use_column
declare
  v_locked record;
  v_verdict text[];
  v_replayed boolean[];
  v_decision text[];
  v_violations jsonb[];
  v_available bigint[];
  v_written jsonb[];
  v_held text[];
  v_asset text[];
  v_units bigint[];
begin
  perform pg_advisory_xact_lock(pair.principal, pair.key)
  from (
    select distinct hashtext(q.principal) as principal, hashtext(q.idempotency_key) as key
    from jsonb_to_recordset(p_requests) as q (principal text, idempotency_key text)
    where q.idempotency_key is not null
    order by 1, 2
  ) pair;

  perform pg_advisory_xact_lock(owner.hash)
  from (
    select distinct hashtextextended(q.account, 0) as hash
    from jsonb_to_recordset(p_requests) as q (account text)
    order by 1
  ) owner;

  for v_locked in
    select p.account, p.asset, max(p.filled_from) as filled_from
    from jsonb_to_recordset(p_requests) as q (source text, held text, asset text, purse jsonb)
    cross join lateral (values (q.source, q.asset, null), (q.held, q.asset, q.source), (q.purse->>'source', q.asset, null),
      (q.purse->>'held', q.asset, q.purse->>'source')) as p (account, asset, filled_from)
    where p.account is not null
    group by p.account, p.asset
    order by p.account collate "C", p.asset collate "C"
  loop
    -- The balance that a hold would insert is inserted now, in lock order, if there is something to hold.
    if v_locked.filled_from is not null then
      insert into balance (account, asset, units)
      select v_locked.account, v_locked.asset, 0
      where exists (select 1 from balance b where b.account = v_locked.filled_from and b.asset = v_locked.asset)
      on conflict do nothing;
    end if;
    perform 1 from balance b where b.account = v_locked.account and b.asset = v_locked.asset for update;
  end loop;

  with request as materialized (
    select q.*, q.approval is null and q.released is null and q.purse is null and q."order" is null
      and q.transfer->>'intent' is null
      and (q.idempotency_key is null or count(*) over (partition by q.principal, q.idempotency_key) = 1) as is_recorded
    from rows from (jsonb_to_recordset(p_requests) as (
      decision text, account text, key text, policy_version int, policy_hash text, operation text, facts jsonb,
      violations jsonb, asset text, units bigint, usd_micros bigint, daily_max bigint, daily_count int, counterparty text,
      cooldown_seconds int, needs_approval boolean, is_approved boolean, source text, held text, principal text,
      idempotency_key text, fingerprint text, at timestamptz, windows jsonb, mac text, subject text, released text, approval text,
      transfer jsonb, nonce text, nonce_expires_at timestamptz, budgets jsonb, purse jsonb, "order" jsonb
    )) with ordinality as q
    order by q.ordinality
  ), decided as materialized (
    select q.ordinality, r.verdict, r.replayed, r.decision_id, r.violations, r.available_units, r.written
    from request q
    cross join lateral spend_reserve(
      q.decision, q.account, q.key, q.policy_version, q.policy_hash, q.operation, q.facts, q.violations, q.asset, q.units,
      q.usd_micros, q.daily_max, q.daily_count, q.counterparty, q.cooldown_seconds, q.needs_approval, q.is_approved,
      q.source, q.held, q.principal, q.idempotency_key, q.fingerprint, q.at, q.windows, q.mac, q.subject, q.released, q.approval,
      q.transfer, q.nonce, q.nonce_expires_at, q.budgets, q.purse, q."order", q.is_recorded) r
  ), allowed as materialized (
    select q.* from request q join decided d on d.ordinality = q.ordinality
    where q.is_recorded and d.verdict = 'allow' and d.violations = '[]'
  ), booked as (
    insert into ledger_transaction (id, kind, reference, at)
    select a.decision || ':hold', 'hold', a.decision, a.at from allowed a where a.source is not null
  ), posted as (
    insert into posting (transaction_id, ordinal, source, destination, asset, units)
    select a.decision || ':hold', 1, a.source, a.held, a.asset, a.units from allowed a where a.source is not null
  ), reserved as (
    insert into reservation (decision_id, account_id, key_id, day, usd_micros, source, held, asset, units, reserved_at, windows)
    select a.decision, a.account, a.key, (a.at at time zone 'UTC')::date, coalesce(a.usd_micros, 0), a.source, a.held, a.asset, a.units,
      a.at, a.windows
    from allowed a
  ), recorded as (
    insert into decision (id, at, account_id, key_id, policy_version, policy_hash, operation, facts, verdict, violations, mac)
    select a.decision, a.at, a.account, a.key, a.policy_version, a.policy_hash, a.operation, a.facts, 'allow', '[]'::jsonb, a.mac from allowed a
  ), written as (
    insert into transfer
      (id, account_id, decision_id, token, units, destination, chain, state, created_at, updated_at, authorized, signer, valid_until, mac)
    select t.id, a.account, a.decision, t.token, t.units, t.destination, t.chain, 'reserved', t.at, t.at, t.authorized, t.signer,
      t.valid_until, t.mac
    from allowed a
    cross join lateral jsonb_to_record(a.transfer) as t (
      id text, token text, units bigint, destination text, chain text, at timestamptz, authorized jsonb, signer text,
      valid_until timestamptz, mac text)
    where a.transfer is not null
    on conflict do nothing
    returning decision_id, account_id
  )
  select array_agg(d.verdict order by d.ordinality), array_agg(d.replayed order by d.ordinality),
    array_agg(d.decision_id order by d.ordinality), array_agg(d.violations order by d.ordinality),
    array_agg(d.available_units order by d.ordinality),
    array_agg(coalesce(d.written, (
      select jsonb_build_object('origin', w.origin, 'owner', w.owner, 'card_cover', w.card_cover::text)
      from written t join wallet w on w.account_id = t.account_id where t.decision_id = d.decision_id)) order by d.ordinality),
    (select array_agg(a.held order by a.ordinality) from allowed a where a.source is not null),
    (select array_agg(a.asset order by a.ordinality) from allowed a where a.source is not null),
    (select array_agg(a.units order by a.ordinality) from allowed a where a.source is not null)
  into v_verdict, v_replayed, v_decision, v_violations, v_available, v_written, v_held, v_asset, v_units
  from decided d;

  -- By itself, because single calls above may have changed the same balance. One whose money arrived after the locks were taken has no
  -- row yet.
  insert into balance as b (account, asset, units)
  select h.account, h.asset, sum(h.units)::bigint from unnest(v_held, v_asset, v_units) as h (account, asset, units)
  group by h.account, h.asset
  order by h.account collate "C", h.asset collate "C"
  on conflict (account, asset) do update set units = b.units + excluded.units;

  return query
  select d.verdict, d.replayed, d.decision_id, d.violations, d.available_units, d.written
  from unnest(v_verdict, v_replayed, v_decision, v_violations, v_available, v_written) with ordinality
    as d (verdict, replayed, decision_id, violations, available_units, written, ordinality)
  order by d.ordinality;
end $$;
