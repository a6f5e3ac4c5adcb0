-- The rules of a key's ancestors that one more spend would break, as violations that name the ancestor. A new payee begins to wait at
-- each of them.
--
-- Arguments: q: the spend; p_keys: its key and the ancestors.
-- Locks: none. The caller holds the account.
create or replace function path_exceeded(q spend_request, p_keys text[], p_day date) returns jsonb language plpgsql volatile as $$
declare
  p record;
  v_violations jsonb := '[]';
  v_paid_from timestamptz;
begin
  for p in
    select a.key, a.budgets, a.cooldown_seconds, a.repeat, k.status
    from rows from (jsonb_to_recordset(q.path) as (key text, budgets jsonb, cooldown_seconds int, repeat jsonb)) with ordinality as a
    -- A few keys, not the hundred that the planner expects: it would read the whole table.
    cross join lateral (select k.status from access_key k where k.id = a.key offset 0) k order by a.ordinality
  loop
    if p.status <> 'active' then
      v_violations := v_violations || jsonb_build_object('rule', 'paused', 'limit', null, 'used', null, 'requested', null,
        'remaining', null, 'resetsAt', null, 'agentId', p.key);
    end if;
    if p.budgets is not null then
      v_violations := v_violations || (
        select coalesce(jsonb_agg(v || jsonb_build_object('agentId', p.key)), '[]')
        from jsonb_array_elements(
          budget_exceeded(array[p.key], p.budgets, q.usd_micros, p_day, earmarks_open(p.key, p_keys, q.at))) v);
    end if;
    if jsonb_typeof(p.repeat) = 'object' and not q.needs_approval and q.approval is null then
      v_violations := v_violations || (
        select coalesce(jsonb_agg(v || jsonb_build_object('agentId', p.key)), '[]')
        from jsonb_array_elements(repeat_exceeded(p.key, p.repeat, repeat_name(q.facts), q.at)) v);
    end if;
    if p.cooldown_seconds is not null then
      if p.status = 'active' and q.counterparty is not null then
        insert into payee (key_id, counterparty, first_seen_at) values (p.key, q.counterparty, q.at) on conflict do nothing;
      end if;
      select y.first_seen_at + make_interval(secs => p.cooldown_seconds) into v_paid_from
      from payee y where y.key_id = p.key and y.counterparty = q.counterparty;
      if v_paid_from is null or q.at < v_paid_from then
        v_violations := v_violations || jsonb_build_object(
          'rule', 'new_payee_cooldown', 'limit', p.cooldown_seconds::text, 'used', null, 'requested', q.counterparty, 'remaining', null,
          'resetsAt', to_char(v_paid_from at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'agentId', p.key);
      end if;
    end if;
  end loop;
  return v_violations;
end $$;
