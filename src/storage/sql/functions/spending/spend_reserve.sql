-- Decides on a spend and, when it is allowed, reserves it: idempotency, every counter of the policy, the AML windows, the hold in
-- the ledger and the decision's row, in one round trip. It returns verdicts and does not raise.
--
-- Arguments
--   p_decision: id of the decision to be written
--   p_key, p_policy_version: null: the owner itself, without budgets
--   p_violations: those of the policy's static rules, which the caller has evaluated, perhaps with the pause of the key
--   p_asset, p_units: what is held, in smallest units
--   p_usd_micros: its worth, counted in budgets; null: unknown, which every budget denies
--   p_daily_max, p_daily_count: limits of the key's day; null: no limit
--   p_budgets: rules of the key's week and month, see budget_exceeded; null: none
--   p_counterparty, p_cooldown_seconds: the payee, and how long a new one must wait; null: no cool-down
--   p_needs_approval, p_is_approved: above the approval limit; called again by its owner's approval
--   p_source, p_held: the ledger accounts of the hold; null: the money is not ours (relays)
--   p_principal, p_idempotency_key, p_fingerprint: null key: not idempotent
--   p_windows: the AML windows to judge and count; null: none
--   p_mac: authentication code of the decision unless a counter or a balance objects
--   p_approval: the approval under which the call runs; it may overrule violations, see approval_overrules, and allows one spend
--   p_subject, p_released: identifies the spend for an AML review; the review that released it
--   p_nonce: nonce of the signed request, which its authentication has used up in a commit of its own, perhaps on a database that
--     has failed since; null: not signed
--   p_transfer: the row of the transfer to be sent, written with the hold; null: none. See transfer_insert.
--   p_purse: {source, held, chunk}: the purse that pays where it has enough. Otherwise the wallet holds a chunk of money for it, within
--     what the budgets leave of the key's periods, or
--     p_units where it has less; null: none
--   p_order: the row of the order to be placed, written with the hold; null: none. See order_insert.
--   p_is_recorded: the caller, spend_reserve_batch, records an allowed spend that no approval overruled: what is held, and the rows of
--     the hold, the reservation, the decision and the transfer. Not for a call that may have an approval, a review, an intent, a
--     purse or an order, and only if no other call of the batch has its idempotency key.
-- Verdicts; written is the wallet of the transfer's row, or true for an order's, if one was written
--   allow: reserved; violations lists the rules that an approval overrules
--   approval_required: nothing held; the owner is asked
--   deny: violations lists every failed rule
--   insufficient_funds: available_units is what there is; zero while the account owes a debt
--   account_locked, stale_policy (the key has changed: read it again): no decision was written
--   repeated, fingerprint_mismatch, or an earlier verdict with replayed = true: see spend_replay
-- Locks: the idempotency pair; the account; then balances, source before held ("…:available" before "…:held"); then the intent.
--   Rows of idempotency are protected by the pair, rows of budget_usage, payee, outflow_slot, aml_review and approved rows of
--   approval by the account.
create or replace function spend_reserve(
  p_decision text, p_account text, p_key text, p_policy_version int, p_policy_hash text, p_operation text,
  p_facts jsonb, p_violations jsonb, p_asset text, p_units bigint, p_usd_micros bigint,
  p_daily_max bigint, p_daily_count int, p_counterparty text, p_cooldown_seconds int,
  p_needs_approval boolean, p_is_approved boolean, p_source text, p_held text,
  p_principal text, p_idempotency_key text, p_fingerprint text, p_at timestamptz,
  p_windows jsonb default null, p_mac text default null, p_subject text default null, p_released text default null,
  p_approval text default null, p_transfer jsonb default null, p_nonce text default null, p_nonce_expires_at timestamptz default null,
  p_budgets jsonb default null, p_purse jsonb default null, p_order jsonb default null, p_is_recorded boolean default false,
  out verdict text, out replayed boolean, out decision_id text, out violations jsonb, out available_units bigint, out written jsonb
) language plpgsql as $$
#variable_conflict use_column
declare
  v_day date := (p_at at time zone 'UTC')::date;
  v_counted boolean := false;
  v_used bigint;
  v_count int;
  v_status text;
  v_version int;
  v_owner_budgets jsonb;
  v_exceeded jsonb := '[]';
  v_paid_from timestamptz;
  v_too_new jsonb := '[]';
  v_screening jsonb;
  v_is_indebted boolean;
  v_used_by text;
  v_left bigint;
  v_chunk bigint;
begin
  replayed := false;
  decision_id := p_decision;
  violations := p_violations;

  if p_idempotency_key is not null then
    perform pg_advisory_xact_lock(hashtext(p_principal), hashtext(p_idempotency_key));
    insert into idempotency as i (principal, key, fingerprint, decision_id, created_at)
    values (p_principal, p_idempotency_key, p_fingerprint, p_decision, p_at)
    on conflict (principal, key) do update
    set fingerprint = excluded.fingerprint, decision_id = excluded.decision_id, answer = null, created_at = excluded.created_at
    where i.created_at < excluded.created_at - interval '24 hours'
        and not spend_is_open(i.decision_id, p_at)
      -- The approved call replaces the one that asked, once: a second approval finds its decision.
      or p_is_approved and i.fingerprint = excluded.fingerprint
        and exists (select 1 from decision d where d.id = i.decision_id and (d.verdict = 'approval_required'
          or p_approval is not null and d.verdict = 'deny' and d.facts->>'approvalId' is distinct from p_approval));
    if not found then
      select r.verdict, true, r.decision_id, r.violations, r.available_units
      into verdict, replayed, decision_id, violations, available_units
      from spend_replay(p_principal, p_idempotency_key, p_fingerprint) r;
      return;
    end if;
  end if;

  if p_nonce is not null then
    insert into signature_nonce (key_id, nonce, expires_at) values (p_key, p_nonce, p_nonce_expires_at) on conflict do nothing;
  end if;

  -- Read after the locks: a lock, a pause, a new policy or a new cap that was committed while this call waited applies to it.
  perform pg_advisory_xact_lock(hashtextextended(p_account, 0));
  if p_approval is not null then
    select a.used_by into v_used_by from approval a where a.id = p_approval and a.used_by is not null;
    if found then
      -- The idempotency key has expired meanwhile: the approval still allows one spend.
      update idempotency i set decision_id = v_used_by where i.principal = p_principal and i.key = p_idempotency_key;
      verdict := 'repeated';
      decision_id := v_used_by;
      violations := '[]';
      return;
    end if;
  end if;
  if exists (select 1 from account a where a.id = p_account and a.status = 'locked') then
    verdict := 'account_locked';
  elsif p_key is not null then
    select k.status, k.policy_version,
      case when coalesce(a.agent_daily_max_micros, a.agent_weekly_max_micros, a.agent_monthly_max_micros) is not null then
        jsonb_build_array(
          jsonb_build_object('rule', 'owner_budget', 'period', 'day', 'max_micros', a.agent_daily_max_micros),
          jsonb_build_object('rule', 'owner_budget', 'period', 'week', 'max_micros', a.agent_weekly_max_micros),
          jsonb_build_object('rule', 'owner_budget', 'period', 'month', 'max_micros', a.agent_monthly_max_micros))
      end into v_status, v_version, v_owner_budgets
    from access_key k join account a on a.id = k.account_id
    where k.id = p_key and k.account_id = p_account;
    if v_status is null or v_status = 'revoked' or v_version is distinct from p_policy_version then
      verdict := 'stale_policy';
    end if;
  end if;
  if verdict is not null then
    delete from idempotency i where i.principal = p_principal and i.key = p_idempotency_key;
    decision_id := null;
    violations := '[]';
    return;
  end if;
  if p_violations <> '[]' then
    v_screening := jsonb_path_query_first(p_violations, '$[*] ? (@.rule == "aml_screening")');
  end if;
  if v_screening is null and (p_windows is not null or p_released is not null) then
    v_screening := aml_objection(p_account, p_windows, p_released, p_at);
    if v_screening is not null then
      violations := violations || v_screening;
    end if;
  end if;

  if p_key is not null then
    if p_cooldown_seconds is not null then
      select y.first_seen_at into v_paid_from from payee y where y.key_id = p_key and y.counterparty = p_counterparty;
      if not found and p_counterparty is not null then
        insert into payee (key_id, counterparty, first_seen_at) select p_key, p_counterparty, p_at where v_status = 'active';
        v_paid_from := p_at;
      end if;
      v_paid_from := v_paid_from + make_interval(secs => p_cooldown_seconds);
      if v_paid_from is null or p_at < v_paid_from then
        v_too_new := jsonb_build_array(jsonb_build_object(
          'rule', 'new_payee_cooldown', 'limit', p_cooldown_seconds::text, 'used', null, 'requested', p_counterparty,
          'remaining', null, 'resetsAt', to_char(v_paid_from at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')));
      end if;
    end if;

    if p_budgets is not null then
      v_exceeded := budget_exceeded(array[p_key], p_budgets, p_usd_micros, v_day);
    end if;

    -- The usual case counts and checks in one statement. If the money is missing, the count is taken back below.
    if violations = '[]' and v_too_new = '[]' and v_exceeded = '[]' and v_status = 'active' and v_owner_budgets is null
      and p_usd_micros is not null and not p_needs_approval
    then
      update budget_usage u set used_micros = u.used_micros + p_usd_micros, count = u.count + 1
      where u.key_id = p_key and u.day = v_day
        and (p_daily_max is null or u.used_micros <= p_daily_max - p_usd_micros)
        and (p_daily_count is null or u.count < p_daily_count);
      v_counted := found;
    end if;

    if not v_counted then
      select coalesce(max(u.used_micros), 0), coalesce(max(u.count), 0) into v_used, v_count
      from budget_usage u where u.key_id = p_key and u.day = v_day;
      -- A spend without a known worth cannot be counted: every budget denies it.
      if p_daily_max - coalesce(p_usd_micros, p_daily_max + 1) < v_used then
        violations := violations || budget_violation('daily_budget', decimal_of_micros(p_daily_max), decimal_of_micros(v_used),
          decimal_of_micros(p_usd_micros), decimal_of_micros(greatest(p_daily_max - v_used, 0)), v_day);
      end if;
      if v_count >= p_daily_count then
        violations := violations || budget_violation('daily_count', p_daily_count::text, v_count::text, '1', '0', v_day);
      end if;
      violations := violations || v_exceeded;
      if v_owner_budgets is not null then
        violations := violations || budget_exceeded(
          array(select k.id from access_key k where k.account_id = p_account), v_owner_budgets, p_usd_micros, v_day);
      end if;
      violations := violations || v_too_new;
      if v_status = 'paused' and not violations @> '[{"rule":"paused"}]' then
        violations := violations || '[{"rule":"paused","limit":null,"used":null,"requested":null,"remaining":null,"resetsAt":null}]';
      end if;
    end if;
  end if;

  if violations <> '[]' and (p_approval is null
    or not approval_overrules(p_approval, p_account, p_key, p_operation, p_fingerprint, violations))
  then
    verdict := 'deny';
  end if;

  if p_purse is not null then
    if exists (select from balance b where b.account = p_purse->>'source' and b.asset = p_asset and b.units >= p_units) then
      p_source := p_purse->>'source';
      p_held := p_purse->>'held';
    elsif (p_purse->>'chunk')::bigint > p_units and p_usd_micros > 0 and not exists (
      -- One chunk at a time. A purchase that did not reach its purse within an hour was given up.
      select from reservation r join decision d on d.id = r.decision_id
      where r.status = 'reserved' and r.reserved_at > p_at - interval '1 hour' and r.key_id = p_key and r.source = p_source
        and r.asset = p_asset and d.operation = p_operation
    ) then
      -- It never has more than its key may still spend, this purchase included. An account's own purse has no chunk.
      v_left := least(
        budget_left(array[p_key], coalesce(p_budgets, '[]') || jsonb_build_object('period', 'day', 'max_micros', p_daily_max), v_day),
        budget_left(array(select k.id from access_key k where k.account_id = p_account), v_owner_budgets, v_day)
      ) + case when v_counted then p_usd_micros else 0 end;
      v_chunk := greatest(p_units, least((p_purse->>'chunk')::bigint, floor(v_left::numeric * p_units / p_usd_micros)
        - coalesce((select b.units from balance b where b.account = p_purse->>'source' and b.asset = p_asset), 0)));
      if exists (select from balance b where b.account = p_source and b.asset = p_asset and b.units >= v_chunk) then
        p_units := v_chunk;
      end if;
    end if;
  end if;

  -- Debts are collected before the account spends anything. It may sell shares to pay them.
  v_is_indebted := p_source is not null and p_asset not like 'equity:%'
    and exists (select from debt d where d.account_id = p_account and d.owed > 0);
  while verdict is null loop
    if v_is_indebted then
      available_units := 0;
      verdict := 'insufficient_funds';
      exit;
    end if;
    if p_source is null then
      verdict := case when p_needs_approval then 'approval_required' else 'allow' end;
      exit;
    end if;
    if not p_needs_approval then
      update balance b set units = b.units - p_units
      where b.account = p_source and b.asset = p_asset and b.units >= p_units;
      if found then
        verdict := 'allow';
        exit;
      end if;
    end if;
    -- Money may have arrived between the two statements: then the hold is tried once more.
    select coalesce(max(b.units), 0) into available_units from balance b where b.account = p_source and b.asset = p_asset;
    if available_units < p_units then
      verdict := 'insufficient_funds';
    elsif p_needs_approval then
      verdict := 'approval_required';
    end if;
  end loop;

  if verdict <> 'allow' and v_counted then
    update budget_usage u set used_micros = u.used_micros - p_usd_micros, count = u.count - 1
    where u.key_id = p_key and u.day = v_day;
  end if;
  if verdict <> 'insufficient_funds' then
    available_units := null;
  end if;

  if verdict = 'allow' then
    if p_key is not null and not v_counted then
      insert into budget_usage as u (key_id, day, used_micros, count) values (p_key, v_day, coalesce(p_usd_micros, 0), 1)
      on conflict (key_id, day) do update set used_micros = u.used_micros + excluded.used_micros, count = u.count + 1;
    end if;
    if p_windows is not null then
      perform outflow_count(p_account, p_windows, p_at);
    end if;
    if p_is_recorded and violations = '[]' then
      return;
    end if;
    if p_source is not null then
      update balance b set units = b.units + p_units where b.account = p_held and b.asset = p_asset;
      if not found then
        insert into balance as b (account, asset, units) values (p_held, p_asset, p_units)
        on conflict (account, asset) do update set units = b.units + excluded.units;
      end if;
      insert into ledger_transaction (id, kind, reference, at) values (p_decision || ':hold', 'hold', p_decision, p_at);
      insert into posting (transaction_id, ordinal, source, destination, asset, units)
      values (p_decision || ':hold', 1, p_source, p_held, p_asset, p_units);
    end if;
    if p_approval is not null then
      update approval a set used_by = p_decision where a.id = p_approval and a.status = 'approved';
    end if;
    insert into reservation (decision_id, account_id, key_id, day, usd_micros, source, held, asset, units, reserved_at, windows)
    values (p_decision, p_account, p_key, v_day, coalesce(p_usd_micros, 0), p_source, p_held, p_asset, p_units, p_at, p_windows);
  end if;

  -- The authentication code covers the decision that the request leads to unless a counter or the balance objects, or an approval
  -- overrules.
  insert into decision (id, at, account_id, key_id, policy_version, policy_hash, operation, facts, verdict, violations, available_units, mac)
  values (p_decision, p_at, p_account, p_key, p_policy_version, p_policy_hash, p_operation, p_facts, verdict, violations, available_units,
    case when violations = p_violations and verdict <> 'insufficient_funds' and (verdict <> 'allow' or violations = '[]')
      then p_mac end);

  -- A process that ends now leaves a row that a job sends or gives up, as it does after any other crash.
  if verdict = 'allow' and p_transfer is not null then
    written := transfer_insert(p_account, p_decision, p_transfer);
  elsif verdict = 'allow' and p_order is not null then
    written := order_insert(p_account, p_decision, p_key, p_order);
  end if;

  if v_screening is not null then
    -- The same call may be sent again once it has its data, its window has passed or a person has reviewed it.
    delete from idempotency i where i.principal = p_principal and i.key = p_idempotency_key;
    perform aml_ask_review(p_account, p_decision, p_subject, v_screening, p_at);
  elsif verdict = 'allow' and p_released is not null then
    update aml_review r set used_by = p_decision where r.id = p_released;
  end if;
end $$;
