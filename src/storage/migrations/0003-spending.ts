/**
 * Spending: reserve, and resolve (settle or release). Verdicts, no raises; one round trip
 * each. Locks are always taken in the order reservation, idempotency, account, budget_usage, balance (by account, asset;
 * "…:available" sorts before "…:held"), here and in ledger_post: no two calls can wait for each other.
 */
export const spending = `
-- Millionths as a decimal without needless zeros. The product is exact; a quotient would be rounded.
create function decimal_of_micros(p_micros bigint) returns text language sql immutable as $$
  select trim_scale(p_micros * 0.000001)::text
$$;

create function budget_violation(p_rule text, p_limit text, p_used text, p_requested text, p_remaining text, p_day date)
returns jsonb language sql immutable as $$
  select jsonb_build_array(jsonb_build_object(
    'rule', p_rule, 'limit', p_limit, 'used', p_used, 'requested', p_requested, 'remaining', p_remaining,
    'resetsAt', to_char(p_day + 1, 'YYYY-MM-DD"T00:00:00.000Z"')))
$$;

-- What a call with a known idempotency key is answered. A statement of its own, so that its snapshot sees the winner of a
-- race that the caller waited for.
create function spend_replay(p_principal text, p_key text, p_fingerprint text,
  out verdict text, out decision_id text, out violations jsonb, out available_units bigint
) language plpgsql as $$
#variable_conflict use_column
declare
  v_fingerprint text;
begin
  select i.fingerprint, i.decision_id, d.verdict, d.violations, d.available_units
  into v_fingerprint, decision_id, verdict, violations, available_units
  from idempotency i left join decision d on d.id = i.decision_id
  where i.principal = p_principal and i.key = p_key;
  -- A key without a decision belongs to a write that spends nothing.
  if v_fingerprint is distinct from p_fingerprint or decision_id is null then
    verdict := 'fingerprint_mismatch';
  elsif verdict = 'allow' then
    verdict := 'repeated';
  end if;
end $$;

create function spend_reserve(
  p_decision text, p_account text, p_key text, p_policy_version int, p_policy_hash text, p_operation text,
  p_facts jsonb, p_violations jsonb, p_asset text, p_units bigint, p_usd_micros bigint,
  p_daily_max bigint, p_daily_count int, p_owner_max bigint, p_source text, p_held text,
  p_principal text, p_idempotency_key text, p_fingerprint text, p_at timestamptz,
  out verdict text, out replayed boolean, out decision_id text, out violations jsonb, out available_units bigint
) language plpgsql as $$
#variable_conflict use_column
declare
  v_day date := (p_at at time zone 'UTC')::date;
  v_counted boolean := false;
  v_used bigint;
  v_count int;
  v_status text;
  v_version int;
begin
  replayed := false;
  decision_id := p_decision;
  violations := p_violations;

  if p_idempotency_key is not null then
    insert into idempotency as i (principal, key, fingerprint, decision_id, created_at)
    values (p_principal, p_idempotency_key, p_fingerprint, p_decision, p_at)
    on conflict (principal, key) do update
    set fingerprint = excluded.fingerprint, decision_id = excluded.decision_id, answer = null, created_at = excluded.created_at
    where i.created_at < excluded.created_at - interval '24 hours'
      and not exists (select 1 from reservation r where r.decision_id = i.decision_id and r.status = 'reserved');
    if not found then
      select r.verdict, true, r.decision_id, r.violations, r.available_units
      into verdict, replayed, decision_id, violations, available_units
      from spend_replay(p_principal, p_idempotency_key, p_fingerprint) r;
      return;
    end if;
  end if;

  if p_key is not null then
    -- The usual case counts and checks in one statement. Whatever refuses the spend below takes the count back.
    if p_violations = '[]' and p_owner_max is null and p_usd_micros is not null then
      update budget_usage u set used_micros = u.used_micros + p_usd_micros, count = u.count + 1
      where u.key_id = p_key and u.day = v_day
        and (p_daily_max is null or u.used_micros <= p_daily_max - p_usd_micros)
        and (p_daily_count is null or u.count < p_daily_count);
      v_counted := found;
    end if;

    if not v_counted then
      if p_owner_max is not null then
        perform 1 from account where id = p_account for no key update;
      end if;
      insert into budget_usage (key_id, day)
      select p_key, v_day where exists (select 1 from access_key where id = p_key) on conflict do nothing;
      select u.used_micros, u.count into v_used, v_count
      from budget_usage u where u.key_id = p_key and u.day = v_day for update;
      -- What has no known worth cannot be counted: a budget denies it.
      if p_daily_max - coalesce(p_usd_micros, p_daily_max + 1) < v_used then
        violations := violations || budget_violation('daily_budget', decimal_of_micros(p_daily_max), decimal_of_micros(v_used),
          decimal_of_micros(p_usd_micros), decimal_of_micros(greatest(p_daily_max - v_used, 0)), v_day);
      end if;
      if v_count >= p_daily_count then
        violations := violations || budget_violation('daily_count', p_daily_count::text, v_count::text, '1', '0', v_day);
      end if;
      if p_owner_max is not null then
        select coalesce(sum(u.used_micros), 0)::bigint into v_used
        from access_key k join budget_usage u on u.key_id = k.id and u.day = v_day
        where k.account_id = p_account;
        if p_owner_max - coalesce(p_usd_micros, p_owner_max + 1) < v_used then
          violations := violations || budget_violation('owner_budget', decimal_of_micros(p_owner_max), decimal_of_micros(v_used),
            decimal_of_micros(p_usd_micros), decimal_of_micros(greatest(p_owner_max - v_used, 0)), v_day);
        end if;
      end if;
    end if;

    -- Read after the locks: a pause or a new policy that was committed while this call waited binds it.
    select k.status, k.policy_version into v_status, v_version
    from access_key k where k.id = p_key and k.account_id = p_account;
    if v_status is null or v_status = 'revoked' or v_version is distinct from p_policy_version then
      verdict := 'stale_policy';
    elsif v_status = 'paused' then
      violations := violations || '[{"rule":"paused","limit":null,"used":null,"requested":null,"remaining":null,"resetsAt":null}]';
    end if;
  end if;

  if verdict is null and violations <> '[]' then
    verdict := 'deny';
  end if;

  while verdict is null loop
    update balance b set units = b.units - p_units
    where b.account = p_source and b.asset = p_asset and b.units >= p_units;
    if found then
      verdict := 'allow';
    else
      -- Money may have come in between the two statements: then it is tried once more.
      select coalesce(max(b.units), 0) into available_units from balance b where b.account = p_source and b.asset = p_asset;
      if available_units < p_units then
        verdict := 'insufficient_funds';
      end if;
    end if;
  end loop;

  if verdict <> 'allow' and v_counted then
    update budget_usage u set used_micros = u.used_micros - p_usd_micros, count = u.count - 1
    where u.key_id = p_key and u.day = v_day;
  end if;

  if verdict = 'stale_policy' then
    if p_idempotency_key is not null then
      delete from idempotency i where i.principal = p_principal and i.key = p_idempotency_key;
    end if;
    decision_id := null;
    violations := '[]';
    return;
  end if;

  if verdict = 'allow' then
    available_units := null;
    if p_key is not null and not v_counted then
      update budget_usage u set used_micros = u.used_micros + coalesce(p_usd_micros, 0), count = u.count + 1
      where u.key_id = p_key and u.day = v_day;
    end if;
    update balance b set units = b.units + p_units where b.account = p_held and b.asset = p_asset;
    if not found then
      insert into balance as b (account, asset, units) values (p_held, p_asset, p_units)
      on conflict (account, asset) do update set units = b.units + excluded.units;
    end if;
    insert into ledger_transaction (id, kind, reference, at) values (p_decision || ':hold', 'hold', p_decision, p_at);
    insert into posting (transaction_id, ordinal, source, destination, asset, units)
    values (p_decision || ':hold', 1, p_source, p_held, p_asset, p_units);
    insert into reservation (decision_id, account_id, key_id, day, usd_micros, source, held, asset, units, reserved_at)
    values (p_decision, p_account, p_key, v_day, coalesce(p_usd_micros, 0), p_source, p_held, p_asset, p_units, p_at);
  end if;

  insert into decision (id, at, account_id, key_id, policy_version, policy_hash, operation, facts, verdict, violations, available_units)
  values (p_decision, p_at, p_account, p_key, p_policy_version, p_policy_hash, p_operation, p_facts, verdict, violations, available_units);
end $$;

-- Settles (held to the destination) or releases (held back to its source; the budget of its day gets it back), once.
create function spend_resolve(p_decision text, p_status text, p_destination text, p_at timestamptz, out verdict text)
language plpgsql as $$
#variable_conflict use_column
declare
  r reservation;
  v_destination text;
  v_kind text := case p_status when 'settled' then 'settle' else 'release' end;
begin
  select * into r from reservation where decision_id = p_decision for update;
  if not found then
    verdict := 'not_reserved';
    return;
  elsif r.status <> 'reserved' then
    verdict := 'already_' || r.status;
    return;
  end if;

  verdict := p_status;
  v_destination := case p_status when 'settled' then p_destination else r.source end;
  update reservation set status = p_status, resolved_at = p_at where decision_id = p_decision;
  if p_status = 'released' and r.key_id is not null then
    update budget_usage set used_micros = used_micros - r.usd_micros, count = count - 1
    where key_id = r.key_id and day = r.day;
  end if;

  if left(v_destination, 5) = 'acct_' and v_destination collate "C" < r.held then
    insert into balance as b (account, asset, units) values (v_destination, r.asset, r.units)
    on conflict (account, asset) do update set units = b.units + excluded.units;
  end if;
  update balance set units = units - r.units where account = r.held and asset = r.asset;
  if left(v_destination, 5) = 'acct_' and v_destination collate "C" > r.held then
    insert into balance as b (account, asset, units) values (v_destination, r.asset, r.units)
    on conflict (account, asset) do update set units = b.units + excluded.units;
  end if;

  insert into ledger_transaction (id, kind, reference, at) values (p_decision || ':' || v_kind, v_kind, p_decision, p_at);
  insert into posting (transaction_id, ordinal, source, destination, asset, units)
  values (p_decision || ':' || v_kind, 1, r.held, v_destination, r.asset, r.units);
end $$;
`
