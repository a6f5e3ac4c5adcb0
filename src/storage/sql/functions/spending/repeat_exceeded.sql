-- The violation of a key's limit of equal spends, as an array in the shape that policies/ uses; empty: none. It is broken if the oldest
-- of the newest `count` ones is younger than `seconds`.
--
-- Arguments: p_repeat: {count, seconds}; null: no limit. p_spend: see repeat_name.
-- Locks: none. The caller holds the account.
create or replace function repeat_exceeded(p_key text, p_repeat jsonb, p_spend text, p_at timestamptz) returns jsonb language plpgsql volatile as $$
declare
  v_count int := (p_repeat->>'count')::int;
  v_since timestamptz;
begin
  select r.ats[cardinality(r.ats) - v_count + 1] into v_since from repeat_run r where r.key_id = p_key and r.spend = p_spend;
  v_since := v_since + make_interval(secs => (p_repeat->>'seconds')::int);
  if v_since is null or v_since <= p_at then
    return '[]';
  end if;
  return jsonb_build_array(jsonb_build_object('rule', 'repeat_limit', 'limit', v_count::text, 'used', v_count::text, 'requested', '1',
    'remaining', '0', 'resetsAt', to_char(v_since at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')));
end $$;
