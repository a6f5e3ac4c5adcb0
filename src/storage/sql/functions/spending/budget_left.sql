-- What the budgets of keys leave of their periods, in millionths of a US dollar; null: no budget has a maximum. Below zero after a
-- spend that an approval let pass.
--
-- Arguments: as those of budget_exceeded.
-- Locks: none. The caller holds the account.
create or replace function budget_left(p_keys text[], p_rules jsonb, p_day date) returns bigint language plpgsql volatile as $$
begin
  return (
    select min(b.max_micros - past.used)
    from jsonb_to_recordset(p_rules) as b (period text, max_micros bigint)
    cross join lateral (
      select case b.period when 'life' then '-infinity' else date_trunc(b.period, p_day::timestamp)::date end as since,
        case b.period when 'life' then 'infinity'
          else (date_trunc(b.period, p_day::timestamp) + ('1 ' || b.period)::interval)::date end as till
    ) span
    cross join lateral (
      select coalesce(sum(u.used_micros), 0)::bigint as used
      from budget_usage u where u.key_id = any (p_keys) and u.day >= span.since and u.day < span.till
    ) past
    where b.max_micros is not null
  );
end $$;
