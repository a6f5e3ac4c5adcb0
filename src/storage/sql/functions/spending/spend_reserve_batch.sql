-- Decides a batch of requests one after the other, in one transaction, and returns a row for each, in their order. A request is an
-- object with spend_reserve's parameters, without their prefix. A request that cannot be read fails all of them.
--
-- Locks: each level of spend_reserve as a whole before the next, sorted: all pairs, all accounts, all balances.
create or replace function spend_reserve_batch(p_requests jsonb)
returns table (verdict text, replayed boolean, decision_id text, violations jsonb, available_units bigint, written jsonb)
language plpgsql as $$
#variable_conflict use_column
declare
  purse record;
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

  for purse in
    select p.account, p.asset, max(p.filled_from) as filled_from
    from jsonb_to_recordset(p_requests) as q (source text, held text, asset text, purse jsonb)
    cross join lateral (values (q.source, q.asset, null), (q.held, q.asset, q.source), (q.purse->>'source', q.asset, null),
      (q.purse->>'held', q.asset, q.purse->>'source')) as p (account, asset, filled_from)
    where p.account is not null
    group by p.account, p.asset
    order by p.account collate "C", p.asset collate "C"
  loop
    -- The balance that a hold would insert is inserted now, in lock order, if there is something to hold.
    if purse.filled_from is not null then
      insert into balance (account, asset, units)
      select purse.account, purse.asset, 0
      where exists (select 1 from balance b where b.account = purse.filled_from and b.asset = purse.asset)
      on conflict do nothing;
    end if;
    perform 1 from balance b where b.account = purse.account and b.asset = purse.asset for update;
  end loop;

  return query
  select r.verdict, r.replayed, r.decision_id, r.violations, r.available_units, r.written
  from rows from (jsonb_to_recordset(p_requests) as (
    decision text, account text, key text, policy_version int, policy_hash text, operation text, facts jsonb,
    violations jsonb, asset text, units bigint, usd_micros bigint, daily_max bigint, daily_count int, counterparty text,
    cooldown_seconds int, needs_approval boolean, is_approved boolean, source text, held text, principal text,
    idempotency_key text, fingerprint text, at timestamptz, windows jsonb, mac text, subject text, released text, approval text,
    transfer jsonb, nonce text, nonce_expires_at timestamptz, budgets jsonb, purse jsonb, "order" jsonb
  )) with ordinality as q
  cross join lateral spend_reserve(
    q.decision, q.account, q.key, q.policy_version, q.policy_hash, q.operation, q.facts, q.violations, q.asset, q.units,
    q.usd_micros, q.daily_max, q.daily_count, q.counterparty, q.cooldown_seconds, q.needs_approval, q.is_approved,
    q.source, q.held, q.principal, q.idempotency_key, q.fingerprint, q.at, q.windows, q.mac, q.subject, q.released, q.approval,
    q.transfer, q.nonce, q.nonce_expires_at, q.budgets, q.purse, q."order") r
  order by q.ordinality;
end $$;
