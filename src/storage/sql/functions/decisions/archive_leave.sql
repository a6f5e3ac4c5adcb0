-- Takes a month of decisions and seals out of the database, whose files are written and verified. It waits for whoever uses them at most
-- 20 ms, and others wait behind it no longer; then it fails with lock_not_available (55P03), to be tried again. Returns whether it did:
-- false if the month had left before.
--
-- Arguments
--   p_archive: the row of the archive
--   p_staying: decisions of the month that were sealed after the first that remains: they stay, in the default partition
--   p_leaving: decisions that had stayed so, of months before
--   p_writer: the last transaction that wrote a decision before the month's end, when the files were written
-- Locks: decisions, then seals, as a whole.
create or replace function archive_leave(p_archive jsonb, p_staying text[], p_leaving text[], p_writer text) returns boolean
language plpgsql as $$
declare
  v_archive archive := jsonb_populate_record(null::archive, p_archive);
  v_end text := first_id_at('dec', (v_archive.month + interval '1 month') at time zone 'UTC');
  v_suffix text := to_char(v_archive.month, '_YYYY_MM');
  v_table text;
begin
  perform set_config('lock_timeout', '20ms', true);
  lock table only decision in access exclusive mode;
  if exists (select from archive a where a.month >= v_archive.month) then
    return false;
  end if;
  if (select d.written_by::text from decision d where d.id < v_end order by d.written_by desc limit 1) is distinct from p_writer then
    raise exception 'a decision of the month was made after its files were written' using errcode = 'object_not_in_prerequisite_state';
  end if;
  lock table only decision_seal in access exclusive mode;
  foreach v_table in array array['decision', 'decision_seal'] loop
    execute format('alter table %I detach partition %I', v_table, v_table || v_suffix);
    -- These rows are moved, or leave with their month: nothing is changed.
    execute format('alter table %I disable trigger user', v_table || '_default');
    execute format('insert into %I select * from %I where %I = any ($1)', v_table || '_default', v_table || v_suffix,
      case v_table when 'decision' then 'id' else 'decision_id' end) using p_staying;
    execute format('delete from %I where %I = any ($1)', v_table || '_default',
      case v_table when 'decision' then 'id' else 'decision_id' end) using p_leaving;
    execute format('alter table %I enable trigger user', v_table || '_default');
  end loop;
  insert into archive select v_archive.*;
  return true;
end $$;
