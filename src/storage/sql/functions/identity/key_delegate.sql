-- Makes a key below another one and sets its earmark aside, once.
--
-- Arguments
--   p_row: the columns of access_key; secret_hash in hex
--   p_judged: {key, version, budgets} of each key of p_row's path, as the caller has read them
--   p_day: the UTC day
-- Verdicts: created; taken (the public key is registered, or the parent's jti); stale (a key above has changed or ended: read it again); paused (violations says
--   which keys are); account_locked; full (256 living children); exceeded (violations says which key has less than the earmark left, and in which
--   period).
-- Locks: the account, which protects its rows of earmark.
create or replace function key_delegate(p_row jsonb, p_judged jsonb, p_day date, p_at timestamptz, out verdict text, out violations jsonb)
language plpgsql as $$
#variable_conflict use_column
declare
  r access_key := jsonb_populate_record(null::access_key, p_row - 'secret_hash');
  v_parent text;
  v_rules jsonb;
begin
  violations := '[]';
  v_parent := r.path[cardinality(r.path)];
  perform pg_advisory_xact_lock(hashtextextended(r.account_id, 0));
  if exists (select from account a where a.id = r.account_id and a.status = 'locked') then
    verdict := 'account_locked';
    return;
  elsif not (select s.is_current from path_state(r.path, p_judged, r.path, 0, p_at, p_day) s)
    or not exists (select from access_key k where k.id = v_parent and k.account_id = r.account_id and k.path || k.id = r.path
      and (k.expires_at is null or k.expires_at >= r.expires_at and k.expires_at > p_at))
  then
    verdict := 'stale';
    return;
  elsif not key_is_active(v_parent) then
    verdict := 'paused';
    violations := (
      select coalesce(jsonb_agg(jsonb_build_object('rule', 'paused', 'limit', null, 'used', null, 'requested', null, 'remaining', null,
        'resetsAt', null, 'agentId', k.id) order by array_position(r.path, k.id)), '[]')
      from access_key k where k.id = any (r.path) and k.status <> 'active');
    return;
  elsif (
    select count(*) from access_key k
    where k.path @> array[v_parent] and k.path <> '{}' and k.path[cardinality(k.path)] = v_parent and k.status <> 'revoked'
      and (k.expires_at is null or k.expires_at > p_at)
  ) >= 256 then
    verdict := 'full';
    return;
  end if;

  if r.earmark_micros is not null then
    for v_place in reverse cardinality(r.path) .. 1 loop
      v_rules := (select jsonb_agg(b) from jsonb_array_elements(p_judged->(v_place - 1)->'budgets') b where b->>'max_micros' is not null);
      if v_rules is not null then
        violations := violations || (
          select coalesce(jsonb_agg(v || jsonb_build_object('rule', 'total_budget', 'agentId', r.path[v_place])), '[]')
          from jsonb_array_elements(budget_exceeded(array[r.path[v_place]], v_rules, r.earmark_micros, p_day,
            earmarks_open(r.path[v_place], array[]::text[], p_at))) v);
      end if;
      exit when exists (select from access_key k where k.id = r.path[v_place] and k.earmark_micros is not null);
    end loop;
    if violations <> '[]' then
      verdict := 'exceeded';
      return;
    end if;
  end if;

  insert into access_key (id, account_id, kind, name, thumbprint, public_key, secret_hash, scopes, status, policy, policy_version,
    policy_hash, created_at, expires_at, path, earmark_micros, task, jti, claims_hash)
  values (r.id, r.account_id, r.kind, r.name, r.thumbprint, r.public_key, decode(p_row->>'secret_hash', 'hex'), r.scopes, 'active',
    r.policy, 1, r.policy_hash, p_at, r.expires_at, r.path, r.earmark_micros, r.task, r.jti, r.claims_hash)
  on conflict do nothing;
  if not found then
    verdict := 'taken';
    return;
  end if;
  if r.earmark_micros is not null then
    for v_place in reverse cardinality(r.path) .. 1 loop
      insert into earmark (holder_id, key_id) values (r.path[v_place], r.id);
      exit when exists (select from access_key k where k.id = r.path[v_place] and k.earmark_micros is not null);
    end loop;
  end if;
  verdict := 'created';
end $$;
