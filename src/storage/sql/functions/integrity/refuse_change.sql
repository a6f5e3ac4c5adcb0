-- Refuses every change to an append-only table: a correction is a new row.
create or replace function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'table % is append-only: % refused; a correction is a new row', tg_table_name, tg_op;
end $$;

create or replace trigger append_only before update or delete or truncate on posting
  execute function refuse_change();
create or replace trigger append_only before update or delete or truncate on journal_entry
  execute function refuse_change();

-- A decision's authentication code is written once, and nothing else of the row ever changes.
create or replace trigger append_only before delete on decision for each row execute function refuse_change();
create or replace trigger append_only_whole before truncate on decision
  execute function refuse_change();
create or replace trigger append_only_rows before update on decision for each row
when (old.mac is not null or to_jsonb(old) - 'mac' <> to_jsonb(new) - 'mac') execute function refuse_change();

-- Triggers for each row hold on the partitions too; partition_guard gives them those for a statement.
create or replace trigger append_only before update or delete on decision_seal for each row execute function refuse_change();
create or replace trigger append_only_whole before truncate on decision_seal
  execute function refuse_change();
create or replace trigger append_only before delete or truncate on decision_head
  execute function refuse_change();
create or replace trigger append_only before update or delete or truncate on archive
  execute function refuse_change();
create or replace trigger append_only before update or delete or truncate on archived_decision
  execute function refuse_change();

-- A recourse that has ended never changes.
create or replace trigger append_only before delete or truncate on recourse
  execute function refuse_change();
create or replace trigger append_only_rows before update on recourse for each row
when (old.status <> 'open') execute function refuse_change();
create or replace trigger append_only before delete or truncate on refund
  execute function refuse_change();

-- The head of a day is fixed: no day has two.
create or replace trigger append_only before delete or truncate on decision_anchor
  execute function refuse_change();
create or replace trigger append_only_rows before update on decision_anchor for each row
when ((old.day, old.sequence, old.hash, old.chain) is distinct from (new.day, new.sequence, new.hash, new.chain))
execute function refuse_change();
