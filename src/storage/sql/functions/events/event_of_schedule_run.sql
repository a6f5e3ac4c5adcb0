-- Writes the event of a run that is over: completed, failed, denied or missed.
--
-- Locks: none.
create or replace function event_of_schedule_run() returns trigger language plpgsql as $$
begin
  perform event_write(s.account_id, s.key_id, 'schedule.' || new.status, 'schedule', s.id,
    jsonb_build_object('operation', s.operation, 'dueAt', new.at, 'decisionId', new.decision_id, 'reason', new.reason,
      'made', case when new.object_id is not null then jsonb_build_object('kind', new.object_kind, 'id', new.object_id) end),
    new.ended_at)
  from schedule s where s.id = new.schedule_id;
  return null;
end $$;

create or replace trigger event_of_insert after insert on schedule_run
  for each row when (new.status <> 'running') execute function event_of_schedule_run();
create or replace trigger event_of_change after update of status on schedule_run
  for each row when (new.status <> old.status) execute function event_of_schedule_run();
