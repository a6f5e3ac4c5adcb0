-- Whether a spend was judged by the ancestors that its key has, with the policies that they have now, none of which is revoked; and
-- whether none of them can object or has anything to note, so that path_exceeded need not be asked.
--
-- Arguments: p_path: the ids, root first; p_judged: `path` of the spend_request; p_keys: the ids and the key's own.
-- Locks: none. The caller holds the account.
create or replace function path_state(
  p_path text[], p_judged jsonb, p_keys text[], p_usd_micros bigint, p_at timestamptz, p_day date,
  out is_current boolean, out is_free boolean
) language plpgsql volatile as $$
begin
  select count(*) = cardinality(p_path)
      and coalesce(bool_and(j.key = p_path[j.ordinality] and k.status <> 'revoked' and k.policy_version is not distinct from j.version), true),
    coalesce(bool_and(k.status = 'active' and j.cooldown_seconds is null and jsonb_typeof(j.repeat) is distinct from 'object'
      and not exists (
        select from jsonb_to_recordset(j.budgets) as b (period text, max_micros bigint, max_count int)
        cross join lateral (
          select coalesce(sum(u.used_micros), 0) + k.aside as used, coalesce(sum(u.count), 0) as count
          from budget_usage u where u.key_id = j.key
            and u.day >= case b.period when 'day' then p_day when 'life' then '-infinity'
              else date_trunc(b.period, p_day::timestamp)::date end
            and u.day < case b.period when 'day' then p_day + 1 when 'life' then 'infinity'
              else (date_trunc(b.period, p_day::timestamp) + ('1 ' || b.period)::interval)::date end
        ) past
        where b.max_micros - coalesce(p_usd_micros, b.max_micros + 1) < past.used or past.count >= b.max_count)), true)
  into is_current, is_free
  from rows from (jsonb_to_recordset(coalesce(p_judged, '[]'))
    as (key text, version int, budgets jsonb, cooldown_seconds int, repeat jsonb)) with ordinality as j
  -- A few keys, not the hundred that the planner expects: it would read the whole table.
  cross join lateral (
    select a.status, a.policy_version, case when exists (select from earmark e where e.holder_id = j.key)
      then earmarks_open(j.key, p_keys, p_at) else 0 end as aside
    from access_key a where a.id = j.key offset 0) k;
end $$;
