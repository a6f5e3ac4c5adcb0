-- Decides on a spend and, when it is allowed, takes its money and counts it: idempotency, every counter of the policy, the AML
-- windows. spend_record holds the money and records the rest, in the same transaction. It returns verdicts and does not raise.
--
-- Arguments: q, see migrations/0093-spend-types.sql.
-- Verdicts
--   allow: to be recorded; violations lists the rules that an approval overrules
--   approval_required: nothing held; the owner is asked
--   deny: violations lists every failed rule, and below other keys whose it is
--   insufficient_funds: available_units is what there is; zero while the account owes a debt
--   account_locked, stale_policy (the key has changed, its channel has not the price any more, or the places of a funding have not the
--     money any more: read it again): nothing is recorded
--   repeated, fingerprint_mismatch, or an earlier verdict with replayed = true: see spend_replay
-- Locks: the idempotency pair; the account; then balances, source before held ("…:available" before "…:held").
--   Rows of idempotency are protected by the pair, rows of budget_usage, payee, outflow_slot, aml_review and approved rows of
--   approval by the account.
create or replace function spend_decide(q spend_request, out o spend_outcome) language plpgsql as $$
#variable_conflict use_column
declare
  v_day date := (q.at at time zone 'UTC')::date;
  v_counted boolean := false;
  v_used bigint;
  v_count int;
  v_status text;
  v_version int;
  v_owner_budgets jsonb;
  v_exceeded jsonb := '[]';
  v_paid_from timestamptz;
  v_too_new jsonb := '[]';
  v_used_by text;
  v_left bigint;
  v_chunk bigint;
  v_account text;
  v_path text[];
  v_keys text[];
  v_is_current boolean := true;
  v_is_free boolean := true;
  v_aside bigint := 0;
  v_above jsonb := '[]';
  v_repeated jsonb := '[]';
begin
  o.replayed := false;
  o.decision_id := q.decision;
  o.violations := q.violations;
  o.is_new := false;
  o.source := q.source;
  o.held := q.held;
  o.units := q.units;

  if q.idempotency_key is not null then
    perform pg_advisory_xact_lock(hashtext(q.principal), hashtext(q.idempotency_key));
    update idempotency i set fingerprint = q.fingerprint, decision_id = q.decision, answer = null, created_at = q.at
    where i.principal = q.principal and i.key = q.idempotency_key
      and (i.created_at < q.at - interval '24 hours'
          and not spend_is_open(i.decision_id, q.at)
        -- The approved call replaces the one that asked, once: a second approval finds its decision.
        or q.is_approved and i.fingerprint = q.fingerprint
          and exists (select from decision_read(i.decision_id) d where (d.verdict = 'approval_required'
            or q.approval is not null and d.verdict = 'deny' and d.facts->>'approvalId' is distinct from q.approval)));
    if not found then
      -- The lock is that of every writer. An upsert would also write a confirmation of the row to the log.
      insert into idempotency (principal, key, fingerprint, decision_id, created_at)
      select q.principal, q.idempotency_key, q.fingerprint, q.decision, q.at
      where not exists (select from idempotency i where i.principal = q.principal and i.key = q.idempotency_key);
    end if;
    if not found then
      select r.verdict, true, r.decision_id, r.violations, r.available_units
      into o.verdict, o.replayed, o.decision_id, o.violations, o.available_units
      from spend_replay(q.principal, q.idempotency_key, q.fingerprint) r;
      return;
    end if;
  end if;

  if q.nonce is not null then
    insert into signature_nonce (key_id, nonce, expires_at) values (q.key, q.nonce, q.nonce_expires_at) on conflict do nothing;
  end if;

  -- Read after the locks: a lock, a pause, a new policy or a new cap that was committed while this call waited applies to it.
  perform pg_advisory_xact_lock(hashtextextended(q.account, 0));
  if q.approval is not null then
    select a.used_by into v_used_by from approval a where a.id = q.approval and a.used_by is not null;
    if found then
      -- The idempotency key has expired meanwhile: the approval still allows one spend.
      update idempotency i set decision_id = v_used_by where i.principal = q.principal and i.key = q.idempotency_key;
      o.verdict := 'repeated';
      o.decision_id := v_used_by;
      o.violations := '[]';
      return;
    end if;
  end if;
  if exists (select 1 from account a where a.id = q.account and a.status = 'locked') then
    o.verdict := 'account_locked';
  elsif q.key is not null then
    select k.status, k.policy_version, k.path,
      case when exists (select from earmark e where e.holder_id = k.id) then earmarks_open(k.id, array[k.id], q.at) else 0 end,
      case when coalesce(a.agent_daily_max_micros, a.agent_weekly_max_micros, a.agent_monthly_max_micros) is not null then
        jsonb_build_array(
          jsonb_build_object('rule', 'owner_budget', 'period', 'day', 'max_micros', a.agent_daily_max_micros),
          jsonb_build_object('rule', 'owner_budget', 'period', 'week', 'max_micros', a.agent_weekly_max_micros),
          jsonb_build_object('rule', 'owner_budget', 'period', 'month', 'max_micros', a.agent_monthly_max_micros))
      end into v_status, v_version, v_path, v_aside, v_owner_budgets
    from access_key k join account a on a.id = k.account_id
    where k.id = q.key and k.account_id = q.account;
    v_keys := v_path || q.key;
    if v_path <> '{}' or q.path is not null then
      select p.is_current, p.is_free into v_is_current, v_is_free
      from path_state(v_path, q.path, v_keys, q.usd_micros, q.at, v_day) p;
    end if;
    if v_status is null or v_status = 'revoked' or v_version is distinct from q.policy_version or not v_is_current then
      o.verdict := 'stale_policy';
    end if;
  end if;
  -- What only a purse can pay is planned anew when others took its money.
  if o.verdict is null and q.purse ? 'only'
    and not exists (select from balance b where b.account = q.purse->>'source' and b.asset = q.asset and b.units >= q.units)
  then
    o.verdict := 'stale_policy';
  end if;
  if o.verdict is not null then
    delete from idempotency i where i.principal = q.principal and i.key = q.idempotency_key;
    o.decision_id := null;
    o.violations := '[]';
    return;
  end if;
  if q.violations <> '[]' then
    o.screening := jsonb_path_query_first(q.violations, '$[*] ? (@.rule == "aml_screening")');
  end if;
  if o.screening is null and (q.windows is not null or q.released is not null) then
    o.screening := aml_objection(q.account, q.windows, q.released, q.at);
    if o.screening is not null then
      o.violations := o.violations || o.screening;
    end if;
  end if;

  if q.key is not null then
    if q.cooldown_seconds is not null then
      select y.first_seen_at into v_paid_from from payee y where y.key_id = q.key and y.counterparty = q.counterparty;
      if not found and q.counterparty is not null then
        insert into payee (key_id, counterparty, first_seen_at) select q.key, q.counterparty, q.at where v_status = 'active';
        v_paid_from := q.at;
      end if;
      v_paid_from := v_paid_from + make_interval(secs => q.cooldown_seconds);
      if v_paid_from is null or q.at < v_paid_from then
        v_too_new := jsonb_build_array(jsonb_build_object(
          'rule', 'new_payee_cooldown', 'limit', q.cooldown_seconds::text, 'used', null, 'requested', q.counterparty,
          'remaining', null, 'resetsAt', to_char(v_paid_from at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')));
      end if;
    end if;

    if q.budgets is not null then
      v_exceeded := budget_exceeded(array[q.key], q.budgets, q.usd_micros, v_day, v_aside);
    end if;
    if v_path <> '{}' and not v_is_free then
      v_above := path_exceeded(q, v_keys, v_day);
    end if;
    -- What its owner has to see, or has seen, is no loop.
    if q.repeat is not null and not q.needs_approval and q.approval is null then
      v_repeated := repeat_exceeded(q.key, q.repeat, repeat_name(q.facts), q.at);
    end if;

    -- The usual case counts and checks in one statement. If the money is missing, the count is taken back below.
    if o.violations = '[]' and v_too_new = '[]' and v_exceeded = '[]' and v_above = '[]' and v_repeated = '[]'
      and v_status = 'active' and v_owner_budgets is null and q.usd_micros is not null and not q.needs_approval
    then
      update budget_usage u set used_micros = u.used_micros + q.usd_micros, count = u.count + 1
      where u.key_id = q.key and u.day = v_day
        and (q.daily_max is null or u.used_micros <= q.daily_max - q.usd_micros - v_aside)
        and (q.daily_count is null or u.count < q.daily_count);
      v_counted := found;
    end if;

    if not v_counted then
      select coalesce(max(u.used_micros), 0) + v_aside, coalesce(max(u.count), 0) into v_used, v_count
      from budget_usage u where u.key_id = q.key and u.day = v_day;
      -- A spend without a known worth cannot be counted: every budget denies it.
      if q.daily_max - coalesce(q.usd_micros, q.daily_max + 1) < v_used then
        o.violations := o.violations || budget_violation('daily_budget', decimal_of_micros(q.daily_max), decimal_of_micros(v_used),
          decimal_of_micros(q.usd_micros), decimal_of_micros(greatest(q.daily_max - v_used, 0)), v_day);
      end if;
      if v_count >= q.daily_count then
        o.violations := o.violations || budget_violation('daily_count', q.daily_count::text, v_count::text, '1', '0', v_day);
      end if;
      o.violations := o.violations || v_exceeded;
      if v_owner_budgets is not null then
        o.violations := o.violations || budget_exceeded(
          array(select k.id from access_key k where k.account_id = q.account and k.path = '{}'), v_owner_budgets, q.usd_micros, v_day);
      end if;
      o.violations := o.violations || v_too_new || v_repeated;
      if v_status = 'paused' and not o.violations @> '[{"rule":"paused"}]' then
        o.violations := o.violations || '[{"rule":"paused","limit":null,"used":null,"requested":null,"remaining":null,"resetsAt":null}]';
      end if;
    end if;
    if v_path <> '{}' and (o.violations <> '[]' or v_above <> '[]') then
      -- Of two keys, each says what it objects to.
      o.violations := (
        select coalesce(jsonb_agg(case when v ? 'agentId' or v->>'rule' in ('owner_budget', 'aml_screening') then v
          else v || jsonb_build_object('agentId', q.key) end order by n), '[]')
        from jsonb_array_elements(o.violations) with ordinality e (v, n)) || v_above;
    end if;
  end if;

  if o.violations <> '[]' and (q.approval is null
    or not approval_overrules(q.approval, q.account, q.key, q.operation, q.fingerprint, o.violations))
  then
    o.verdict := 'deny';
  end if;

  if q.purse is not null then
    if exists (select from balance b where b.account = q.purse->>'source' and b.asset = q.asset and b.units >= q.units) then
      o.source := q.purse->>'source';
      o.held := q.purse->>'held';
    elsif (q.purse->>'chunk')::bigint > q.units and q.usd_micros > 0 and not exists (
      -- One chunk at a time. A purchase that did not reach its purse within an hour was given up.
      select from reservation r cross join lateral decision_read(r.decision_id) d
      where r.status = 'reserved' and r.reserved_at > q.at - interval '1 hour' and r.key_id = q.key and r.source = o.source
        and r.asset = q.asset and d.operation = q.operation
    ) then
      -- It never has more than its key may still spend, this purchase included. An account's own purse has no chunk.
      v_left := least(
        budget_left(array[q.key], coalesce(q.budgets, '[]') || jsonb_build_object('period', 'day', 'max_micros', q.daily_max), v_day)
          - v_aside + case when v_counted then q.usd_micros else 0 end,
        budget_left(array(select k.id from access_key k where k.account_id = q.account and k.path = '{}'), v_owner_budgets, v_day)
          + case when v_counted and v_path = '{}' then q.usd_micros else 0 end,
        case when v_path <> '{}' then path_left(q, v_keys, v_day) end);
      v_chunk := greatest(q.units, least((q.purse->>'chunk')::bigint, floor(v_left::numeric * q.units / q.usd_micros)
        - coalesce((select b.units from balance b where b.account = q.purse->>'source' and b.asset = q.asset), 0)));
      if exists (select from balance b where b.account = o.source and b.asset = q.asset and b.units >= v_chunk) then
        o.units := v_chunk;
      end if;
    end if;
  end if;

  if o.verdict is not null then
    null;
  elsif o.source is null then
    o.verdict := case when q.needs_approval then 'approval_required' else 'allow' end;
  -- Debts are collected before the account spends anything. It may sell shares to pay them.
  elsif q.asset not like 'equity:%' and exists (select from debt d where d.account_id = q.account and d.owed > 0) then
    o.available_units := 0;
    o.verdict := 'insufficient_funds';
  elsif q.needs_approval and q.funding is not null then
    o.verdict := 'approval_required';
  elsif q.needs_approval then
    select coalesce(max(b.units), 0) into o.available_units from balance b where b.account = o.source and b.asset = q.asset;
    o.verdict := case when o.available_units < o.units then 'insufficient_funds' else 'approval_required' end;
  elsif q.funding is not null then
    -- What is there is held; what lacks is taken from another place.
    o.units := q.units - (q.funding->>'needed')::bigint;
    select c.account into v_account
    from balance_change(array[o.source, q.funding->>'source'], array[q.asset, q.asset], array[-o.units, -(q.funding->>'units')::bigint]) c;
    o.verdict := case when v_account is null then 'allow' else 'stale_funding' end;
  else
    select c.account, c.available_units into v_account, o.available_units
    from balance_change(array[o.source], array[q.asset], array[-o.units]) c;
    o.verdict := case when v_account is null then 'allow' else 'insufficient_funds' end;
  end if;

  if o.verdict = 'allow' then
    if q.key is not null and not v_counted then
      insert into budget_usage as u (key_id, day, used_micros, count) values (q.key, v_day, coalesce(q.usd_micros, 0), 1)
      on conflict (key_id, day) do update set used_micros = u.used_micros + excluded.used_micros, count = u.count + 1;
    end if;
    if v_path <> '{}' then
      insert into budget_usage as u (key_id, day, used_micros, count) select k, v_day, coalesce(q.usd_micros, 0), 1 from unnest(v_path) k
      on conflict (key_id, day) do update set used_micros = u.used_micros + excluded.used_micros, count = u.count + 1;
    end if;
    if q.windows is not null then
      perform outflow_count(q.account, q.windows, q.at);
    end if;
    if q.repeat is not null or q.path @> '[{"repeat":{}}]' then
      perform repeat_count(q);
    end if;
  elsif v_counted then
    update budget_usage u set used_micros = u.used_micros - q.usd_micros, count = u.count - 1
    where u.key_id = q.key and u.day = v_day;
  end if;
  if o.verdict <> 'insufficient_funds' then
    o.available_units := null;
  end if;
  if o.verdict = 'stale_funding' then
    delete from idempotency i where i.principal = q.principal and i.key = q.idempotency_key;
    o.verdict := 'stale_policy';
    o.decision_id := null;
    o.violations := '[]';
    return;
  end if;
  o.is_new := true;
end $$;
