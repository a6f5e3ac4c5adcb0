-- Counts an allowed spend for every key of its path that limits equal ones, and for the key that spends. What no longer counts is
-- forgotten.
--
-- Locks: none. The caller holds the account, which protects the rows.
create or replace function repeat_count(q spend_request) returns void language plpgsql as $$
declare
  p record;
begin
  for p in
    select l.key, (l.repeat->>'count')::int as most, q.at + make_interval(secs => (l.repeat->>'seconds')::int) as until
    from (
      -- Its own run tells who repeats: with no limit of its own, for as long as the longest one above.
      select q.key, coalesce(q.repeat, (
        select a.repeat from jsonb_to_recordset(q.path) as a (repeat jsonb) where jsonb_typeof(a.repeat) = 'object'
        order by (a.repeat->>'seconds')::int desc limit 1))
      union all
      select a.key, a.repeat from jsonb_to_recordset(coalesce(q.path, '[]')) as a (key text, repeat jsonb)
    ) l (key, repeat)
    where jsonb_typeof(l.repeat) = 'object' order by l.key
  loop
    delete from repeat_run r where r.key_id = p.key and r.until <= q.at;
    insert into repeat_run as r (key_id, spend, ats, until) values (p.key, repeat_name(q.facts), array[q.at], p.until)
    on conflict (key_id, spend) do update
    set ats = (r.ats || excluded.ats)[greatest(cardinality(r.ats) + 2 - p.most, 1):], until = excluded.until;
  end loop;
end $$;
