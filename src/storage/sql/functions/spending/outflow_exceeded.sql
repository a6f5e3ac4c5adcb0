-- The AML rules that one more spend would break, as violations. A window without a maximum only counts spends.
--
-- Locks: none. The caller holds the account.
create or replace function outflow_exceeded(p_account text, p_windows jsonb, p_at timestamptz) returns jsonb language plpgsql volatile as $$
begin
  return (select coalesce(jsonb_agg(distinct jsonb_build_object('rule', w.rule, 'limit', null, 'used', null, 'requested', null,
    'remaining', null, 'resetsAt', null)), '[]')
  from jsonb_to_recordset(p_windows) as w
    (rule text, seconds int, usd_micros bigint, max_micros bigint, min_count int, is_judged boolean)
  cross join lateral (
    select coalesce(sum(s.usd_micros), 0) as used, coalesce(sum(s.count), 0) as count
    from outflow_slot s
    where s.account_id = p_account and s.rule = w.rule and s.seconds = w.seconds
      and s.slot >= outflow_slot_at(p_at - make_interval(secs => w.seconds), w.seconds)
  ) past
  where w.is_judged and past.count + 1 >= w.min_count
    and (w.max_micros is null or past.used + w.usd_micros > w.max_micros));
end $$;
