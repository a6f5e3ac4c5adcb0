-- Drops the tables of a month that has left. Repeating it changes nothing.
--
-- Locks: those tables, which nobody else uses.
create or replace function archive_drop(p_month date) returns void language plpgsql as $$
declare
  v_name text;
begin
  for v_name in
    select c.relname from archive a
      join pg_class c on c.relname = any (array['decision' || to_char(a.month, '_YYYY_MM'), 'decision_seal' || to_char(a.month, '_YYYY_MM')])
    where a.month = p_month and c.relnamespace = current_schema()::regnamespace and c.relkind = 'r' and not c.relispartition
  loop
    execute format('drop table %I', v_name);
  end loop;
end $$;
