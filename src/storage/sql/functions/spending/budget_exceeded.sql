-- The rules of budgets that one more spend would break, as violations, in the order of the rules.
--
-- Arguments
--   p_keys: the keys whose spends count together
--   p_rules: objects of rule, period (day, week from Monday, month; UTC; or the key's life), max_micros, max_count; null: no limit
--   p_usd_micros: the worth of the spend; null: unknown, which every maximum denies
--   p_day: the spend's UTC day
--   p_aside: what is set aside for keys below, which counts as used in each period
-- Locks: none. The caller holds the account.
create or replace function budget_exceeded(p_keys text[], p_rules jsonb, p_usd_micros bigint, p_day date, p_aside bigint default 0)
returns jsonb language plpgsql volatile as $$
begin
  return (
    select coalesce(jsonb_agg(case
        when b.max_micros is null then budget_violation(b.rule, b.max_count::text, past.count::text, '1',
          greatest(b.max_count - past.count, 0)::text, span.till - 1)
        else budget_violation(b.rule, decimal_of_micros(b.max_micros), decimal_of_micros(past.used), decimal_of_micros(p_usd_micros),
          decimal_of_micros(greatest(b.max_micros - past.used, 0)), span.till - 1)
      end -> 0 order by b.ordinality), '[]')
    from rows from (jsonb_to_recordset(p_rules) as (rule text, period text, max_micros bigint, max_count int)) with ordinality as b
    cross join lateral (
      select case b.period when 'life' then '-infinity' else date_trunc(b.period, p_day::timestamp)::date end as since,
        case b.period when 'life' then 'infinity'
          else (date_trunc(b.period, p_day::timestamp) + ('1 ' || b.period)::interval)::date end as till
    ) span
    cross join lateral (
      select coalesce(sum(u.used_micros), 0)::bigint + p_aside as used, coalesce(sum(u.count), 0) as count
      from budget_usage u where u.key_id = any (p_keys) and u.day >= span.since and u.day < span.till
    ) past
    where coalesce(b.max_micros, b.max_count) is not null
      and (b.max_micros - coalesce(p_usd_micros, b.max_micros + 1) < past.used or past.count >= b.max_count)
  );
end $$;
