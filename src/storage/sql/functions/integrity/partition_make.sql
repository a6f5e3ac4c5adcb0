-- Makes the partition of a month, such as `decision_2026_11`, for a table that is partitioned by ranges of ids, unless it is there. Rows
-- of that month that are in the default partition, which is named `…_default`, move to it.
--
-- Nobody waits long: the table is made beside its parent and attached, which lets others read and write the parent. Whatever has
-- touched the default partition is waited for at most 40 ms, and others behind this no longer; then it fails with lock_not_available
-- (55P03), to be tried again.
--
-- Arguments: p_prefix is that of the ids, without its underscore; p_at a time of the month.
-- Locks: the default partition, alone.
create or replace function partition_make(p_parent text, p_prefix text, p_at timestamptz) returns void language plpgsql as $$
declare
  v_month timestamp := date_trunc('month', p_at at time zone 'UTC');
  v_name text := p_parent || to_char(v_month, '_YYYY_MM');
  v_default text := p_parent || '_default';
  v_from text := first_id_at(p_prefix, v_month at time zone 'UTC');
  v_to text := first_id_at(p_prefix, (v_month + interval '1 month') at time zone 'UTC');
  v_key text := substring(pg_get_partkeydef(p_parent::regclass) from 'RANGE \((\w+)\)');
  v_is_moved boolean;
begin
  if to_regclass(v_name) is not null then
    return;
  end if;
  perform set_config('lock_timeout', '40ms', true);
  execute format('create table %I (like %I including all)', v_name, p_parent);
  execute format('lock table %I in access exclusive mode', v_default);
  execute format('select exists (select from %I where %I >= %L and %2$I < %4$L)', v_default, v_key, v_from, v_to) into v_is_moved;
  if v_is_moved then
    execute format('insert into %I select * from %I where %I >= %L and %3$I < %5$L', v_name, v_default, v_key, v_from, v_to);
    -- The rows are not deleted but moved.
    execute format('alter table %I disable trigger user', v_default);
    execute format('delete from %I where %I >= %L and %2$I < %4$L', v_default, v_key, v_from, v_to);
    execute format('alter table %I enable trigger user', v_default);
  end if;
  execute format('alter table %I attach partition %I for values from (%L) to (%L)', p_parent, v_name, v_from, v_to);
  perform partition_guard(p_parent);
end $$;
