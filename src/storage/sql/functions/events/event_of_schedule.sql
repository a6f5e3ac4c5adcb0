-- Writes the event of a schedule that is made, paused, resumed, ended, or that fails.
--
-- Locks: none.
create or replace function event_of_schedule() returns trigger language plpgsql as $$
begin
  perform event_write(new.account_id, new.key_id,
    case when tg_op = 'INSERT' then 'schedule.created' when new.status = 'active' then 'schedule.resumed' else 'schedule.' || new.status end,
    'schedule', new.id,
    jsonb_build_object('operation', new.operation, 'status', new.status, 'nextAt', new.next_at),
    new.updated_at);
  return null;
end $$;

create or replace trigger event_of_insert after insert on schedule
  for each row execute function event_of_schedule();
create or replace trigger event_of_change after update of status on schedule
  for each row when (new.status <> old.status) execute function event_of_schedule();
