-- Gives the partitions of a table the triggers for each statement that the table has: those fire for the table that a statement names.
-- Triggers for each row are inherited.
--
-- Locks: partitions that lack one.
create or replace function partition_guard(p_parent text) returns void language plpgsql as $$
declare
  v_text text;
begin
  for v_text in
    select replace(pg_get_triggerdef(t.oid), format(' ON %s.%I ', c.relnamespace::regnamespace, c.relname),
      format(' ON %I ', p.relname))
    from pg_class c
      join pg_trigger t on t.tgrelid = c.oid and not t.tgisinternal and t.tgtype & 1 = 0
      join pg_inherits i on i.inhparent = c.oid
      join pg_class p on p.oid = i.inhrelid
    where c.oid = p_parent::regclass and not exists (select from pg_trigger o where o.tgrelid = p.oid and o.tgname = t.tgname)
    order by p.relname, t.tgname
  loop
    execute v_text;
  end loop;
end $$;
