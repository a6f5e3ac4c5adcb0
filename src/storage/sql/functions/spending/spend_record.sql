-- Records what spend_decide has decided in this transaction: the hold in the ledger, the reservation and the decision; then what an
-- approval or a review has allowed, the review that is asked for, and the pause of a key that repeats itself. The only writer of new
-- reservations and decisions of spends.
--
-- Arguments: the arrays are one spend for each index; outcomes that are not new are passed over.
-- Locks: the balances of the holds. The caller holds the accounts, and with them their approvals and reviews, and the pairs.
create or replace function spend_record(p_requests spend_request[], p_outcomes spend_outcome[]) returns void language plpgsql as $$
declare
  q spend_request;
  o spend_outcome;
  v_ids text[];
  v_ordinals int[];
  v_kinds text[];
  v_decisions text[];
  v_ats timestamptz[];
  v_sources text[];
  v_helds text[];
  v_assets text[];
  v_units bigint[];
begin
  -- The authentication code covers the decision that the request leads to unless a counter or the balance objects, or an approval
  -- overrules.
  with spend as materialized (
    select * from rows from (unnest(p_requests), unnest(p_outcomes)) as s (
      decision, account, key, policy_version, policy_hash, operation, facts, asked, asset, wanted, usd_micros, daily_max, daily_count, budgets,
      counterparty, cooldown_seconds, needs_approval, is_approved, asked_source, asked_held, principal, idempotency_key, fingerprint, at,
      windows, mac, subject, released, approval, nonce, nonce_expires_at, purse, path, repeat, funding,
      verdict, replayed, decision_id, violations, available_units, is_new, source, held, units, screening)
    where s.is_new
  ), reserved as (
    insert into reservation (decision_id, account_id, key_id, day, usd_micros, source, held, asset, units, reserved_at, windows)
    select s.decision, s.account, s.key, (s.at at time zone 'UTC')::date, coalesce(s.usd_micros, 0), s.source, s.held, s.asset, s.units,
      s.at, (select jsonb_agg(jsonb_build_array(w.rule, w.seconds, w.usd_micros)) from outflow_counted(s.windows) w)
    from spend s where s.verdict = 'allow'
  ), decided as (
    insert into decision (id, at, account_id, key_id, policy_version, policy_hash, operation, facts, verdict, violations, available_units, mac)
    select s.decision, s.at, s.account, s.key, s.policy_version, s.policy_hash, s.operation, s.facts, s.verdict, s.violations,
      s.available_units, case when s.violations = s.asked and s.verdict <> 'insufficient_funds'
        and (s.verdict <> 'allow' or s.violations = '[]') then s.mac end
    from spend s
  )
  select array_agg(s.decision || ':hold'), array_agg(1), array_agg('hold'::text), array_agg(s.decision), array_agg(s.at),
    array_agg(s.source), array_agg(s.held), array_agg(s.asset), array_agg(s.units)
  into v_ids, v_ordinals, v_kinds, v_decisions, v_ats, v_sources, v_helds, v_assets, v_units
  from spend s where s.verdict = 'allow' and s.source is not null and s.units > 0;
  if v_ids is not null then
    perform balance_change(v_helds, v_assets, v_units);
    perform ledger_record(v_ids, v_ordinals, v_kinds, v_decisions, v_ats, v_sources, v_helds, v_assets, v_units);
  end if;

  for v_place in 1 .. cardinality(p_requests) loop
    q := p_requests[v_place];
    o := p_outcomes[v_place];
    continue when not o.is_new;
    if o.verdict = 'allow' and q.funding is not null then
      insert into reservation (decision_id, account_id, day, usd_micros, source, held, asset, units, reserved_at)
      values (q.funding->>'id', q.account, (q.at at time zone 'UTC')::date, 0, q.funding->>'source', q.funding->>'held', q.asset,
        (q.funding->>'units')::bigint, q.at);
      perform balance_change(array[q.funding->>'held'], array[q.asset], array[(q.funding->>'units')::bigint]);
      perform ledger_record(array[q.funding->>'id' || ':hold'], array[1], array['hold'], array[q.funding->>'id'], array[q.at],
        array[q.funding->>'source'], array[q.funding->>'held'], array[q.asset], array[(q.funding->>'units')::bigint]);
    end if;
    if o.verdict = 'allow' and q.approval is not null then
      update approval a set used_by = q.decision where a.id = q.approval and a.status = 'approved';
    elsif o.verdict = 'deny' and o.violations @> '[{"rule":"repeat_limit"}]' then
      perform repeat_stop(q);
    end if;
    if o.screening is not null then
      -- The same call may be sent again once it has its data, its window has passed or a person has reviewed it.
      delete from idempotency i where i.principal = q.principal and i.key = q.idempotency_key;
      perform aml_ask_review(q.account, q.decision, q.subject, o.screening, q.at);
    elsif o.verdict = 'allow' and q.released is not null then
      update aml_review r set used_by = q.decision where r.id = q.released;
    end if;
  end loop;
end $$;
